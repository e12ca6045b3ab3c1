"""Side-information in plans, evaluations and records."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from support.made_stages import of_folders

from benchmark.api import run
from benchmark.config import registry
from benchmark.config.files import write_sealed
from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.errors import BenchError
from benchmark.harness.evaluation.details import score_side_information
from benchmark.harness.execution import Compute
from benchmark.harness.planner import make_plan
from benchmark.records.files import read_record
from benchmark.training.side_kinds import SIDES


def plan(kind, protocol="side-information", settings=None):
    labels = ["fct"]
    settings = {"fct.side": kind, **(settings or {})}
    setup = set_up(load_protocol(protocol), load_track("toy"), settings, labels)
    return make_plan(setup, labels, [0])


def stages(kind, what, **options):
    return [s for s in plan(kind, **options).stages if s.kind == what]


@pytest.mark.parametrize("kind", SIDES)
def test_the_first_generation_trains_the_only_one(kind):
    """FCT 3.4: side-information is made with the data and the architecture of the old model."""
    (side,) = stages(kind, "side")
    (old,) = [s for s in stages(kind, "train") if "old" in s.title]
    assert side.work.spec == old.work.spec
    assert side.work.seed != old.work.seed
    own = SIDES[kind].epochs == "model"
    track = load_track("toy")
    expected = dict(old.work.recipe)
    if SIDES[kind].contrastive:
        expected["augment"] = load_track("toy").recipe.simclr["augment"]
    expected["epochs"] = track.recipe.epochs if own else track.recipe.side_epochs
    assert side.work.recipe == expected
    if SIDES[kind].data == "own":
        assert side.work.splits == old.work.splits
        assert set(side.inputs) == {"data"}


SIMCLR = {"recipe.simclr.optimizer": "adamw", "recipe.simclr.augment.crop": 0.5}


@pytest.mark.parametrize("kind", ["simclr", "simclr-binary", "autoencoder", "mixup"])
def test_only_simclr_has_its_recipe(kind):
    """Nothing else is named by it: no model, no map, no other kind."""
    plain, changed = (plan(kind, settings=s).stages for s in ({}, SIMCLR))
    moved = {b.title for a, b in zip(plain, changed, strict=True) if a.name != b.name}
    (side,) = [s for s in changed if s.kind == "side"]
    if not SIDES[kind].contrastive:
        assert not moved
        return
    assert side.title in moved and not any("train new" in t or "train old" in t for t in moved)
    assert "fit independent (seed 0)" not in moved
    assert {s.name for s in plain if s.kind == "train"} <= {s.name for s in changed}
    recipe = side.work.recipe
    assert recipe["optimizer"] == "adamw" and recipe.get("lr", 0.1) == load_track("toy").recipe.lr
    assert recipe["augment"]["crop"] == 0.5 and recipe["augment"]["rotate"] == 15
    assert recipe["epochs"] == 2 and "simclr" not in recipe


def test_seeds_of_kinds_differ():
    seeds = {kind: stages(kind, "side")[0].work.seed for kind in SIDES}
    assert len(set(seeds.values())) == len(SIDES)


def test_the_next_generations_images_are_joined():
    (side,) = stages("simclr-next", "side")
    old, new = stages("simclr-next", "train")
    assert side.work.splits == [*old.work.splits, *new.work.splits]
    (open_side,) = stages("simclr-next", "side", protocol="open-class")
    assert [s["classes"] for s in open_side.work.splits] == [(0.0, 0.3), (0.3, 1.0)]


def test_another_domain_is_another_dataset():
    (side,) = stages("simclr-other", "side")
    assert side.inputs["other"].work.options == {"seed": 1}
    assert side.inputs["other"].name != side.inputs["data"].name
    assert side.work.splits[0]["classes"] == (0.0, 1.0)
    glyphs = {"track.other_domain": {"dataset": "glyphs"}}
    (side,) = stages("simclr-other", "side", settings=glyphs)
    assert side.inputs["other"].work.dataset == "glyphs"


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("simcrl", {}, "unknown side-information 'simcrl'; did you mean 'simclr'"),
        ("simclr-other", {"track.other_domain": {}}, "other_domain: missing key 'dataset'"),
        ("simclr-other", {"track.other_domain": {"dataset": "toi"}}, "did you mean 'toy'"),
        ("simclr-other", {"track.other_domain": {"dataset": "toy", "clases": 3}}, "clases"),
    ],
)
def test_refused_in_one_line(kind, settings, words):
    with pytest.raises(BenchError, match=words) as raised:
        plan(kind, settings=settings)
    assert "\n" not in str(raised.value)


def test_no_side_information_leaves_the_names_of_evaluations():
    assert all(s.work.side is None for s in stages("none", "evaluate"))
    assert not stages("none", "side")


def test_any_method_may_ask_for_it(monkeypatch):
    """One that trains a model too: old items' side-information for the update, and stored."""
    monkeypatch.setattr(registry.method_class("l2"), "needs", ("side:simclr",))
    setup = set_up(load_protocol("side-information"), load_track("toy"), {}, ["l2"])
    made = make_plan(setup, ["l2"], [0])
    (update,) = [s for s in made.stages if s.title == "train l2 (seed 0)"]
    (side,) = [s for s in made.stages if s.kind == "side"]
    assert update.inputs["side"].inputs["model"] == side
    evaluation = made.results[-1].evaluation
    assert evaluation.work.side == {"kind": "simclr", "bits": 32}
    assert evaluation.inputs["side0"].inputs["model"] == side


# --- what the record says


@pytest.fixture
def stored(tmp_path):
    """Side-information of the first of two generations."""
    rng = np.random.default_rng(0)
    n = 12
    vectors = rng.standard_normal((n, 5)).astype(np.float32) + 3
    side = np.sign(rng.standard_normal((n, 16))).astype(np.float32)
    for name, value in (("vectors0", vectors), ("vectors1", vectors), ("side0", side)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "vectors.npy", value)
    labels = np.repeat(np.arange(4), 3)
    query, gallery = np.arange(8), np.arange(2, 12)
    items = SimpleNamespace(labels=labels, ids=np.arange(n), query=query, gallery=gallery)
    inputs = {name: tmp_path / name for name in ("vectors0", "vectors1", "side0")}
    params = {
        "generations": ["old", "new"], "distance": "cosine", "tasks": ["retrieval"],
        "side": {"kind": "simclr-binary", "bits": 1},
    }  # fmt: skip
    return params, inputs, items, side.astype(np.float64), vectors.astype(np.float64)


def test_scores(stored):
    params, inputs, items, side, vectors = stored
    found = score_side_information(of_folders(inputs, **params), items)["side"]
    assert found["kind"] == "simclr-binary" and set(found["generations"]) == {"old"}
    old = found["generations"]["old"]
    assert (old["dim"], old["bytes"]) == (16, 2.0)
    # Linear CKA on the gallery: ||Y'X||^2 / (||X'X|| ||Y'Y||) of centred columns.
    x, y = (v[items.gallery] - v[items.gallery].mean(0) for v in (side, vectors))
    norm = np.linalg.norm
    assert old["cka"] == pytest.approx(norm(y.T @ x) ** 2 / (norm(x.T @ x) * norm(y.T @ y)))
    hits = []
    for q in items.query:
        others = [g for g in items.gallery if g != q]
        cosines = side[others] @ side[q]
        best = np.flatnonzero(cosines == cosines.max())
        if not any(items.labels[others[i]] == items.labels[q] for i in range(len(others))):
            continue
        hits.append({items.labels[others[i]] == items.labels[q] for i in best})
    # Signs give ties, and a wrong item as near as the right one counts against the query.
    low, high = np.mean([h == {True} for h in hits]), np.mean([True in h for h in hits])
    assert low < high
    assert old["scores"]["cmc_at_1"] == low
    json.dumps(found)


def test_constant_side_information_has_no_cka(stored):
    params, inputs, items, side, _ = stored
    np.save(inputs["side0"] / "vectors.npy", np.ones_like(side, np.float32))
    found = score_side_information(of_folders(inputs, **params), items)["side"]["generations"]
    assert found["old"]["cka"] is None


def test_nothing_is_said_where_nothing_is_stored(stored):
    params, inputs, items, _, _ = stored
    unranked = of_folders(inputs, **params | {"tasks": ["verification"]})
    found = score_side_information(unranked, items)["side"]["generations"]
    assert found["old"]["scores"] == {}
    assert score_side_information(of_folders(inputs, **params | {"side": None}), items) == {}


def test_records(tmp_path, heard, monkeypatch):
    """Of maps, and of a method that trains a model and asks for side-information too."""
    cls, seen = registry.method_class("l2"), []
    monkeypatch.setattr(cls, "needs", ("side:alternative",))
    train = cls.update
    monkeypatch.setattr(cls, "update", lambda me, job: seen.append(job.old.side) or train(me, job))
    made = run(
        ["fct", "fct:alternative", "fct:simclr-other", "l2"], "side-information", "toy",
        settings={"recipe.transform_steps": 2, "recipe.epochs": 1, "recipe.side_epochs": 1,
                  "fct.width": 16},
        store=tmp_path / "store", out=tmp_path / "runs", compute=Compute("cpu"), reporter=heard,
    )  # fmt: skip
    bound, none, alternative, other, trained = made
    assert bound.side is none.side is None
    assert alternative.as_json()["side"]["kind"] == "alternative"
    old = alternative.as_json()["side"]["generations"]["old"]
    assert (old["dim"], old["bytes"]) == (16, 64) and 0 < old["cka"] < 1
    assert set(old["scores"]) == {"cmc_at_1", "cmc_at_5", "map"}
    assert other.as_json()["side"]["generations"]["old"]["bytes"] == 512
    # The update is given what is stored of old items, and the record tells the same of it.
    assert trained.method == "l2" and trained.side == alternative.side
    assert [side.shape[1] for side in seen] == [16]
    # The model of the side-information is no part of the new one.
    assert none.cost.parameters == other.cost.parameters == bound.cost.parameters
    assert sum("dataset" in title for title in heard.titles) == 2
    path = next((tmp_path / "runs").rglob("fct+alternative/seed-0.json"))
    assert read_record(path) == alternative
    value = json.loads(path.read_text())
    del value["side"]
    write_sealed(path.with_name("seed-1.json"), value)
    assert read_record(path.with_name("seed-1.json")).side is None
