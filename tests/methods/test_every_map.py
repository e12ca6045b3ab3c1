"""Rules for every method with a map: an item is converted alone, new/new is independent's."""

import numpy as np
import pytest
import torch
from support.toy_runs import ONE_EPOCH, run_toy
from support.training import map_trainer

from benchmark.config import registry
from benchmark.config.recipes import Recipe
from benchmark.contract.arrays import BLOCK, apply, apply_part
from benchmark.contract.bases import FeatureTransformation
from benchmark.contract.conversion import Conversion
from benchmark.contract.pairs import Pairs
from benchmark.contract.two_models import TwoModels
from benchmark.errors import BenchError
from benchmark.models.heads import Head
from benchmark.models.module import save_module
from benchmark.models.transformation import (
    Bottlenecks,
    ParallelBottlenecks,
    Transformation,
    Uncertain,
)

CLASSES = {name: registry.method_class(name) for name in registry.method_files()}
NAMES = [
    n for n, cls in CLASSES.items()
    if issubclass(cls, FeatureTransformation) and not issubclass(cls, TwoModels)
    and "gallery" in registry.method(n).changes
]  # fmt: skip
QUERIES = [
    *(f"{n}:query" for n in NAMES if "query" in CLASSES[n].variants),
    "drift-adapter", "drift-adapter:procrustes", "drift-adapter:low-rank", "local-drift",
]  # fmt: skip
OTHERS = [  # other architectures
    "local-drift:gallery", "fct:layer-norm", "fastfill:diagonal", "lce:mlp", "rbt:chain",
    "lambda-orthogonal-full:relaxed",
]  # fmt: skip
QUICK = {"runs": 1, "restarts": 1, "refinements": 2}  # of what has no budget of steps
PRIORITY = ("fastfill", "lambda-orthogonal-full")
SIDED = ["fct:simclr", "fct:simclr-alone", "fastfill:simclr"]
OLD, NEW, SIDE = 64, 48, 24


def test_all_maps_are_found():
    assert {
        "class-mean", "fastfill", "fct", "lambda-orthogonal", "lambda-orthogonal-full", "lce",
        "linear", "linear-500", "low-rank", "mini-vec2vec", "procrustes", "rbt", "relative",
        "residual-mlp",
    } <= set(NAMES)  # fmt: skip
    assert len(QUERIES) >= 11


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    old = rng.standard_normal((2 * BLOCK + 6, OLD)).astype(np.float32)
    return {
        "old": old,
        "new": np.tanh(old @ rng.standard_normal((OLD, NEW)) / 4).astype(np.float32),
        "side": rng.standard_normal((len(old), SIDE)).astype(np.float32),
        "labels": rng.integers(0, 4, len(old)),
        "weight": rng.standard_normal((4, NEW)).astype(np.float32),
    }


@pytest.mark.parametrize(
    ("label", "chain"),
    [*((n, False) for n in [*NAMES, *QUERIES, *OTHERS, *SIDED]), *((n, True) for n in SIDED)],
)
def test_an_item_is_converted_alone(arrays, label, chain, tmp_path):
    """Bit for bit in any order and batch, stored; in a chain with g, and the priority of all."""
    side = arrays["side"] if label in SIDED else None
    params: dict = {"width": 64} if hasattr(CLASSES[label.partition(":")[0]], "width") else {}
    new, weight = arrays["new"], arrays["weight"]
    if label.startswith("mini-vec2vec"):  # a rotation: both of one size
        params, weight = QUICK, None
        new = np.concatenate([new, arrays["side"][:, : OLD - NEW]], axis=1)
    made = registry.method(label, params).fit(
        arrays["old"], new, arrays["labels"], side, weight,
        recipe=Recipe(epochs=1, transform_steps=3, transform_batch=64), device="cpu",
        new_side=arrays["side"][:, :20] if chain else None,
    )  # fmt: skip
    assert made.maps_side == chain
    assert ("priority" in made.parts) == label.startswith(PRIORITY)

    def given(rows):
        """All that is made of these items, in this order."""
        stored = arrays["old"][rows], None if side is None else side[rows]
        converted = made.convert(*stored)
        found = [*converted] if chain else [converted]
        found.append(made.view(new[rows]))
        return [*found, made.priority(*stored)] if "priority" in made.parts else found

    n = len(arrays["old"])
    whole = given(np.arange(n))
    made.save(tmp_path / "map")
    made = Conversion.load(tmp_path / "map")
    changed = whole[-1] if label in QUERIES else whole[0]
    assert len(np.unique(changed, axis=0)) == n
    shuffled = np.random.default_rng(1).permutation(n)
    for rows in (shuffled, shuffled[: BLOCK + 1], np.arange(n)[::-1][:7], shuffled[:1]):
        for part, all_of_it in zip(given(rows), whole, strict=True):
            np.testing.assert_array_equal(part, all_of_it[rows])


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("label", [*NAMES, *QUERIES])
def test_few_items_that_come_many_times(label, arrays):
    """Items that are the same by the old model: a map has numbers, and keeps them the same."""
    old, new = (np.repeat(arrays[name][:3], 16, axis=0) for name in ("old", "new"))
    params: dict = {"width": 64} if hasattr(CLASSES[label.partition(":")[0]], "width") else {}
    weight = arrays["weight"]
    if label.startswith("mini-vec2vec"):  # a rotation: both of one size
        params, weight, new = QUICK, None, np.repeat(arrays["old"][3:6], 16, axis=0)
    made = registry.method(label, params).fit(
        old, new, np.repeat(np.arange(3), 16), None, weight,
        recipe=Recipe(epochs=1, transform_steps=3, transform_batch=16), device="cpu",
    )  # fmt: skip
    converted = made.convert(old)
    assert np.isfinite(converted).all() and np.isfinite(made.view(new)).all()
    assert len(np.unique(converted, axis=0)) <= 3


RUN = [*NAMES, "procrustes:query"]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    settings = {f"{n}.width": 16 for n in NAMES if hasattr(CLASSES[n], "width")}
    rotations = [n for n in NAMES if n.startswith("mini-vec2vec")]
    settings |= {f"{n}.{name}": value for n in rotations for name, value in QUICK.items()}
    settings |= {"data.classes": 16, **ONE_EPOCH}
    return run_toy(RUN, tmp_path_factory.mktemp("run"), "side-information", **settings)


@pytest.mark.parametrize("label", RUN)
def test_new_new_is_independents(records, label):
    made, alone = records[label], records["independent"]
    for case in ("old/old", "new/new"):
        assert made.scores[case] == alone.scores[case]
        assert made.intervals[case] == alone.intervals[case]
    assert made.scores["new/old"] != alone.scores["new/old"]
    assert ("old'/old'" in made.scores) == (label in NAMES)


SMALL = {
    "transformation": lambda: Transformation(12, 3, 8, 256, normalise=True),
    "uncertain": lambda: Uncertain(Transformation(12, 3, 5, 16, True), 5),
    "parallel": lambda: ParallelBottlenecks(12, 16, 2, 16, True),
    "chain": lambda: Bottlenecks(12, 16, 2, 16, True),
}


@pytest.mark.parametrize("kind", SMALL)
def test_a_stored_map_converts_an_item_alone(kind, tmp_path):
    """Bit for bit, whatever stands before, after and beside it."""
    torch.manual_seed(0)
    made = SMALL[kind]()
    rng = np.random.default_rng(0)
    vectors, side = (rng.standard_normal((1030, d)).astype(np.float32) for d in (12, 3))
    made(torch.from_numpy(vectors[:50]), torch.from_numpy(side[:50]))  # norms have seen something
    if kind == "uncertain":
        torch.nn.init.normal_(made.psi.weight)
    save_module(made.eval(), tmp_path / "convert.safetensors")

    def stored(rows):
        found = apply_part(tmp_path, "convert", vectors[rows], side[rows])
        return found if isinstance(found, tuple) else (found,)

    whole = stored(slice(None))
    assert whole[0].dtype == np.float32 and len(np.unique(whole[0], axis=0)) == 1030
    direct = apply(made, vectors, side)
    np.testing.assert_array_equal(direct[0] if isinstance(direct, tuple) else direct, whole[0])
    for n in (1, 3, 511, 512, 513, 700):
        rows = rng.permutation(1030)[:n]
        for part, every in zip(stored(rows), whole, strict=True):
            np.testing.assert_array_equal(part, every[rows])
    assert apply_part(tmp_path, "query_view", vectors) is None


@pytest.mark.parametrize(
    ("label", "params", "said"),
    [
        ("fastfill", {}, r"^fastfill: needs the new classifier \(head\) and labels$"),
        ("lce", {}, r"^lce: needs the new classifier \(head\) and labels$"),
        ("rbt", {"kl": 1.0}, r"^rbt: kl needs the new classifier \(head\)$"),
        ("fct", {"loss": "kl"}, "needs the new classifier"),
    ],
)
def test_a_classifier_that_is_needed(label, params, said):
    old, new, labels = torch.randn(40, 6), torch.randn(40, 5), torch.arange(40) % 4
    method, head = registry.method(label, params), Head("arcface", 5, range(4))
    lacking = [Pairs(old, new), Pairs(old, new, labels)]
    if "labels" in said:
        lacking.append(Pairs(old, new, head=head))
        with pytest.raises(BenchError, match="expected rows of the head, 0 to 2, got 0 to 3"):
            Pairs(old, new, labels, head=Head("arcface", 5, range(3)))
    for pairs in lacking:
        with pytest.raises(BenchError, match=said):
            method.learn(pairs, map_trainer())


@pytest.mark.parametrize(("label", "params"), [("rbt", {}), ("fct", {}), ("fastfill:l2", {})])
def test_a_map_of_vectors_alone_needs_no_classifier(label, params):
    pairs = Pairs(torch.randn(40, 6), torch.randn(40, 5))
    fitted = registry.method(label, params).learn(pairs, map_trainer(2))
    assert (fitted.priority is not None) == (label == "fastfill:l2")
