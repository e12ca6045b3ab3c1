"""What is refused before anything is planned: names, overlaps, data that is not there."""

import numpy as np
import pytest
import yaml

from benchmark.config import registry
from benchmark.config.generations import GenerationSpec, overlap, shared_classes
from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.config.protocols import Protocol
from benchmark.config.reading import build
from benchmark.config.split_sizes import Size, declared_sizes, lack, size
from benchmark.data.base import read_options
from benchmark.data.splits import rows_of
from benchmark.errors import BenchError
from benchmark.harness.requests import make_request as request

OLD, NEW = {"name": "old", "classes": [0, 0.5]}, {"name": "new"}
MINE = {
    "id": "mine", "version": 1, "title": "Mine", "source": "s", "question": "q",
    "generations": [OLD, NEW], "tasks": ["retrieval"],
}  # fmt: skip
GROUPS = {"letters": ("Latin", "Greek"), "scarce": ("Greek",), "signs": ("Arrows",)}


def write(folder, **changes):
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**MINE, **changes}))
    return str(path)


# --- apart


def members(roles):
    return [name for role in roles for name in GROUPS[role]]


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({}, {}, True),
        ({"classes": (0, 0.3)}, {"classes": (0.3, 1)}, False),
        ({"classes": (0, 0.3)}, {"classes": (0.3, 1), "groups": ("letters",)}, True),
        ({"classes": (0, 0.3), "groups": ("letters",)}, {"classes": (0.3, 1)}, True),
        ({"groups": ("letters",)}, {"groups": ("signs",)}, False),
        ({"groups": ("letters",)}, {"groups": ("scarce",)}, True),
        ({"groups": ("letters",), "classes": (0.0, 0.5)},
         {"groups": ("scarce",), "classes": (0.5, 1.0)}, True),
        ({"groups": ("letters", "scarce"), "classes": (0.0, 0.5)},
         {"groups": ("letters",), "classes": (0.5, 1.0)}, False),
        ({"groups": ("letters",)}, {"groups": ("letters",), "classes": (0.5, 1.0)}, True),
    ],
)  # fmt: skip
def test_fractions_part_classes_of_the_same_groups_alone(one, other, shared):
    """Greek is a letter: fractions of letters and of Greek are of different wholes."""
    pair = GenerationSpec(name="one", **one), GenerationSpec(name="other", **other)
    words = shared_classes(*pair, members)
    assert words == shared_classes(*pair[::-1], members) and bool(words) == shared
    assert (overlap(pair, members) is not None) == shared
    early, late = ((0.0, 0.5), (0.5, 1.0))
    halves = (
        pair[0].model_copy(update={"images": early}),
        pair[1].model_copy(update={"images": late}),
    )
    assert overlap(halves, members) is None, "images count within each class"


def test_apart_is_looked_at_in_the_file_and_again_on_the_track(tmp_path):
    def two(old, new):
        early = {"name": "old", "groups": old, "classes": [0, 0.5]}
        late = {"name": "new", "groups": new, "classes": [0.5, 1]}
        return {"apart": True, "generations": [early, late]}

    with pytest.raises(BenchError, match=r"mine.yaml: generations: .* share groups home, within"):
        load_protocol(write(tmp_path, **two(old=["home"], new=["home", "away"])))
    assert request(["bct"], write(tmp_path, **two(old=["home"], new=["away"])), "toy").setup
    assert request(["bct"], write(tmp_path, **two(old=["away"], new=["scarce"])), "toy").setup
    path = write(tmp_path, **two(old=["home"], new=["scarce"]))
    assert request(["bct"], path, "toy").setup, "home is even, scarce is odd"
    with pytest.raises(BenchError, match=r"mine.yaml: .* on track glyphs .* share groups Latin"):
        request(["bct"], path, "glyphs")


# --- names, where a file is read


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"set": {"protocol.tasks": ["retreival"]}},
         r"set: protocol.tasks: tasks\[0\]: unknown task 'retreival'; did you mean 'retrieval'"),
        ({"settings": [{"name": "a"}, {"name": "b", "set": {"protocol.tasks": ["retreival"]}}]},
         r"settings 'b': protocol.tasks: tasks\[0\]: unknown task 'retreival'"),
        ({"tasks": ["groups", "retrieval", "reidentification"]},
         r"tasks\[2\]: expected scores of other names than those of retrieval, got "
         "reidentification, which has cmc_at_1, cmc_at_5, map too"),
        ({"settings": [{"name": "a"}, {"name": "b", "set": {
            "protocol.tasks": ["reidentification", "retrieval"]}}]},
         r"settings 'b': protocol.tasks: tasks\[1\]: .*than those of reidentification, got retr"),
        ({"version": 0}, "version: expected at least 1, got 0"),
        ({"source": ""}, "source: expected a few words"),
        ({"question": "  "}, "question: expected a few words"),
        ({"generations": [OLD, {"name": "new/er"}]}, "name: expected small letters"),
        ({"generations": [OLD, {"name": "old'"}]}, "name: expected small letters"),
        ({"generations": [OLD, {"name": "recipe"}]}, "name: expected none of .* got 'recipe'"),
        ({"generations": [OLD, {"name": "data"}]}, "name: expected none of .* got 'data'"),
        ({"generations": [OLD, {"name": "bct"}]}, "'bct' is the name of a method"),
    ],
)  # fmt: skip
def test_protocols_refused(tmp_path, changes, words):
    with pytest.raises(BenchError, match=words) as caught:
        load_protocol(write(tmp_path, **changes))
    assert str(caught.value).startswith("mine.yaml: ") and "\n" not in str(caught.value)


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
    protocol = build(Protocol, MINE, "p.yaml")
    with pytest.raises(BenchError, match=r"--set data.classez: unknown key .* mean 'classes'"):
        set_up(protocol, load_track("toy"), {"data.classez": 8}, [])
    path = tmp_path / "other.yaml"
    value = {"id": "other", "version": 1, "title": "O", "extends": "toy", "data": {"classez": 8}}
    path.write_text(yaml.safe_dump(value))
    with pytest.raises(BenchError, match=r"other.yaml: data: unknown key 'classez'"):
        request(["bct"], "open-class", str(path))
    path.write_text(yaml.safe_dump({**value, "version": 0, "data": {}}))
    with pytest.raises(BenchError, match=r"other.yaml: version: expected at least 1"):
        load_track(str(path))


# --- what a track does not have


def test_a_group_that_is_not_taken_cannot_become_thinner(tmp_path):
    def thin(groups):
        old = {"name": "old", "groups": groups, "thinned": {"scarce": 0.5}}
        return write(tmp_path, generations=[old, NEW])

    assert request(["bct"], thin(["home"]), "glyphs").setup, "Greek is among the letters"
    assert request(["bct"], thin([]), "toy").setup
    with pytest.raises(BenchError, match=r"generations\[0\]: thinned.scarce: expected .* got also"):
        request(["bct"], thin(["home"]), "toy")


@pytest.mark.parametrize("at", [0, 1])
def test_a_generation_without_data_is_no_plan(at, tmp_path):
    empty = {"classes": [0, 0.0001]}
    both = [{"name": n, **(empty if i == at else {})} for i, n in enumerate(("old", "new"))]
    with pytest.raises(BenchError) as caught:
        request(["bct"], write(tmp_path, generations=both), "imagenet", without_data=True)
    where = f"mine.yaml: generations[{at}] '{'new' if at else 'old'}': classes [0, 0.0001]"
    assert str(caught.value).startswith(where) and "1,000: expected at least one" in str(
        caught.value
    )
    for track in ("imagenet", "glyphs", "toy"):
        with pytest.raises(BenchError, match=r"extended-class.yaml: generations\[0\] 'old': cl"):
            request(["bct"], "extended-class", track, without_data=True,
                    settings={"old.classes": [0, 0.0001]})  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"generations": [{**OLD, "images": [0, 0.01]}, NEW]},
         r"generations\[0\] 'old': images \[0, 0.01\] of each class's 24: .* got none on track"),
        ({"generations": [{**OLD, "images": [0, 0.01], "groups": ["scarce"]}, NEW]},
         r"generations\[0\] 'old': images \[0, 0.01\] of each class's 24: expected at least one"),
        ({"generations": [{**OLD, "groups": ["home"], "classes": [0, 0.0001]}, NEW]},
         r"generations\[0\] 'old': classes \[0, 0.0001\] of 1,300: expected at least one"),
        ({"generations": [OLD, {**NEW, "groups": ["scarce"], "thinned": {"scarce": 0.0001}}]},
         r"generations\[1\] 'new': thinned to 0.01 % of scarce: expected at least one class"),
        ({"evaluation": {"classes": [0, 0.5]}},
         r"evaluation: classes \[0, 0.5\] of those trained on: expected .* 'test' .* got none"),
        ({"evaluation": {"ranges": 4}}, r"evaluation: ranges 4 of those trained on: expected"),
        ({"evaluation": {"part": "seen", "classes": [0, 0.0001]}},
         r"evaluation: classes \[0, 0.0001\] of 1,300: expected at least one, got none on track"),
    ],
)  # fmt: skip
def test_what_surely_has_nothing_is_no_plan(tmp_path, changes, words):
    with pytest.raises(BenchError, match=rf"^mine.yaml: {words}"):
        request(["bct"], write(tmp_path, **changes), "glyphs")


@pytest.mark.parametrize("seed", range(200))
def test_sizes_are_those_of_the_split_and_what_is_refused_has_none(seed):
    """Classes of one size: the plan counts what the split takes; with groups it knows less."""
    rng = np.random.default_rng(seed)
    n, each = rng.integers(1, 40), rng.integers(1, 30)
    ends = np.sort(rng.random((2, 2)).round(rng.integers(1, 4)), axis=1)
    ends[rng.random((2, 2)) < 0.3] = 0
    ends[:, 1][ends[:, 1] <= ends[:, 0]] = 1
    group = np.flatnonzero(rng.random(n) < 0.5)
    share = float(rng.choice([0.01, 0.1, 1.0]))
    roles = {"groups": ("some",), "thinned": {"some": share}} if seed % 2 else {}
    asked = GenerationSpec(
        name="old", classes=tuple(ends[0].tolist()), images=tuple(ends[1].tolist()), **roles
    )
    split = {"classes": asked.classes, "images": asked.images, "order": "seeded", "seed": seed}
    if roles:
        split |= {"groups": ["some"], "thinned": [[["some"], share]]}
    facts = {"train_classes": int(n), "train_images": int(n * each)}
    try:
        rows = len(rows_of(np.repeat(np.arange(n), each), split, lambda _: group))
    except BenchError:
        rows = 0
    found, why = size(asked, facts), lack(asked, facts, list)
    assert found is None if roles else (found.images, found.exact) == (rows, True)
    assert not (rows and why) and (roles or bool(why) == (not rows)), (asked, rows, why)


def test_unequal_classes_are_about_counted():
    """Nothing is sure but what lies before the first image of the largest class there can be."""
    facts = {"train_classes": 3, "train_images": 100}
    few = GenerationSpec(name="old", images=(0.5, 0.51))
    assert size(few, facts) == Size(3, 1, exact=False) and lack(few, facts, list) is None
    assert "of 100: expected" in lack(GenerationSpec(name="old", images=(0.0, 0.004)), facts, list)
    assert lack(GenerationSpec(name="old", images=(0.0, 0.006)), facts, list) is None
    assert lack(GenerationSpec(name="old", images=(0.0, 0.004)), {}, list) is None


def test_declared_numbers_are_those_of_the_data():
    for name, options in (("toy", {"classes": 8, "images": 4}), ("glyphs", {"draws": 1}),
                          ("glyphs", {"draws": 1, "tuning": True})):  # fmt: skip
        reader = read_options(name, options)
        made = reader.load(None)
        trained = {*made.train.labels.tolist()}
        assert reader.sizes() == {
            "train_classes": len(trained), "train_images": len(made.train),
        }  # fmt: skip
        for part, items in made.evaluations.items():
            assert (
                trained.isdisjoint(items.labels.tolist()) == reader.evaluation_sets[part].unseen
            ), part
    assert declared_sizes(load_track("glyphs"))["train_images"] == 31200
    assert declared_sizes(load_track("places365"))["train_classes"] == 365
    assert declared_sizes(load_track("omniglot")) == {}


def test_re_identification_data_rules_plain_retrieval_out(tmp_path):
    with pytest.raises(BenchError, match=r"tasks\[0\]: dataset market1501 .* rules retrieval out"):
        request(["bct"], write(tmp_path), "market1501", without_data=True)
    path = write(tmp_path, tasks=["reidentification"])
    assert request(["bct"], path, "market1501", without_data=True).setup


TASKS = [name for name in registry.tasks() if name != "reidentification"]


@pytest.mark.parametrize("task", TASKS)
def test_every_task_but_one_is_ruled_out_where_there_is_junk(task, tmp_path):
    """Junk has one label: to others it is a class, and one person of many templates."""
    texts = [{"name": "old", "queries": "texts"}, NEW] if task == "text_retrieval" else [OLD, NEW]
    beside = [task, "identification"] if task == "backfilling" else [task]

    def asked(part):
        return write(tmp_path, generations=texts, tasks=beside, evaluation={"part": part})

    assert request(["bct"], asked("test"), "glyphs").setup
    words = rf"mine.yaml: tasks\[0\]: .* rules {task} out on its evaluation set 'across': "
    with pytest.raises(BenchError, match=words):
        request(["bct"], asked("across"), "glyphs")
    with pytest.raises(BenchError, match=r"market1501.yaml: tasks\[0\]: .* rules"):
        request(["bct"], "market1501", "glyphs", settings={"protocol.tasks": ["retrieval"]})
    assert request(["bct"], "market1501", "glyphs").setup.part == "across"
