"""Protocols, tracks, and the changes of a run."""

import math

import pytest
import yaml

from benchmark.config import registry
from benchmark.config.generations import GenerationSpec
from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.config.overrides import expand
from benchmark.config.protocols import Protocol
from benchmark.config.reading import build
from benchmark.config.recipes import ModelSpec, Recipe
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
    with pytest.raises(BenchError, match=r"settings 'b': version: expected more than .* 2, got 2"):
        protocol(version=2, settings=settings)


@pytest.mark.parametrize("interval", [[0.3, 0.3], [0.5, 0.2], [-0.1, 1], [0, 1.1]])
@pytest.mark.parametrize("key", ["classes", "images"])
def test_fractions(key, interval):
    with pytest.raises(
        BenchError, match=rf"generations\[1\]\.{key}: expected 0 <= low < high <= 1"
    ):
        generations = [{"name": "old"}, {"name": "new", key: interval}]
        protocol(generations=generations)


@pytest.mark.parametrize("interval", [[math.nan, 1], [0, math.nan]])
def test_fractions_are_numbers(interval):
    with pytest.raises(BenchError, match=r"generations\[1\]\.classes.*finite number"):
        protocol(generations=[{"name": "old"}, {"name": "new", "classes": interval}])


def test_a_generation_sees_everything_unless_told():
    assert GenerationSpec(name="x").classes == GenerationSpec(name="x").images == (0.0, 1.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"generations": [{"name": "a"}, {"name": "a"}]}, "generations: expected each once"),
        ({"generations": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}, "got 'a' twice"),
        ({"tasks": ["retrieval", "groups", "retrieval"]},
         "tasks: expected each once, got 'retrieval' twice"),
        ({"orders": ["random", "random"]}, "orders: expected each once, got 'random' twice"),
        ({"generations": [{"name": "a"}, {"name": "b", "groups": ["home", "home"]}]},
         r"generations\[1\].groups: expected each once, got 'home' twice"),
        ({"evaluation": {"groups": ["away", "away"]}},
         "evaluation.groups: expected each once, got 'away' twice"),
        ({"generations": [{"name": "old"}]}, "at least 2"),
        ({"generations": []}, "at least 2"),
        ({"tasks": []}, "tasks"),
        ({"old_head": "lost"}, "'kept' or 'discarded'"),
        ({"upper": "both"}, "'new' or 'all'"),
        ({"version": "1"}, "version: expected a whole number"),
        ({"taks": ["x"]}, "did you mean 'tasks'"),
    ],
)  # fmt: skip
def test_protocols_refused(changes, words):
    with pytest.raises(BenchError, match=words):
        protocol(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epochs": -1}, "epochs"), ({"batch_size": 0}, "batch_size"),
        ({"transform_steps": -1}, "transform_steps"), ({"side_epochs": 0}, "side_epochs"),
        ({"warmup": 1.0}, "warmup"), ({"warmup": -0.1}, "warmup"),
        ({"optimizer": "lion"}, "optimizer"), ({"schedule": "step"}, "schedule"),
        ({"schedule": "steps"}, "milestones: expected some"), ({"milestones": [0.5]}, "only there"),
        ({"schedule": "steps", "milestones": [0.5, 0.2]}, "rising"), ({"clip": -1}, "clip"),
        ({"transform_steps": "80"}, "transform_steps"),
        ({"transform_steps": "0 epochs"}, "transform_steps"),
    ],
)  # fmt: skip
def test_recipes_refused(changes, words):
    with pytest.raises(BenchError, match=words):
        build(Recipe, {"epochs": 1, **changes}, "t.yaml")


def test_steps_of_a_map_are_a_number_or_passes_over_its_pairs():
    steps = build(Recipe, {"epochs": 1, "transform_steps": 7}, "t.yaml")
    passes = build(Recipe, {"epochs": 1, "transform_steps": "80 epochs"}, "t.yaml")
    assert [steps.map_steps(n) for n in (3, 1000)] == [7, 7]
    # Batches of 256; a last one that is not whole is left out.
    assert [passes.map_steps(n) for n in (3, 255, 256, 1000)] == [80, 80, 80, 240]


def test_models_refused():
    with pytest.raises(BenchError, match="dim"):
        build(ModelSpec, {"backbone": "convnet-4", "dim": 0}, "t.yaml")
    with pytest.raises(BenchError, match="head"):
        build(ModelSpec, {"backbone": "convnet-4", "dim": 2, "head": "arc"}, "t.yaml")


def test_a_track_has_an_old_and_a_new_model(toy):
    with pytest.raises(BenchError, match="models: expected 'old' and 'new'"):
        build(Track, {**dict(toy), "models": {"old": toy.models["old"]}}, "toy.yaml")


# --- files


def test_every_protocol_and_track_that_comes_with_it():
    for name in registry.track_files():
        assert load_track(name).id == name
    for name in registry.protocol_files():
        made = load_protocol(name)
        assert made.id == name
        assert all(set_up(each, load_track("toy"), {}, []) for each in expand(made))


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


def write(folder, name, value):
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(value))
    return str(path)


def test_a_track_extends_another(tmp_path):
    path = write(
        tmp_path, "mine",
        {"id": "mine", "version": 3, "title": "Mine", "extends": "toy",
         "models": {"old": {"head": "cosface"}}, "recipe": {"augment": {"rotate": 9}}},
    )  # fmt: skip
    made, base = load_track(path), load_track("toy")
    assert made.models["old"] == base.models["old"].model_copy(update={"head": "cosface"})
    assert made.models["new"] == base.models["new"]
    assert made.recipe == base.recipe.model_copy(
        update={"augment": base.recipe.augment.model_copy(update={"rotate": 9.0})}
    )
    assert (made.id, made.version, made.dataset) == ("mine", 3, "toy")


def test_another_head_keeps_nothing_that_was_said_of_one(tmp_path):
    """The scale and margin of arcface would be refused beside softmax."""
    value = {"id": "mine", "version": 1, "title": "Mine", "extends": "glyphs",
             "models": {"new": {"head": "softmax"}, "mobile": {"dim": 32}}}  # fmt: skip
    made = load_track(write(tmp_path, "mine", value))
    usual = load_track("toy").models["old"]
    assert (made.models["new"].head, made.models["new"].scale) == ("softmax", usual.scale)
    assert (made.models["mobile"].head, made.models["mobile"].scale) == ("arcface", 16)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"id": "mine", "extends": "toi"}, "unknown track 'toi'; did you mean 'toy'"),
        ({"id": "other", "extends": "toy"}, "expected 'mine'"),
        ({"id": "mine", "extends": "toy", "recipe": {"epoch": 3}}, "did you mean 'epochs'"),
        ({"id": "mine", "extends": "toy", "dataset": "glyph"}, "did you mean 'glyphs'"),
        ({"id": "mine"}, "missing key"),
        ({"id": "mine", "extends": "toy", "far": [0.1, 0.01, 0.1]}, "far: expected each once"),
        ({"id": "mine", "extends": "toy", "groups": {"home": ["odd", "odd"]}},
         "groups.home: expected each once, got 'odd' twice"),
    ],
)  # fmt: skip
def test_tracks_refused(tmp_path, value, words):
    with pytest.raises(BenchError, match=words):
        load_track(write(tmp_path, "mine", value))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({**PROTOCOL, "id": "mine", "tasks": ["retreival"]}, "did you mean 'retrieval'"),
        ({**PROTOCOL, "id": "mine", "generation": []}, "did you mean 'generations'"),
        (PROTOCOL, "expected 'mine'"),
    ],
)
def test_protocol_files_refused(tmp_path, value, words):
    with pytest.raises(BenchError, match=words):
        load_protocol(write(tmp_path, "mine", value))


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


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("head", "arcface", "--set head: expected owner.field"),
        ("odl.head", "arcface", "unknown owner 'odl'; did you mean 'old'"),
        ("old.haed", "arcface", "unknown key 'haed'; did you mean 'head'"),
        ("old.head", "arcfase", "--set old.head"),
        ("old.dim", 0, "dim: expected at least 1"),
        ("old.dim", "wide", "dim: expected a whole number"),
        ("recipe.epoch", 3, "did you mean 'epochs'"),
        ("recipe.epochs", -1, "epochs: expected at least 0"),
        ("recipe.augment.rotat", 3, "did you mean 'rotate'"),
        ("recipe.augmen.rotate", 3, "did you mean 'recipe.augment'"),
        ("track.distance", "l1", "distance: expected 'cosine' or 'l2'"),
        ("protocol.tasks", [], "tasks"),
        ("mixbct.ratio", 0.1, "unknown owner 'mixbct'"),
        ("bct:distil.weight", 1, "did you mean 'bct:distill'"),
    ],
)
def test_changes_refused(toy, key, value, words):
    with pytest.raises(BenchError) as caught:
        set_up(protocol(), toy, {key: value}, ["bct", "bct:distill"])
    assert words in str(caught.value)
    assert f"--set {key}" in str(caught.value) and "\n" not in str(caught.value)


def test_a_model_that_the_track_does_not_have(toy):
    generations = [{"name": "old"}, {"name": "new", "model": "nwe"}]
    with pytest.raises(BenchError, match="no model 'nwe'; did you mean 'new'"):
        set_up(protocol(generations=generations), toy, {}, [])


def test_unknown_parameters_of_a_method():
    with pytest.raises(BenchError, match="did you mean 'weight'"):
        registry.method("bct", {"weigth": 2})
    with pytest.raises(BenchError, match="did you mean 'mixbct'"):
        registry.method("mixbtc")
    with pytest.raises(BenchError, match="did you mean 'distill'"):
        registry.method("bct:distil")
    assert registry.method("bct:distill", {"weight": 2}).weight == 2.0


def test_a_track_is_a_track(toy):
    assert isinstance(toy, Track)
