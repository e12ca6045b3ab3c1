"""What holds of every method with a map: an item is converted alone, new/new is independent's."""

import numpy as np
import pytest
from support.toy_runs import ONE_EPOCH, run_toy

from benchmark.config import registry
from benchmark.config.recipes import Recipe
from benchmark.contract.arrays import BLOCK
from benchmark.contract.bases import FeatureTransformation

CLASSES = {name: registry.method_class(name) for name in registry.method_files()}
NAMES = [n for n, cls in CLASSES.items() if issubclass(cls, FeatureTransformation)]
QUERIES = [f"{n}:query" for n in NAMES if "query" in CLASSES[n].variants]
OTHERS = ["fct:layer-norm", "fastfill:diagonal", "lce:mlp", "rbt:chain"]  # other architectures
SIDED = ["fct:simclr", "fct:simclr-alone", "fastfill:simclr"]
OLD, NEW, SIDE = 64, 48, 24


def test_all_maps_are_found():
    assert {
        "fastfill", "fct", "lambda-orthogonal", "lce", "linear", "low-rank", "procrustes", "rbt",
        "residual-mlp",
    } <= set(NAMES)  # fmt: skip
    assert len(QUERIES) >= 5


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
def test_an_item_is_converted_alone(arrays, label, chain):
    """Bit for bit in any order and batch; in a chain with g, and the priority of all items."""
    side = arrays["side"] if label in SIDED else None
    params = {"width": 64} if hasattr(CLASSES[label.partition(":")[0]], "width") else {}
    made = registry.method(label, params).fit(
        arrays["old"], arrays["new"], arrays["labels"], side, arrays["weight"],
        recipe=Recipe(epochs=1, transform_steps=3, transform_batch=64), device="cpu",
        new_side=arrays["side"][:, :20] if chain else None,
    )  # fmt: skip
    assert made.maps_side == chain
    assert ("priority" in made.parts) == label.startswith("fastfill")

    def given(rows):
        """All that is made of these items, in this order."""
        stored = arrays["old"][rows], None if side is None else side[rows]
        converted = made.convert(*stored)
        found = [*converted] if chain else [converted]
        found.append(made.view(arrays["new"][rows]))
        return [*found, made.priority(*stored)] if "priority" in made.parts else found

    n = len(arrays["old"])
    whole = given(np.arange(n))
    changed = whole[-1] if label in QUERIES else whole[0]
    assert len(np.unique(changed, axis=0)) == n
    shuffled = np.random.default_rng(1).permutation(n)
    for rows in (shuffled, shuffled[: BLOCK + 1], np.arange(n)[::-1][:7], shuffled[:1]):
        for part, all_of_it in zip(given(rows), whole, strict=True):
            np.testing.assert_array_equal(part, all_of_it[rows])


RUN = [*NAMES, "procrustes:query"]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    settings = {f"{n}.width": 16 for n in NAMES if hasattr(CLASSES[n], "width")}
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
