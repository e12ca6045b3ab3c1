"""What is refused before anything is planned: names, overlaps, data that is not there."""

import dataclasses

import pytest
import yaml

from benchmark import registry
from benchmark.apart import overlap, share_classes
from benchmark.api import request
from benchmark.config import build
from benchmark.errors import BenchError
from benchmark.parameters import parameters_of
from benchmark.protocol import GenerationSpec, Protocol
from benchmark.setup import set_up
from benchmark.sizes import declared

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
        ({"groups": ("letters",), "classes": (0, 0.5)},
         {"groups": ("scarce",), "classes": (0.5, 1)}, True),
        ({"groups": ("letters", "scarce"), "classes": (0, 0.5)},
         {"groups": ("letters",), "classes": (0.5, 1)}, False),
        ({"groups": ("letters",)}, {"groups": ("letters",), "classes": (0.5, 1)}, True),
    ],
)  # fmt: skip
def test_fractions_part_classes_of_the_same_groups_alone(one, other, shared):
    """Greek is a letter: fractions of letters and of Greek are of different wholes."""
    pair = GenerationSpec("one", **one), GenerationSpec("other", **other)
    assert share_classes(*pair, members) == share_classes(*pair[::-1], members) == shared
    assert (overlap(pair, members) is not None) == shared
    early, late = ((0.0, 0.5), (0.5, 1.0))
    halves = dataclasses.replace(pair[0], images=early), dataclasses.replace(pair[1], images=late)
    assert overlap(halves, members) is None, "images count within each class"


def test_apart_is_looked_at_in_the_file_and_again_on_the_track(tmp_path):
    def two(old, new):
        early = {"name": "old", "groups": old, "classes": [0, 0.5]}
        late = {"name": "new", "groups": new, "classes": [0.5, 1]}
        return {"apart": True, "generations": [early, late]}

    with pytest.raises(BenchError, match=r"mine.yaml: generations: .* share groups home, within"):
        registry.protocol(write(tmp_path, **two(old=["home"], new=["home", "away"])))
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
        ({"set": {"bt2.extr": 8}}, "set: bt2.extr: unknown key 'extr'; did you mean 'extra'"),
        ({"set": {"fct:simclr.width": 8, "fct.widht": 8}}, "set: fct.widht: unknown key 'widht'"),
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
        ({"generations": [OLD, {"name": "recipe"}]}, "'recipe' is what --set calls something else"),
        ({"generations": [OLD, {"name": "data"}]}, "'data' is what --set calls something else"),
        ({"generations": [OLD, {"name": "bct"}]}, "'bct' is the name of a method"),
    ],
)  # fmt: skip
def test_protocols_refused(tmp_path, changes, words):
    with pytest.raises(BenchError, match=words) as caught:
        registry.protocol(write(tmp_path, **changes))
    assert str(caught.value).startswith("mine.yaml: ") and "\n" not in str(caught.value)


def test_parameters_in_the_source_are_those_of_the_class():
    for name, file in registry.method_files().items():
        known = {f.name for f in dataclasses.fields(registry.method_class(name))}
        assert parameters_of(file.module) == known, name
    assert parameters_of("benchmark.nothing_here") == frozenset()


def test_options_that_the_dataset_does_not_have(tmp_path):
    protocol = build(Protocol, MINE, "p.yaml")
    with pytest.raises(BenchError, match=r"--set data.classez: unknown key .* mean 'classes'"):
        set_up(protocol, registry.track("toy"), {"data.classez": 8}, [])
    path = tmp_path / "other.yaml"
    value = {"id": "other", "version": 1, "title": "O", "extends": "toy", "data": {"classez": 8}}
    path.write_text(yaml.safe_dump(value))
    with pytest.raises(BenchError, match=r"other.yaml: data: unknown key 'classez'"):
        request(["bct"], "open-class", str(path))
    path.write_text(yaml.safe_dump({**value, "version": 0, "data": {}}))
    with pytest.raises(BenchError, match=r"other.yaml: version: expected at least 1"):
        registry.track(str(path))


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


def test_declared_numbers_are_those_of_the_data():
    for name, options in (("toy", {"classes": 8, "images": 4}), ("glyphs", {"draws": 1}),
                          ("glyphs", {"draws": 1, "tuning": True})):  # fmt: skip
        made = registry.dataset(name).load(None, **options).train
        assert registry.dataset(name).numbers(**options) == {
            "train_classes": len(set(made.labels.tolist())), "train_images": len(made),
        }  # fmt: skip
    assert declared(registry.track("glyphs"))["train_images"] == 31200
    assert declared(registry.track("places365"))["train_classes"] == 365
    assert declared(registry.track("omniglot")) == {}


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
