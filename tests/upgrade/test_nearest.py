"""Exact nearest items: against all of the engine's scores, ties among them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.ranking.engine import Scorer
from benchmark.upgrade import faiss_package
from benchmark.upgrade import nearest as module
from benchmark.upgrade.nearest import nearest

WAYS = [pytest.param(True, id="faiss"), pytest.param(False, id="numpy")]


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    if request.param:
        pytest.importorskip("faiss")
    monkeypatch.setattr(faiss_package, "available", lambda: request.param)


def naive(queries, gallery, k, distance):
    """Rows and scores of the engine, sorted with the rows of equal scores ascending."""
    n, m = len(queries), len(gallery)
    scores = Scorer(queries, gallery, distance=distance).pairs(
        np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    )
    order = np.argsort(-scores.reshape(n, m), axis=1, kind="stable")[:, :k]
    rows, found = np.full((n, k), -1), np.full((n, k), np.nan, np.float32)
    rows[:, : order.shape[1]] = order
    found[:, : order.shape[1]] = np.take_along_axis(scores.reshape(n, m), order, 1)
    return rows, found


def check(queries, blocks, k, distance, **options):
    found = nearest(queries, blocks, k, distance, **options)
    rows, scores = naive(queries, np.concatenate(blocks), k, distance)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.scores, scores)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=4), n=st.integers(1, 5),
    dim=st.integers(1, 6), k=st.integers(1, 40), distance=st.sampled_from(["cosine", "l2"]),
    levels=st.sampled_from([1, 2, 1000]), seed=st.integers(0, 2**32), with_faiss=st.booleans(),
)  # fmt: skip
def test_against_all_scores(sizes, n, dim, k, distance, levels, seed, with_faiss):
    """Few different numbers make many ties, within blocks and between them."""
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        if not with_faiss:
            patch.setattr(faiss_package, "available", lambda: False)
        made = lambda size: rng.integers(-levels, levels + 1, (size, dim)).astype(np.float32)  # noqa: E731
        check(made(n), [made(size) for size in sizes], k, distance)


@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_many_items(way, distance, monkeypatch):
    """Candidates alone decide for most queries; pieces of queries and items change nothing."""
    rng = np.random.default_rng(0)
    queries, gallery = (rng.standard_normal((n, 24)).astype(np.float32) for n in (30, 5000))
    gallery[4000:4400] = gallery[:400]  # copies tie
    queries[:5] = gallery[:5]
    unsure = []
    whole = module._all_scored
    monkeypatch.setattr(module, "_all_scored", lambda *a: unsure.append(a[3].sum()) or whole(*a))
    check(queries, [gallery[:3000], gallery[3000:]], 10, distance, threads=1)
    assert sum(unsure) < 10
    monkeypatch.setattr(module, "_ROOM", 1 << 13)
    check(queries, [gallery[:1], gallery[1:]], 10, distance, threads=2)


def test_what_rounding_hides(way):
    """A thousand items that rounded products cannot tell apart are told apart by the engine."""
    rng = np.random.default_rng(1)
    gallery = np.tile(rng.standard_normal((1, 64)), (1000, 1))
    gallery += 1e-7 * rng.standard_normal(gallery.shape)
    check(
        rng.standard_normal((3, 64)).astype(np.float32), [gallery.astype(np.float32)], 5, "cosine"
    )


def test_refusals():
    with pytest.raises(ValueError, match="k: expected at least 1, got 0"):
        nearest(np.ones((1, 2), np.float32), [], 0)
    with pytest.raises(ValueError, match="gallery: expected dimension 2, got 3"):
        nearest(np.ones((1, 2), np.float32), [np.ones((1, 3), np.float32)], 1)
    none = nearest(np.ones((1, 2), np.float32), [], 2)
    assert none.rows.tolist() == [[-1, -1]] and np.isnan(none.scores).all()
