"""Approximate indexes against exact results, and after their vectors are mapped."""

import numpy as np
import pytest

from benchmark.errors import BenchError
from benchmark.metrics.relevance import agreement
from benchmark.upgrade import faiss_package
from benchmark.upgrade.index import Settings, Side, build, outlives
from benchmark.upgrade.nearest import nearest

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


def cut(array):
    """Starts passes over an array in blocks of different sizes."""
    return lambda: iter(np.split(array, [1, 700, 2100]))


@pytest.mark.parametrize("distance", ["cosine", "l2"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_it_finds(kind, distance, vectors):
    gallery, queries = vectors
    settings = Settings(kind, lists=30, probes=10)
    index = build(cut(gallery), ROWS, DIM, distance, settings)
    assert index.rows == ROWS and index.seconds > 0
    exact, found = nearest(queries, [gallery], 10, distance), index.search(queries, 10)
    assert 0.9 < agreement(found.rows, exact.rows, 10).mean() <= 1
    same = found.rows == exact.rows
    np.testing.assert_allclose(found.scores[same], exact.scores[same], rtol=1e-4, atol=1e-5)
    again = build(cut(gallery), ROWS, DIM, distance, settings)
    np.testing.assert_array_equal(again.search(queries, 10).rows, found.rows)


def test_all_lists_are_exact(vectors):
    gallery, queries = vectors
    for probes, least in ((30, 1.0), (1, 0.0)):
        index = build(cut(gallery), ROWS, DIM, "l2", Settings("ivf", lists=30, probes=probes))
        share = agreement(
            index.search(queries, 10).rows, nearest(queries, [gallery], 10, "l2").rows, 10
        ).mean()
        assert (share == 1) == (least == 1)


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_items_than_asked_for(kind, vectors):
    gallery, queries = vectors
    found = build(lambda: [gallery[:4]], 4, DIM, settings=Settings(kind)).search(queries[:2], 6)
    assert sorted(found.rows[0].tolist()) == [-1, -1, 0, 1, 2, 3]
    assert np.isnan(found.scores[found.rows < 0]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_rotation_leaves_the_index_as_it_is(kind, vectors):
    """It keeps all distances, also into more dimensions: links and lists stay right."""
    gallery, queries = vectors
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((DIM + 4, DIM + 4)))[0][:DIM]
    turned = (gallery @ turn).astype(np.float32), (queries @ turn).astype(np.float32)
    settings = Settings(kind, lists=30, probes=4)
    index = build(cut(gallery), ROWS, DIM, settings=settings)
    before = index.search(queries, 10)
    kept = index.rewritten(cut(turned[0]), DIM + 4)
    found = kept.search(turned[1], 10)
    assert (found.rows == before.rows).mean() > (0.99 if kind == "hnsw" else 0.9)
    np.testing.assert_array_equal(index.search(queries, 10).rows, before.rows)
    outcome = outlives(
        Side(queries, cut(gallery), DIM), Side(turned[1], cut(turned[0]), DIM + 4), ROWS, 10,
        settings=settings,
    )  # fmt: skip
    assert not outcome.build_anew and outcome.seconds > 0
    assert abs(outcome.kept.mean() - outcome.before.mean()) < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_another_space_needs_another_index(kind, vectors):
    """Vectors that have nothing to do with those linked are not found by their links."""
    gallery, queries = vectors
    order = np.random.default_rng(2).permutation(ROWS)
    settings = Settings(kind, lists=30, probes=2)
    outcome = outlives(
        Side(queries, cut(gallery), DIM), Side(queries, cut(gallery[order]), DIM), ROWS, 10,
        settings=settings,
    )  # fmt: skip
    assert outcome.build_anew and outcome.lost.value > 0.3
    assert outcome.anew.mean() == pytest.approx(outcome.before.mean(), abs=0.05)


def test_refusals(vectors, monkeypatch):
    gallery, _ = vectors
    with pytest.raises(BenchError, match="unknown index 'hsnw'; did you mean 'hnsw'"):
        Settings("hsnw")
    with pytest.raises(ValueError, match="blocks: expected 9 vectors, got 3000"):
        build(cut(gallery), 9, DIM, settings=Settings("hnsw"))
    index = build(lambda: [gallery[:9]], 9, DIM)
    with pytest.raises(ValueError, match="blocks: expected 9 vectors, got 8"):
        index.rewritten(lambda: [gallery[:8]], DIM)
    monkeypatch.setattr(faiss_package, "available", lambda: False)
    with pytest.raises(BenchError, match=r"needs the package faiss: pip install 'compatbench\[fa"):
        build(cut(gallery), ROWS, DIM)


def test_threads_are_given_back():
    before = faiss.omp_get_max_threads()
    with faiss_package.threads(before + 1) as package:
        assert package.omp_get_max_threads() == before + 1
    assert faiss.omp_get_max_threads() == before


def test_the_advice_of_databases():
    assert [Settings("ivf").lists_of(rows) for rows in (10, 50_000, 4_000_000)] == [1, 50, 2000]
    assert Settings("ivf", lists=7).lists_of(5) == 5
