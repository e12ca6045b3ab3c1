"""Approximate indexes against exact results, and after their vectors are mapped."""

import numpy as np
import pytest
from support.upgrades import all_scores

from benchmark.metrics.relevance import agreement
from benchmark.upgrade.search import index as module
from benchmark.upgrade.search.index import Settings, build, gain_of_building

ROWS, DIM = 3000, 12
KINDS = ["hnsw", "ivf"]
faiss = pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def vectors():
    """Clusters, as embeddings are; lengths differ."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((40, DIM))
    near = centres[rng.integers(0, 40, ROWS + 50)] + 0.3 * rng.standard_normal((ROWS + 50, DIM))
    near *= rng.uniform(0.5, 2, (len(near), 1))
    return near[:ROWS].astype(np.float32), near[ROWS:].astype(np.float32)


def nearest(queries, gallery, distance="cosine"):
    """Exact rows of the ten nearest, by brute force."""
    return np.argsort(-all_scores(queries, gallery, distance), axis=1, kind="stable")[:, :10]


@pytest.mark.parametrize("distance", ["cosine", "l2"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_it_finds(kind, distance, vectors):
    gallery, queries = vectors
    settings = Settings(kind, lists=30, probes=10)
    index = build(gallery, distance, settings)
    assert index.seconds > 0
    found = index.search(queries, 10)
    assert 0.9 < agreement(found, nearest(queries, gallery, distance), 10).mean() <= 1
    again = build(gallery, distance, settings)
    np.testing.assert_array_equal(again.search(queries, 10), found)


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_items_than_asked_for(kind, vectors):
    gallery, queries = vectors
    index = build(gallery[:4], settings=Settings(kind))
    assert sorted(index.search(queries[:2], 6)[0].tolist()) == [-1, -1, 0, 1, 2, 3]


def shares(index, queries, gallery):
    """Share of the exact ten nearest items that an index finds, by query."""
    return agreement(index.search(queries, 10), nearest(queries, gallery), 10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rotation_leaves_the_index_as_it_is(kind, vectors):
    """Distances stay, also in more dimensions, so links and lists stay right."""
    gallery, queries = vectors
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((DIM + 4, DIM + 4)))[0][:DIM]
    turned = (gallery @ turn).astype(np.float32), (queries @ turn).astype(np.float32)
    settings = Settings(kind, lists=30, probes=4)
    index = build(gallery, settings=settings)
    before = index.search(queries, 10)
    kept = index.rewritten(turned[0])
    anew = build(turned[0], settings=settings)
    assert (kept.search(turned[1], 10) == before).mean() > (0.99 if kind == "hnsw" else 0.9)
    np.testing.assert_array_equal(index.search(queries, 10), before)
    of_kept, of_anew = (shares(each, turned[1], turned[0]) for each in (kept, anew))
    gain, needed = gain_of_building(of_anew, of_kept)
    assert not needed and gain.low <= gain.value <= gain.high <= 0.01
    assert abs(of_kept.mean() - shares(index, queries, gallery).mean()) < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_another_space_needs_another_index(kind, vectors):
    """Vectors that have nothing to do with those linked are not found by their links."""
    gallery, queries = vectors
    other = gallery[np.random.default_rng(2).permutation(ROWS)]
    settings = Settings(kind, lists=30, probes=2)
    index = build(gallery, settings=settings)
    before, of_kept = (shares(each, queries, vectors) for each, vectors in (
        (index, gallery), (index.rewritten(other), other),
    ))  # fmt: skip
    of_anew = shares(build(other, settings=settings), queries, other)
    gain, needed = gain_of_building(of_anew, of_kept)
    assert needed and gain.value == pytest.approx((of_anew - of_kept).mean()) and gain.low > 0.3
    assert of_anew.mean() == pytest.approx(before.mean(), abs=0.05)


def test_other_vectors_are_of_the_same_rows(vectors):
    gallery, _ = vectors
    index = build(gallery[:9])
    with pytest.raises(ValueError, match="items: expected 9 vectors, got 8"):
        index.rewritten(gallery[:8])


def test_threads_are_given_back():
    before = faiss.omp_get_max_threads()
    with module._faiss(before + 1) as package:
        assert package.omp_get_max_threads() == before + 1
    assert faiss.omp_get_max_threads() == before


def test_the_advice_of_databases():
    assert [Settings("ivf").lists_of(rows) for rows in (10, 50_000, 4_000_000)] == [1, 50, 2000]
    assert Settings("ivf", lists=7).lists_of(5) == 5
