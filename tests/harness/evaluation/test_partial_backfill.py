"""A partly backfilled gallery, from the outputs of stages."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from support.losses import arcface
from support.made_stages import of_folders

from benchmark import BenchError
from benchmark.data.toy import Toy
from benchmark.harness.evaluation.partial_backfill import LastUpdate, evaluate_backfilling
from benchmark.metrics import backfill_orders
from benchmark.metrics.backfill_orders import make_orders
from benchmark.models.basis import Rotation
from benchmark.models.heads import Head
from benchmark.models.module import Portable, load_module, save_module
from benchmark.models.parts import Affine, FirstDims, KeepSide

PARAMS = {
    "generations": ["first", "old", "new"], "seed": 3, "distance": "cosine", "fpir": [0.1],
    "orders": ["random", "priority", "entropy", "entropy:old", "true-l2", "true-disc",
               "true-l2+disc"],
}  # fmt: skip


class SideMean(Portable):
    """A priority by the side-information alone."""

    def forward(self, vectors, side):
        return side.mean(1)


class Broken(Portable):
    """A priority that is no number."""

    def forward(self, vectors, side):
        return vectors[:, 0] * float("nan")


def evaluate(inputs, items, **params):
    return evaluate_backfilling(LastUpdate(of_folders(inputs, **params)), items)


@pytest.fixture(scope="module")
def items():
    return Toy(classes=8, images=8, size=8).load(None).evaluations["test"]


@pytest.fixture
def inputs(items, tmp_path):
    """Three generations of 4, 5 and 6 dimensions; the last update maps 5 to 6."""
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    found = {}
    for role, dim in (("vectors0", 4), ("vectors1", 5), ("vectors2", 6), ("side1", 2)):
        found[role] = tmp_path / role
        found[role].mkdir()
        rows = rng.standard_normal((len(items.labels), dim)).astype(np.float32)
        np.save(found[role] / "vectors.npy", rows)
    for role in ("update1", "update2", "head_old", "head_new"):
        found[role] = tmp_path / role
        found[role].mkdir()
    classes = np.unique(items.labels)[::-1].tolist()
    save_module(Head("softmax", 5, [0, 1, 2]), found["head_old"] / "head.safetensors")
    save_module(
        Head("arcface", 6, [*classes, 999], scale=8.0, margin=0.3),
        found["head_new"] / "head.safetensors",
    )
    save_module(KeepSide(Affine(5, 6)), found["update2"] / "convert.safetensors")
    save_module(SideMean(), found["update2"] / "priority.safetensors")
    return found


def test_the_last_update_counts(inputs):
    state = LastUpdate(of_folders(inputs, **PARAMS)).state
    shapes = [state.old.shape[1], state.stored.shape[1], state.view.shape[1], state.new.shape[1]]
    assert shapes == [5, 6, 6, 6]
    np.testing.assert_array_equal(state.new, state.view)


def test_everything_is_known(inputs, items):
    found = evaluate(inputs, items, **PARAMS)
    assert (found["old"], found["new"]) == ("old", "new")
    assert list(found["orders"]) == PARAMS["orders"]
    assert found["omitted"] == {}
    assert set(found["orders"]["priority"]["tau"]) == {"true-l2", "true-disc", "true-l2+disc"}


def test_losses_and_distances_are_those_that_training_had(inputs, items):
    """FastFill eq. 3 for each item, in float64; directions count for an arcface head."""
    update = LastUpdate(of_folders(inputs, **PARAMS))
    state, known = update.state, update.known_items(items)
    head = load_module(inputs["head_new"] / "head.safetensors")
    rows = [head.classes.tolist().index(label) for label in items.labels]
    stored = state.stored.astype(np.float64)
    expected = [arcface(head, stored[i : i + 1], rows[i : i + 1]) for i in range(len(rows))]
    np.testing.assert_allclose(known.disc, expected, rtol=1e-4)
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (stored, state.new)]
    np.testing.assert_allclose(known.l2, ((unit[0] - unit[1]) ** 2).sum(1), rtol=1e-5)


def test_the_length_of_vectors_counts_for_a_softmax_head(inputs, items):
    save_module(Head("softmax", 6, [0, 1]), inputs["head_new"] / "head.safetensors")
    update = LastUpdate(of_folders(inputs, **PARAMS))
    state, known = update.state, update.known_items(items)
    expected = ((state.stored.astype(np.float64) - state.new) ** 2).sum(1)
    np.testing.assert_allclose(known.l2, expected, rtol=1e-6)


def test_priority_sees_what_is_stored(inputs, items):
    known = LastUpdate(of_folders(inputs, **PARAMS)).known_items(items)
    side = np.load(inputs["side1"] / "vectors.npy")
    np.testing.assert_allclose(known.priority, side.mean(1), rtol=1e-6)


def test_class_means_are_of_what_the_gallery_stores(inputs, items):
    stored, queries = np.arange(0, len(items.labels), 2), np.arange(1, len(items.labels), 2)
    apart = dataclasses.replace(items, query=queries, gallery=stored)
    update = LastUpdate(of_folders(inputs, **PARAMS))
    orders, _ = make_orders(["class-distance"], update.known_items(apart))
    place = np.argsort(orders["class-distance"])
    vectors = update.state.stored.copy()
    vectors[queries] = 1e3  # of photographs that a deployment has not
    update.state = dataclasses.replace(update.state, stored=vectors)
    moved, _ = make_orders(["class-distance"], update.known_items(apart))
    other = np.argsort(moved["class-distance"])
    np.testing.assert_array_equal(np.argsort(place[stored]), np.argsort(other[stored]))
    taken = backfill_orders.class_distance(vectors[stored], items.labels[stored])
    wanted = backfill_orders.by_score(taken, items.ids[stored])
    np.testing.assert_array_equal(np.argsort(other[stored]), wanted)


def test_an_order_that_cannot_be_made_says_why(inputs, items):
    save_module(Head("softmax", 6, [0, 1]), inputs["head_new"] / "head.safetensors")
    del inputs["head_old"]
    (inputs["update2"] / "priority.safetensors").unlink()
    found = evaluate(inputs, items, **PARAMS)
    n = len(items.labels)
    assert found["omitted"] == {
        "priority": "the method gives no priority",
        "entropy:old": "the old classifier is not kept",
        "true-disc": f"the new classifier knows the classes of 0 of {n} items",
        "true-l2+disc": f"the new classifier knows the classes of 0 of {n} items",
    }


def test_queries_in_the_old_space_do_not_ask_the_new_classifier(inputs, items):
    (inputs["update2"] / "convert.safetensors").unlink()
    save_module(FirstDims(5), inputs["update2"] / "query_view.safetensors")
    found = evaluate(inputs, items, **PARAMS)
    assert set(found["orders"]) == {"random", "priority", "entropy:old", "true-l2"}
    assert "old space" in found["omitted"]["entropy"]


def test_old_vectors_stand_in_the_longer_index_with_zeros(inputs, items):
    (inputs["update2"] / "convert.safetensors").unlink()
    save_module(FirstDims(5), inputs["update2"] / "query_view.safetensors")
    state = LastUpdate(of_folders(inputs, **PARAMS)).state
    np.testing.assert_array_equal(state.view, state.new)
    np.testing.assert_array_equal(state.stored, np.c_[state.old, np.zeros(len(state.old))])
    for distance in ("cosine", "l2"):
        params = PARAMS | {"distance": distance, "orders": ["random"]}
        found = evaluate(inputs, items, **params)
        curve = found["orders"]["random"]["curves"]["cmc_at_1"]
        ends = [
            first_rank(state.new[:, :5], state.old, items, distance),
            first_rank(state.new, state.new, items, distance),
        ]
        assert [curve[0], curve[-1]] == pytest.approx(ends, abs=1e-4)  # four digits are kept


def test_lists_of_two_lengths_have_no_distance_in_common(inputs, items):
    (inputs["update2"] / "convert.safetensors").unlink()
    save_module(Affine(6, 5), inputs["update2"] / "query_view.safetensors")
    state = LastUpdate(of_folders(inputs, **PARAMS)).state
    assert (state.view.shape[1], state.stored.shape[1], state.new.shape[1]) == (5, 5, 6)
    found = evaluate(inputs, items, **PARAMS | {"distance": "l2"})
    assert found["reason"] == "l2 distances in 5 and 6 dimensions cannot be ranked together"


def test_queries_of_another_space_give_no_curve_unless_they_keep_distances(inputs, items):
    params = PARAMS | {"orders": ["random"]}
    save_module(Affine(6, 6), inputs["update2"] / "query_view.safetensors")
    for distance in ("cosine", "l2"):
        found = evaluate(inputs, items, **params | {"distance": distance})
        assert "another space" in found["reason"] and "orders" not in found
    save_module(Rotation(6), inputs["update2"] / "query_view.safetensors")
    for distance in ("cosine", "l2"):
        found = evaluate(inputs, items, **params | {"distance": distance})
        assert len(found["orders"]["random"]["curves"]["map"]) == 101


def test_a_filled_item_is_found_before_an_old_one_that_is_nearer_in_its_part(tmp_path):
    """One query, worked by hand: 0.8 of its length are the part that old vectors have.

    The old wrong item is at cosine 0.9 to that part, the new right one at 0.85 to the whole: two
    cosines put the wrong one first, one index puts it at 0.9 * 0.8 = 0.72.
    """
    query, wrong = np.array([0.8, 0.0, 0.6]), np.array([0.9, np.sqrt(1 - 0.81), 0.0])
    side = np.array([0.6, 0.0, -0.8])  # at a right angle to the query
    right = 0.85 * query + np.sqrt(1 - 0.85**2) * side
    rows = {
        "vectors0": np.array([[1, 0], wrong[:2], [0, 1]]),
        "vectors1": np.array([query, [0, 1, 0], right]),
    }
    folders = {name: tmp_path / name for name in (*rows, "update1")}
    for name, folder in folders.items():
        folder.mkdir()
        if name in rows:
            np.save(folder / "vectors.npy", rows[name].astype(np.float32))
    save_module(FirstDims(2), folders["update1"] / "query_view.safetensors")
    state = LastUpdate(of_folders(folders, generations=["old", "new"], distance="cosine")).state
    products = state.view[0] @ np.array([state.stored[1], state.new[2]]).T
    np.testing.assert_allclose(products, [0.72, 0.85], rtol=1e-6)


def test_vectors_that_cannot_be_compared(inputs, items):
    (inputs["update2"] / "convert.safetensors").unlink()
    assert evaluate(inputs, items, **PARAMS) == {
        "old": "old", "new": "new",
        "reason": "queries of 6 dimensions cannot rank a gallery of 5",
    }  # fmt: skip


def test_a_priority_that_is_no_number_is_refused(inputs, items):
    save_module(Broken(), inputs["update2"] / "priority.safetensors")
    with pytest.raises(BenchError, match="priority: expected a finite number for each of 32"):
        evaluate(inputs, items, **PARAMS)


def first_rank(queries, gallery, items, distance):
    """Share of queries whose best item is a right one, by all distances in float64."""
    q, g = (x.astype(np.float64) for x in (queries[items.query], gallery[items.gallery]))
    if distance == "cosine":
        q, g = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, g))
    far = ((q[:, None] - g[None]) ** 2).sum(2)
    far[items.ids[items.query][:, None] == items.ids[items.gallery]] = np.inf
    same = items.labels[items.query][:, None] == items.labels[items.gallery]
    best = [np.where(mask, far, np.inf).min(1) for mask in (same, ~same)]
    return (best[0] < best[1]).mean()
