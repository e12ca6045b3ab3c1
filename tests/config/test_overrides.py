"""Settings of a protocol, overrides by tracks, groups: read strictly, and run."""

import pytest
from support.command import call
from support.protocol_files import write, write_track
from support.toy_runs import run_below

from benchmark.config import registry
from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.config.overrides import expand, idle
from benchmark.config.unread import unread
from benchmark.errors import BenchError
from benchmark.harness.graph import record_key
from benchmark.harness.requests import make_request as request
from benchmark.harness.requests import make_requests as requests
from benchmark.harness.work import TrainingWork


def settings(*sets):
    return [{"name": f"s{i}", "set": each} for i, each in enumerate(sets)]


# --- what comes with it


def test_a_protocol_names_its_source_and_what_it_asks_and_a_track_its_pictures() -> None:
    for name in registry.protocol_files():
        made = load_protocol(name)
        assert any(p in made.source for p in ("FCT", "BCT", "BT2", "FastFill")), name
        assert len(made.question) > 40 and made.version >= 1 and made.scenario, name
    for name in registry.track_files():
        track = load_track(name)
        assert track.kind and track.subject, name


def heads(name):
    models = request(["bct"], name, "glyphs").setup.models
    return [(m.backbone, m.dim, m.head, m.relu) for m in models]


def test_loss_change_pairs_heads_on_one_backbone() -> None:
    assert heads("loss-change:norm-softmax-cosface") == [
        ("convnet-16", 64, "norm-softmax", False), ("convnet-16", 64, "cosface", False),
    ]  # fmt: skip
    assert heads("loss-change:relu")[1] == ("convnet-16", 64, "cosface", True)


def test_arch_change_changes_backbones_and_lengths_alone() -> None:
    found = {p.id.partition(":")[2]: heads(p.id) for p in expand(load_protocol("arch-change"))}
    deep, shallow = ("convnet-32x2", 64), ("convnet-32", 64)
    pairs = {name: tuple(m[:2] for m in models) for name, models in found.items()}
    assert pairs["same"] == (shallow, shallow) and pairs["deeper"] == (shallow, deep)
    assert pairs["longer"] == (("convnet-32x2", 32), deep)
    assert pairs["deeper-longer"] == (shallow, ("convnet-32x2", 128))
    assert pairs["family"][0][0] == "mobilenet-32"
    assert pairs["transformer"] == (deep, ("vit-96x4", 64))
    assert {m[2] for n, ms in found.items() if n != "softmax-arcface" for m in ms} == {"arcface"}
    assert [m[2] for m in found["softmax-arcface"]] == ["softmax", "arcface"]


def test_settings_share_trainings() -> None:
    plans = [r.plan().stages for r in requests(["fct"], "unseen", "toy")]
    trained = [{s.name for s in plan if s.kind in ("train", "update")} for plan in plans]
    assert trained[0] == trained[1] == trained[2]
    scored = [{s.name for s in plan if s.kind == "evaluate"} for plan in plans]
    assert not scored[0] & scored[1]


def test_a_model_s_own_recipe_is_for_its_training_alone() -> None:
    asked = request(["fct"], "arch-change:transformer", "toy")
    stages = asked.plan().stages
    assert asked.plan(seeds=[]).results == ()
    assert [result.label for result in asked.plan([]).results] == ["independent"]  # the bounds
    optimizers = {s.title: s.work.recipe.get("optimizer", "sgd")
                  for s in stages if isinstance(s.work, TrainingWork)}  # fmt: skip
    assert optimizers == {
        "train old model (seed 0)": "sgd", "train independent new model (seed 0)": "adamw",
        "fit independent (seed 0)": "sgd", "fit fct (seed 0)": "sgd",
    }  # fmt: skip


def test_a_setting_can_have_a_version_of_its_own() -> None:
    versions = {p.id.partition(":")[2]: p.version for p in expand(load_protocol("arch-change"))}
    assert versions.pop("transformer") == 2 and set(versions.values()) == {1}
    assert load_protocol("arch-change:transformer").version == 2


# --- names and places


def test_one_setting_by_name() -> None:
    made = load_protocol("arch-change:longer")
    assert (made.id, made.settings) == ("arch-change:longer", ())
    assert made.title == "Architecture change: twice as long" and made.family == "arch-change"
    with pytest.raises(BenchError, match="unknown setting 'depper'; did you mean 'deeper'"):
        load_protocol("arch-change:depper")
    with pytest.raises(BenchError, match="unknown setting 'x'; it has none"):
        load_protocol("open-class:x")


def test_a_setting_must_be_chosen_before_anything_is_planned() -> None:
    with pytest.raises(BenchError, match=r"expected one of its settings: arch-change:same, "):
        request(["bct"], "arch-change", "toy")


def test_settings_do_not_count_as_changes_but_make_records_of_their_own(tmp_path) -> None:
    asked = requests(["bct"], "dimension", "toy")
    paths = {str(p) for each in asked for p in each.paths(tmp_path).values()}
    assert len(paths) == 2 * len(asked)
    assert f"{tmp_path}/measured/dimension+size-x2/toy/bct/seed-0.json" in paths
    keys = {each.plan().results[1].key for each in asked}
    assert len(keys) == len(asked)


def key(protocol, track):
    return record_key(set_up(protocol, track, {}, []), {}, "bct", 0, None)


def test_what_others_ask_of_a_track_renames_no_record() -> None:
    protocol, track = load_protocol("open-class"), load_track("toy")
    models = {n: track.models[n] for n in ("old", "new")}
    bare = track.model_copy(update={"groups": {}, "protocols": {}, "models": models})
    assert key(protocol, track) == key(protocol, bare)
    grouped = load_protocol("out-of-domain:away")
    other = track.model_copy(update={"groups": {**track.groups, "away": ("even",)}})
    assert key(grouped, track) != key(grouped, other)


# --- tracks


def test_a_track_overrides_fractions(tmp_path) -> None:
    """Places has 182 old classes of 365, the first of the data set."""
    change = {"old.classes": [0, 0.5], "protocol.order": "dataset"}
    path = write_track(tmp_path, "places", protocols={"extended-class": change})
    setup = request(["bct"], "extended-class", path).setup
    assert setup.protocol.generations[0].classes == (0, 0.5)
    assert setup.protocol.order == "dataset" and setup.changed == {}
    assert request(["bct"], "open-class", path).setup.protocol.order == "seeded"
    misspelt = {"odl.classes": [0, 0.5]}
    for wrong, words in (
        ({"extended-clas": change}, "did you mean 'extended-class'"),
        ({"extended-class": misspelt}, "places.yaml: protocols.extended-class: odl"),
    ):
        write_track(tmp_path, "places", protocols=wrong)
        with pytest.raises(BenchError, match=words):
            request(["bct"], "extended-class", path)


def test_a_setting_that_is_so_already_is_told():
    toy, spec = load_track("toy"), load_protocol("open-class")
    usual = registry.method("bct").weight
    given = {"bct.weight": usual, "old.dim": toy.models["old"].dim, "recipe.epochs": 5}
    assert toy.recipe.epochs != 5
    assert idle(spec, toy, given, ["bct"]) == ["bct.weight", "old.dim"]
    given = {"bct.weight": 2 * usual, "recipe.batch_size": "x1"}
    assert idle(spec, toy, given, ["bct"]) == ["recipe.batch_size"]
    words = ["run", "-m", "bct", "-p", "open-class", "-t", "toy", "--dry-run"]
    code, _, err = call(*words, "--set", f"bct.weight={usual}", "--set", "recipe.epochs=5")
    said = "so it is without it; the run counts as changed all the same"
    assert (code, err) == (0, f"bench: --set bct.weight: {said}\n")
    code, _, err = call(*words, "--sweep", f"bct.weight={usual},{2 * usual}")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("given", "unread_alone"),
    [
        ({"old.head": "softmax", "old.scale": 8}, "old.scale"),
        ({"old.head": "softmax", "old.margin": 0.1, "new.scale": 8}, "old.margin"),
        ({"new.head": "norm-softmax", "new.margin": 0.1, "new.scale": 8}, "new.margin"),
        ({"new.head": "arcface", "new.margin": 0.1, "old.head": "cosface", "old.scale": 8}, ""),
        ({"recipe.optimizer": "adam", "recipe.momentum": 0.5}, "recipe.momentum"),
        ({"recipe.optimizer": "adam", "recipe.momentum": 0.5,
          "new.recipe": {"optimizer": "sgd"}}, ""),
        ({"recipe.schedule": "cosine", "recipe.power": 2}, "recipe.power"),
        ({"recipe.schedule": "linear", "recipe.power": 2, "recipe.decay": 0.5}, "recipe.decay"),
        ({"recipe.simclr.schedule": "cosine", "recipe.simclr.power": 2}, "recipe.simclr.power"),
        ({"recipe.simclr.augment.crop": 0.5, "recipe.augment.aspect": 2}, "recipe.augment.aspect"),
        ({"recipe.augment.saturation": 0.5}, "recipe.augment.saturation"),
        ({"recipe.stored_views": 2}, "recipe.stored_views"),
    ],
)  # fmt: skip
def test_what_nothing_reads_is_told(given, unread_alone):
    setup = set_up(load_protocol("open-class"), load_track("toy"), given, [])
    assert [*unread(setup)] == ([unread_alone] if unread_alone else [])


def test_what_nothing_reads_is_one_line():
    words = ["run", "-m", "bct", "-p", "open-class", "-t", "toy", "--dry-run"]
    more = "no effect, as the schedule is not linear; the run counts as changed all the same"
    given = ("--set", "recipe.schedule=cosine", "--set", "recipe.power=2")
    assert call(*words, *given)[::2] == (0, f"bench: --set recipe.power: {more}\n")
    code, _, err = call(*words, *given[:2], "--sweep", "recipe.power=2,3")
    assert (code, err) == (0, f"bench: --sweep recipe.power: {more}\n")
    words[words.index("toy")] = "folder"  # which has colours
    assert call(*words, "--set", "recipe.augment.saturation=0.5")[::2] == (0, "")


def test_multiples_of_what_the_track_says() -> None:
    setup = request(["bct"], "open-class", "toy", settings={"old.dim": "x2", "recipe.lr": "x0.5"})
    assert setup.setup.models[0].dim == 32 and setup.setup.track.recipe.lr == 0.05


def test_fractions_and_models_of_a_generation_from_the_command_line() -> None:
    changes = {"old.classes": [0.0, 0.25], "new.model": "vit", "protocol.order": "dataset"}
    setup = request(["bct"], "extended-class", "toy", settings=changes).setup
    assert setup.protocol.generations[0].classes == (0, 0.25)
    assert setup.models[1].backbone == "vit-16x1" and setup.changed == changes


@pytest.mark.parametrize("turned", [False, True])
def test_fields_that_need_each_other_are_set_in_any_order(turned):
    def made(protocol, **given):
        items = [(key.replace("__", "."), value) for key, value in given.items()]
        settings = dict(reversed(items) if turned else items)
        return set_up(load_protocol(protocol), load_track("toy"), settings, [])

    shares = [(0, 0.4), (0.4, 1)]
    found = made("open-class", old__classes=[0, 0.4], new__classes=[0.4, 1]).protocol
    assert [g.classes for g in found.generations] == shares
    found = made("open-data", old__images=[0, 0.4], new__images=[0.4, 1]).protocol
    assert [g.images for g in found.generations] == shares
    found = made("open-data", old__images=[0, 0.6], protocol__apart=False).protocol
    assert found.generations[0].images == (0, 0.6)
    found = made("open-class", old__queries="texts", protocol__tasks=["text_retrieval"]).protocol
    assert found.generations[0].queries == "texts"


# --- refused


def test_a_number_that_no_record_can_hold() -> None:
    with pytest.raises(BenchError, match=r"--set bct.weight: expected .* within ±1e\+100"):
        request(["bct"], "open-class", "toy", settings={"bct.weight": 1e300})


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("bt2.extr", "method bt2: unknown key 'extr'; did you mean 'extra'"),
        ("fct.widht", "method fct: unknown key 'widht'; did you mean 'width'"),
    ],
)
def test_a_protocol_s_parameters_of_any_method_are_checked_in_planning(tmp_path, key, words):
    asked = request(["bct"], write(tmp_path, set={key: 8}), "toy")
    with pytest.raises(BenchError, match=words):
        asked.plan()


def test_options_that_the_dataset_does_not_have(tmp_path):
    path = write_track(tmp_path, "other", data={"classez": 8})
    with pytest.raises(BenchError, match=r"other.yaml: data: unknown key 'classez'"):
        request(["bct"], "open-class", path)


@pytest.mark.parametrize(
    ("changes", "track", "words"),
    [
        ({"generations": [{"name": "old"}, {"name": "new", "model": "vti"}]}, "toy",
         r"generations\[1\]: model: track toy has no model 'vti'; did you mean 'vit'"),
        ({"generations": [{"name": "old", "groups": ["hoem"]}, {"name": "new"}]}, "toy",
         r"generations\[0\]: track toy has no group 'hoem'; did you mean 'home'"),
        ({"evaluation": {"against": "few"}}, "toy", "evaluation: track toy has no group 'few'"),
        ({"evaluation": {"part": "sene"}}, "toy", "evaluation: part: dataset toy of track toy has"),
        ({"tasks": ["reidentification"]}, "folder",
         r"tasks\[0\]: reidentification needs cameras, which dataset folder of track folder"),
        ({"tasks": ["retrieval", "groups"]}, "folder", r"tasks\[1\]: groups needs groups"),
    ],
)  # fmt: skip
def test_what_a_track_cannot_serve(tmp_path, changes, track, words) -> None:
    path = write(tmp_path, **changes)
    root = tmp_path if track == "folder" else None
    with pytest.raises(BenchError, match=words) as caught:
        request(["bct"], path, track, data_root=root)
    assert str(caught.value).startswith("mine.yaml: ")


UNEVEN = settings({}, {"new.model": "vti"}, {"old.dim": "x0.3"})


def test_settings_that_do_not_suit_the_track_are_left_out(tmp_path) -> None:
    path = write(tmp_path, settings=UNEVEN)
    with pytest.warns(UserWarning, match="does not suit track toy") as heard:
        records = quick(tmp_path, path)
    assert [r.protocol for r in records] == ["mine:s0"]
    said = [str(w.message) for w in heard if "does not suit" in str(w.message)]
    assert [line.partition(" does")[0] for line in said] == ["mine:s1", "mine:s2"]
    assert "no model 'vti'; did you mean 'vit'" in said[0] and "x0.3 of 16" in said[1]


def test_no_setting_suits_the_track(tmp_path) -> None:
    path = write(tmp_path, settings=UNEVEN[1:])
    with pytest.raises(BenchError, match=r"no setting of .*suits track toy: .*'vti'.*; .*x0.3"):
        requests(["bct"], path, "toy")


def test_what_is_wrong_itself_refuses_every_setting(tmp_path) -> None:
    for wrong, words in (({"old.haed": "softmax"}, "old.haed"), ({"old.head": "so"}, "'so'")):
        path = write(tmp_path, settings=[*UNEVEN, {"name": "s3", "set": wrong}])
        with pytest.raises(BenchError, match=f"settings 's3': .*{words}"):
            requests(["bct"], path, "toy")


def quick(tmp_path, protocol, methods=("independent",)):
    short = {"recipe.epochs": 1, "data.classes": 16}
    return run_below(tmp_path, methods, protocol, "toy", settings=short)


@pytest.mark.parametrize(("at", "name"), [(0, "old"), (1, "new")])
def test_a_generation_without_data(tmp_path, at, name) -> None:
    """The number of a group's classes is known from the data, before anything is trained."""
    none = {"classes": [0, 0.01], "groups": ["home"]}
    both = [{"name": n, **(none if n == name else {})} for n in ("old", "new")]
    with pytest.raises(BenchError, match=rf"mine.yaml: generations\[{at}\] '{name}': .*got none"):
        quick(tmp_path, write(tmp_path, generations=both))
    assert not trained(tmp_path)


def trained(tmp_path):
    return list((tmp_path / "store" / "stages").glob("train-*"))


def test_a_group_that_the_dataset_does_not_have(tmp_path) -> None:
    """Nothing smaller is made of it in silence."""
    path = write_track(tmp_path, "other", groups={"home": ["even", "evn"]})
    for changes in (
        {"generations": [{"name": "old"}, {"name": "new", "groups": ["home"]}]},
        {"evaluation": {"groups": ["home"]}},
    ):
        with pytest.raises(BenchError, match=r"mine.yaml: .*unknown group .*'evn'; did you mean"):
            run_below(tmp_path, ["bct"], write(tmp_path, **changes), path)
        assert not trained(tmp_path)


# --- a new protocol is one file


@pytest.mark.slow
def test_a_new_protocol_is_one_file_that_mixes_what_there_is(tmp_path) -> None:
    """Groups, a thinned one, another model, ranges, backfilling and settings, in one file."""
    path = write(
        tmp_path,
        generations=[
            {"name": "v1", "classes": [0, 0.5], "groups": ["home", "away"],
             "thinned": {"scarce": 0.5}},
            {"name": "v2", "model": "mobile"},
        ],
        order="dataset", evaluation={"part": "seen"}, tasks=["retrieval", "groups", "backfilling"],
        orders=["random"],
        settings=[
            {"name": "one", "set": {"evaluation.against": "scarce"}},
            {"name": "two", "title": "by range", "set": {"evaluation.ranges": 4, "v2.dim": "x2"}},
        ],
    )  # fmt: skip
    records = quick(tmp_path, path, ["bct"])
    assert [(r.protocol, r.method) for r in records] == [
        ("mine:one", "independent"), ("mine:one", "bct"),
        ("mine:two", "independent"), ("mine:two", "bct"),
    ]  # fmt: skip
    one, two = records[1].scores["v2/v2"], records[3].scores["v2/v2"]
    assert {"group_scarce__cmc_at_1", "group_others__cmc_at_1", "group_gap"} <= set(one)
    assert sum(k.startswith("group_") for k in two) == 5
    assert records[1].models["v2"].dim == 16 and records[3].models["v2"].dim == 32
    assert records[1].as_json()["backfilling"]["groups"] == ["scarce", "others"]


def test_words_for_readers_name_no_work():
    """Words for what happens and for the pictures: on every page, in no record's key."""
    protocol, track = load_protocol("open-class"), load_track("glyphs")
    assert protocol.scenario and (track.kind, track.subject) == ("rendered", "rendered characters")
    words = {"kind": "photographs", "subject": "others", "title": "Other", "note": "Other"}
    other = protocol.model_copy(update={"scenario": "other", "title": "Other"})
    renamed = track.model_copy(update=words)
    assert key(protocol, track) == key(other, renamed)
