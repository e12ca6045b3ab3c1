"""Protocols, tracks, and the changes of a run."""

import pytest
from support.protocol_files import write_track

from benchmark.config import registry
from benchmark.config.generations import GenerationSpec
from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.config.overrides import expand
from benchmark.config.protocols import Protocol
from benchmark.config.reading import build
from benchmark.config.recipes import Recipe
from benchmark.config.tracks import Track
from benchmark.errors import BenchError

PROTOCOL = {
    "id": "p", "version": 1, "title": "P", "source": "s", "question": "q",
    "generations": [{"name": "old", "classes": [0, 0.3]}, {"name": "new", "classes": [0.3, 1]}],
    "tasks": ["retrieval"],
}  # fmt: skip


def protocol(**changes):
    return build(Protocol, {**PROTOCOL, **changes}, "p.yaml")


@pytest.fixture
def toy():
    return load_track("toy")


# --- fields


def test_the_version_of_a_setting_is_above_the_protocol_s() -> None:
    settings = [{"name": "a"}, {"name": "b", "version": 2}]
    assert [p.version for p in expand(protocol(settings=settings))] == [1, 2]


def test_a_generation_sees_everything_unless_told():
    assert GenerationSpec(name="x").classes == GenerationSpec(name="x").images == (0.0, 1.0)


def test_steps_of_a_map_are_a_number_or_passes_over_its_pairs():
    steps = build(Recipe, {"epochs": 1, "transform_steps": 7}, "t.yaml")
    passes = build(Recipe, {"epochs": 1, "transform_steps": "80 epochs"}, "t.yaml")
    assert [steps.map_steps(n) for n in (3, 1000)] == [7, 7]
    # Batches of 256; a last one that is not whole is left out.
    assert [passes.map_steps(n) for n in (3, 255, 256, 1000)] == [80, 80, 80, 240]


def test_a_track_has_an_old_and_a_new_model(toy):
    with pytest.raises(BenchError, match="models: expected 'old' and 'new'"):
        build(Track, {**dict(toy), "models": {"old": toy.models["old"]}}, "toy.yaml")


# --- files


def test_the_four_scenarios_of_mixbct():
    """MixBCT section 4.2: whose 30 %, and what the new model sees."""
    wanted = {
        "extended-data": ((0, 1), (0, 0.3), (0, 1), (0, 1)),
        "extended-class": ((0, 0.3), (0, 1), (0, 1), (0, 1)),
        "open-data": ((0, 1), (0, 0.3), (0, 1), (0.3, 1)),
        "open-class": ((0, 0.3), (0, 1), (0.3, 1), (0, 1)),
    }
    for name, shares in wanted.items():
        old, new = load_protocol(name).generations
        assert (old.classes, old.images, new.classes, new.images) == shares, name
        assert load_protocol(name).old_head == "discarded"


def test_a_track_extends_another(tmp_path):
    changes = {"models": {"old": {"head": "cosface"}}, "recipe": {"augment": {"rotate": 9}}}
    made, base = load_track(write_track(tmp_path, version=3, **changes)), load_track("toy")
    assert made.models["old"] == base.models["old"].model_copy(update={"head": "cosface"})
    assert made.models["new"] == base.models["new"]
    assert made.recipe == base.recipe.model_copy(
        update={"augment": base.recipe.augment.model_copy(update={"rotate": 9.0})}
    )
    assert (made.id, made.version, made.dataset) == ("mine", 3, "toy")


def test_a_track_extends_one_beside_it(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    write_track(tmp_path, "base", recipe={"epochs": 7})
    assert load_track(write_track(tmp_path, extends="base.yaml")).recipe.epochs == 7
    write_track(tmp_path, "base", extends="mine.yaml")
    with pytest.raises(BenchError, match="extends: goes in a circle over"):
        load_track(str(tmp_path / "mine.yaml"))


def test_another_head_keeps_nothing_that_was_said_of_one(tmp_path):
    """The scale and margin of arcface would be refused beside softmax."""
    models = {"new": {"head": "softmax"}, "mobile": {"dim": 32}}
    made = load_track(write_track(tmp_path, extends="glyphs", models=models))
    usual = load_track("toy").models["old"]
    assert (made.models["new"].head, made.models["new"].scale) == ("softmax", usual.scale)
    assert (made.models["mobile"].head, made.models["mobile"].scale) == ("arcface", 16)


# --- set_up


def test_models_in_the_order_of_the_generations(toy):
    made = set_up(protocol(), toy, {}, ["bct"])
    assert made.models == (toy.models["old"], toy.models["new"]) and made.changed == {}
    third = [*PROTOCOL["generations"], {"name": "last", "model": "old"}]
    made = set_up(protocol(generations=third), toy, {}, [])
    assert made.models == (toy.models["old"], toy.models["new"], toy.models["old"])
    backwards = [{"name": "new"}, {"name": "old"}]
    made = set_up(protocol(generations=backwards), toy, {}, [])
    assert made.models == (toy.models["old"], toy.models["new"]), "by place, not by name"


def test_changes(toy):
    settings = {
        "old.head": "arcface", "new.dim": 32, "recipe.epochs": 1, "recipe.augment.rotate": 2,
        "data.classes": 8, "track.distance": "l2", "protocol.old_head": "kept", "bct.weight": 2,
        "bct:distill.weight": 3,
    }  # fmt: skip
    made = set_up(protocol(), toy, settings, ["bct", "bct:distill", "l2"])
    assert made.models[0] == toy.models["old"].model_copy(update={"head": "arcface"})
    assert made.models[1] == toy.models["new"].model_copy(update={"dim": 32})
    assert made.track.recipe == toy.recipe.model_copy(
        update={"epochs": 1, "augment": toy.recipe.augment.model_copy(update={"rotate": 2.0})}
    )
    assert made.track.data == {**toy.data, "classes": 8}
    assert (made.track.distance, made.protocol.old_head) == ("l2", "kept")
    assert made.params("bct") == {"weight": 2}
    assert made.params("bct:distill") == {"weight": 3}
    assert made.params("bct:old") == {"weight": 2}
    assert made.params("l2") == {}
    assert made.changed == settings


def test_a_variant_s_own_values_win_over_those_of_the_id(toy):
    settings = {"bct.unknown": "old", "bct.weight": 2, "bct:old.unknown": "synthesize"}
    labels = ["bct", "bct:distill", "bct:old"]
    made = set_up(protocol(), toy, settings, labels)
    methods = [registry.method(label, made.params(label)) for label in labels]
    assert [m.unknown for m in methods] == ["old", "distill", "synthesize"]
    assert [m.weight for m in methods] == [2.0, 2.0, 2.0]


def test_the_track_itself_stays(toy):
    before = toy.model_dump()
    set_up(protocol(), toy, {"old.head": "arcface", "data.classes": 8, "recipe.lr": 1}, [])
    assert toy.model_dump() == before


def test_unknown_parameters_of_a_method():
    with pytest.raises(BenchError, match="did you mean 'weight'"):
        registry.method("bct", {"weigth": 2})
    with pytest.raises(BenchError, match="did you mean 'mixbct'"):
        registry.method("mixbtc")
    with pytest.raises(BenchError, match="did you mean 'distill'"):
        registry.method("bct:distil")
    assert registry.method("bct:distill", {"weight": 2}).weight == 2.0


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("recipe", {"schedule": "steps", "milestones": [0.5, 0.75]}),
        ("new", {"triplet": 1.0, "per_class": 4}),
        ("new", {"weights": "a1_in1k", "weights_sha256": "a" * 64, "backbone": "timm:resnet18"}),
    ],
)
def test_fields_that_need_each_other_come_in_any_order(toy, name, wanted):
    """Each alone, before the other, would be refused."""
    for fields in (wanted, dict(reversed(wanted.items()))):
        changes = {f"{name}.{field}": value for field, value in fields.items()}
        made = set_up(protocol(), toy, changes, [])
        changed = made.track.recipe if name == "recipe" else made.models[1]
        assert {field: getattr(changed, field) for field in wanted} == {
            field: tuple(value) if isinstance(value, list) else value
            for field, value in wanted.items()
        }
