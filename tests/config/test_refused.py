"""Protocols, tracks and changes of a run that are refused: each in one line that names the field.

A row of a table is what stands otherwise in a sound file or run, and the words of the line.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from support.protocol_files import NEW, OLD, write, write_track

from benchmark.config import registry
from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.errors import BenchError

Row = tuple[Mapping[str, Any], str]


def ids(rows: list[Row]) -> list[str]:
    """Number and fields of each row."""
    return [f"{i}-{'-'.join(changes) or 'nothing'}" for i, (changes, _) in enumerate(rows)]


def generations(**new: Any) -> dict[str, Any]:
    """A new generation with some fields, after an old one that sees half of the classes."""
    return {"generations": [OLD, {"name": "new", **new}]}


def settings(*sets: Mapping[str, Any]) -> dict[str, Any]:
    """Settings ``s0``, ``s1``, ... of some changes each."""
    return {"settings": [{"name": f"s{i}", "set": each} for i, each in enumerate(sets)]}


INTERVALS = ([0.3, 0.3], [0.5, 0.2], [-0.1, 1], [0, 1.1])
TWICE = "expected each once, got '{}' twice"
TEXTS = {"name": "old", "queries": "texts"}
APART = {"apart": True, **generations(classes=[0.5, 1])}
PROTOCOLS: list[Row] = [
    # the protocol itself
    ({"id": "other"}, "expected 'mine'"),
    ({"taks": ["x"]}, "unknown key 'taks'; did you mean 'tasks'"),
    ({"version": 0}, "version: expected at least 1, got 0"),
    ({"version": "1"}, "version: expected a whole number"),
    ({"source": ""}, "source: expected a few words"),
    ({"question": "  "}, "question: expected a few words"),
    ({"old_head": "lost"}, "'kept' or 'discarded'"),
    ({"upper": "both"}, "'new' or 'all'"),
    # generations
    ({"generations": []}, "at least 2"),
    ({"generations": [OLD]}, "at least 2"),
    ({"generations": [OLD, OLD]}, "generations: expected each once"),
    ({"generations": [OLD, NEW, OLD]}, TWICE.format("old")),
    *((generations(**{key: interval}), rf"{key}: expected 0 <= low < high <= 1")
      for key in ("classes", "images") for interval in INTERVALS),
    (generations(groups=["home", "home"]), rf"generations\[1\].groups: {TWICE.format('home')}"),
    (generations(thinned={"a": 0}), "thinned.a: expected more than 0"),
    *((generations(name=name), "name: expected small letters") for name in ("new/er", "new'")),
    *((generations(name=name), f"name: expected none of .* got '{name}'")
      for name in ("recipe", "data")),
    (generations(name="bct"), "'bct' is the name of a method"),
    ({"apart": True}, r"'old' and 'new' share classes \[0.0, 0.5\]"),
    # tasks, orders and who is evaluated
    ({"tasks": []}, "tasks: expected a list of at least 1"),
    ({"tasks": ["retreival"]}, "unknown task 'retreival'; did you mean 'retrieval'"),
    ({"tasks": ["retrieval", "groups", "retrieval"]}, f"tasks: {TWICE.format('retrieval')}"),
    ({"tasks": ["groups", "retrieval", "reidentification"]},
     r"tasks\[2\]: expected scores of other names than those of retrieval, got "
     "reidentification, which has cmc_at_1, cmc_at_5, map too"),
    ({"tasks": ["backfilling"]}, "expected retrieval or identification beside"),
    *(({"tasks": ["retrieval", "backfilling"], "orders": orders}, words) for orders, words in (
        (["entropie"], "unknown order 'entropie'; did you mean 'entropy'"),
        ([], "orders: expected .*at least"))),
    ({"orders": ["sigma"]}, "orders: unknown order 'sigma'"),
    ({"orders": ["random", "random"]}, f"orders: {TWICE.format('random')}"),
    ({"evaluation": {"groups": ["away", "away"]}}, f"evaluation.groups: {TWICE.format('away')}"),
    ({"evaluation": {"classes": [0.5, 0.5]}}, "evaluation.classes: expected 0 <= low < high"),
    ({"evaluation": {"clases": [0, 1]}}, "did you mean 'classes'"),
    ({"evaluation": {"ranges": 4, "against": "x"}}, "expected ranges or against, got both"),
    # texts that ask
    ({**generations(queries="texts"), "tasks": ["text_retrieval"]}, "first of two"),
    ({"generations": [TEXTS, NEW], "tasks": ["retrieval"]}, "text_retrieval"),
    ({"tasks": ["text_retrieval"]}, "and only there"),
    ({"generations": [TEXTS, NEW], "tasks": ["retrieval", "text_retrieval", "backfilling"]},
     "tasks: expected no backfilling where the queries of 'old' are texts"),
    # what it sets, and its settings
    ({"set": {"old.haed": "softmax"}}, "set: old.haed: .*did you mean 'head'"),
    ({"set": {"protocol.tasks": ["retreival"]}},
     r"set: protocol.tasks: tasks\[0\]: unknown task 'retreival'; did you mean 'retrieval'"),
    (settings({"old.head": "softmax"}), "settings: expected none or at least 2"),
    ({"settings": [{"name": "a"}, {"name": "a"}]}, "settings: expected each once"),
    ({"settings": [{"name": "A b"}, {"name": "c"}]}, "small letters"),
    ({"settings": [{"nme": "a"}, {"name": "c"}]}, "unknown key 'nme'; did you mean 'name'"),
    ({"version": 2, "settings": [{"name": "a"}, {"name": "b", "version": 2}]},
     "settings 'b': version: expected more than .* 2, got 2"),
    (settings({}, {"protocol.tasks": ["reidentification", "retrieval"]}),
     r"settings 's1': protocol.tasks: tasks\[1\]: .*than those of reidentification, got retr"),
    *((APART | settings({}, {key: value}), f"settings 's1': {key}: .*{words}")
      for key, value, words in (
        ("odl.head", "softmax", "unknown owner 'odl'; did you mean 'old'"),
        ("old.haed", "softmax", "unknown key 'haed'; did you mean 'head'"),
        ("old.classes", [0.5, 0.2], "classes: expected 0 <= low"),
        ("new.classes", [0.4, 1], r"share classes \[0.4, 0.5\]"),
        ("protocol.tasks", [], "tasks: expected a list of at least 1"),
        ("protocol.tasks", ["retreival"], r"tasks\[0\]: unknown task 'retreival'"),
        ("evaluation.ranges", 1, "ranges: expected 0 or at least 2"),
        ("bt3.extra", 8, "unknown owner 'bt3'"),
        ("head", "softmax", "expected owner.field"))),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), PROTOCOLS, ids=ids(PROTOCOLS))
def test_protocols(tmp_path, changes, words):
    with pytest.raises(BenchError, match=f"^mine.yaml: .*{words}") as caught:
        load_protocol(write(tmp_path, **changes))
    assert "\n" not in str(caught.value)


def new_model(**fields: Any) -> dict[str, Any]:
    return {"models": {"new": fields}}


def recipe(**fields: Any) -> dict[str, Any]:
    return {"recipe": fields}


TRACKS: list[Row] = [
    # the track itself
    ({"id": "other"}, "expected 'mine'"),
    ({"extends": "toi"}, "extends: unknown track 'toi'; did you mean 'toy'"),
    ({"extends": ["toy"]}, r"extends: expected a track, got \['toy'\]"),
    ({"protocols": {"arch-change:deper": {"old.dim": 4}}},
     "protocols: protocol arch-change: unknown setting 'deper'; did you mean 'deeper'"),
    ({"extends": None}, "missing key"),
    ({"dataset": "glyph"}, "did you mean 'glyphs'"),
    ({"version": 0}, "version: expected at least 1"),
    ({"version": 10**12}, "version: expected at most"),
    ({"title": "a\x1b[2Jb"}, "title: expected plain text"),
    ({"note": "x" * 20_000}, "note: expected plain text"),
    ({"facts": {"train_images": -1}}, "facts.train_images: expected at least 0"),
    ({"groups": {"home": ["odd", "odd"]}}, f"groups.home: {TWICE.format('odd')}"),
    *(({"far": far}, words) for far, words in (
        ([2], r"far\[0\]: expected at most 1.0, got 2"), ([0], r"far\[0\]: expected more than 0"),
        ([-0.1], r"far\[0\]: expected more than 0"), ([], "far: expected a list of at least 1"),
        (0.1, "far: expected a list"), ([True], r"far\[0\]: expected a number"),
        ([0.1, 0.01, 0.1], "far: expected each once"))),
    *(({"fpir": fpir}, words) for fpir, words in (
        ([1.5], r"fpir\[0\]: expected at most 1"), ([], "fpir: expected a list of at least 1"),
        ([0.1, 0.1], "fpir: expected each once"))),
    # recipes
    (recipe(epoch=3), "did you mean 'epochs'"),
    (recipe(epochs=-1), "recipe.epochs: expected at least 0"),
    (recipe(epochs=10**12), "recipe.epochs: expected at most"),
    (recipe(batch_size=0), "recipe.batch_size: expected at least 1"),
    (recipe(batch_size=10**12), "recipe.batch_size: expected at most"),
    (recipe(lr=-1), "recipe.lr: expected at least 0"),
    (recipe(lr=float("nan")), "recipe.lr: expected"),
    (recipe(momentum=1), "recipe.momentum: expected less than 1"),
    (recipe(weight_decay=-1e-4), "recipe.weight_decay: expected at least 0"),
    (recipe(label_smoothing=1), "recipe.label_smoothing: expected less than 1"),
    *((recipe(warmup=share), "recipe.warmup: expected") for share in (1.0, -0.1)),
    (recipe(clip=-1), "recipe.clip: expected"),
    (recipe(optimizer="lion"), "recipe.optimizer: expected"),
    (recipe(schedule="step"), "recipe.schedule: expected"),
    (recipe(schedule="steps"), "milestones: expected some"),
    (recipe(milestones=[0.5]), "only there"),
    (recipe(schedule="steps", milestones=[0.5, 0.2]), "rising"),
    (recipe(transform_steps=10**12), "recipe.transform_steps: expected at most"),
    *((recipe(transform_steps=steps), "transform_steps") for steps in (-1, "80", "0 epochs")),
    (recipe(side_epochs=0), "recipe.side_epochs: expected"),
    (recipe(augment={"rotate": 1e9}), "recipe.augment.rotate: expected at most 180"),
    (recipe(augment={"shift": -1}), "recipe.augment.shift: expected at least 0"),
    (recipe(simclr={"optimiser": "sgd"}), "recipe: simclr: unknown key 'optimiser'"),
    # models
    (new_model(dim=0), "models.new.dim: expected at least 1"),
    (new_model(dim=10**12), "models.new.dim: expected at most 65536"),
    (new_model(head="arc"), "models.new.head: expected"),
    (new_model(scale=0), "models.new.scale: expected more than 0"),
    (new_model(margin=-1), "models.new.margin: expected at least 0"),
    *((new_model(backbone=name), "models.new.backbone: expected")
      for name in ("convnet-99999999", "convnet-8x1000000", "timm:hf-hub:a/b")),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), TRACKS, ids=ids(TRACKS))
def test_tracks(tmp_path, changes, words):
    with pytest.raises(BenchError, match=words) as caught:
        load_track(write_track(tmp_path, **changes))
    line = str(caught.value)
    assert "\n" not in line and line.startswith("mine.yaml: ")


def test_a_file_with_the_name_of_an_installed_track_is_not_it(tmp_path):
    """Records of either would lie in one folder, and be averaged; a copy is the same track."""
    installed = registry.track_files()["toy"]
    copy = tmp_path / "toy.yaml"
    copy.write_bytes(installed.read_bytes())
    assert load_track(str(copy)) == load_track("toy")
    copy.write_text("id: toy\nversion: 2\ntitle: Toy\nextends: toy\nrecipe: {epochs: 12}\n")
    with pytest.raises(BenchError, match="id: 'toy' is a track that is installed, and says"):
        load_track(str(copy))


def simclr(**fields: Any) -> dict[str, Any]:
    return {f"recipe.simclr.{name.replace('__', '.')}": value for name, value in fields.items()}


ALONE = "expected keys of its training alone, got "
CHANGES: list[Row] = [
    ({"head": "arcface"}, "--set head: expected owner.field"),
    ({"odl.head": "arcface"}, "--set odl.head: .*unknown owner 'odl'; did you mean 'old'"),
    ({"old.haed": "arcface"}, "--set old.haed: .*unknown key 'haed'; did you mean 'head'"),
    ({"old.head": "arcfase"}, "--set old.head: "),
    ({"old.dim": 0}, "--set old.dim: .*dim: expected at least 1"),
    ({"old.dim": "wide"}, "--set old.dim: .*dim: expected a whole number"),
    ({"old.dim": "x0.3"}, "--set old.dim: .*expected a whole number, got x0.3 of 16: 4.8"),
    *(({"old.classes": each}, "--set old.classes: .*finite number")
      for each in ([float("nan"), 1], [0, float("nan")])),
    ({"recipe.epoch": 3}, "--set recipe.epoch: .*did you mean 'epochs'"),
    ({"recipe.transform_batch": 1}, "transform_batch: expected at least 2"),
    ({"recipe.epochs": -1}, "--set recipe.epochs: .*epochs: expected at least 0"),
    ({"recipe.augment.rotat": 3}, "--set recipe.augment.rotat: .*did you mean 'rotate'"),
    ({"recipe.augmen.rotate": 3}, "--set recipe.augmen.rotate: .*did you mean 'recipe.augment'"),
    ({"track.distance": "l1"}, "--set track.distance: .*distance: expected 'cosine' or 'l2'"),
    ({"protocol.tasks": []}, "--set protocol.tasks: .*tasks"),
    ({"data.classez": 8}, "--set data.classez: unknown key .* mean 'classes'"),
    ({"mixbct.ratio": 0.1}, "--set mixbct.ratio: .*unknown owner 'mixbct'"),
    ({"bct:distil.weight": 1}, "--set bct:distil.weight: .*did you mean 'bct:distill'"),
    # among several changes the one that is wrong is named
    ({"recipe.schedule": "steps"}, "--set recipe.schedule: milestones: expected some"),
    ({"recipe.epochs": 3, "recipe.milestones": [0.5]}, "--set recipe.milestones: .*only there"),
    ({"recipe.schedule": "steps", "recipe.milestones": [0.5, 0.4]},
     r"--set recipe.milestones: milestones: expected rising shares, got \[0.5, 0.4\]$"),
    ({"recipe.lr": 0.1, "recipe.epochs": "a"}, "--set recipe.epochs: epochs: expected a whole"),
    ({"recipe.epochs": 3, "recipe.lrr": 1}, "--set recipe.lrr: unknown key 'lrr'"),
    ({"new.dim": 8, "new.triplet": 1.0}, "per_class: expected at least 2"),
    ({"recipe.augment.crop": 0.5, "recipe.augment": {"flip": True}},
     "--set recipe.augment.crop: expected it or all of recipe.augment, got both"),
    ({"recipe.simclr": {"lr": 1}, "recipe.simclr.augment.hue": 0.1}, "all of recipe.simclr, got"),
    ({"protocol.generations": [{"name": "old"}, {"name": "new"}], "old.classes": [0, 1]},
     "--set protocol.generations: expected it or --set old.classes, got both"),
    ({"old.classes": [0, 0.6]}, "--set old.classes: generations: "),
    # what SimCLR's training changes
    *(({"recipe.simclr": value}, words) for value, words in (
        ({"lrr": 1}, "simclr: unknown key 'lrr'; did you mean 'lr'"),
        ({"lr": -1}, "simclr: lr: expected at least 0.0, got -1"),
        ({"simclr": {}}, f"simclr: {ALONE}'s"), ({"epochs": 3}, f"{ALONE}'epochs'"),
        ({"augment": {"crp": 1}}, "simclr: augment: unknown key 'crp'"),
        (3, "simclr: expected a mapping, got 3"))),
    (simclr(lrr=1), "unknown key 'lrr'; did you mean 'lr'"),
    (simclr(simclr={}), f"{ALONE}'simclr'"),
    (simclr(side_epochs=3), f"{ALONE}'side_epo"),
    (simclr(optimizer="lar"), "optimizer: expected .* or 'lars', got 'lar'"),
    (simclr(augment__hue=1), "hue: expected at most 0.5"),
    (simclr(augment__hu=1), "unknown key 'hu'; did you mean 'hue'"),
    ({"recipe.simcl.lr": 1}, "unknown owner 'recipe.simcl'; did you mean 'recipe.simclr'"),
    ({"new.recipe": {"simclr": {"lrr": 1}}}, "models: recipe: simclr: unknown key 'lrr'"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), CHANGES, ids=ids(CHANGES))
def test_changes_of_a_run(changes, words):
    protocol, track = load_protocol("open-class"), load_track("toy")
    with pytest.raises(BenchError, match=words) as caught:
        set_up(protocol, track, changes, ["bct", "bct:distill"])
    assert "\n" not in str(caught.value)
