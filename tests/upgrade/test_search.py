"""Exact search of several lists in one pass, against what a naive program finds, ties included."""

import numpy as np
import pytest

from benchmark.upgrade.read.gallery import EmbeddedSample, GalleryBlock, one_pass
from benchmark.upgrade.read.qrels import RelevantPairs
from benchmark.upgrade.search.lists import (
    CrossFittedList,
    FoldOf,
    PairScores,
    ResultList,
    relevant_ranks,
    search,
)

N, Q = 130, 9


@pytest.fixture(scope="module")
def problem():
    """Whole numbers, so that many scores tie; some pairs are left out."""
    rng = np.random.default_rng(0)
    gallery = rng.integers(-2, 3, (N, 4)).astype(np.float32)
    queries = rng.integers(-2, 3, (Q, 4)).astype(np.float32)
    gallery[:, 0] += 5  # no zeros
    query = np.repeat(np.arange(Q), 5)
    row = np.concatenate([rng.choice(N, 5, replace=False) for _ in range(Q)])
    counted = rng.random(len(row)) < 0.6
    return gallery, queries, RelevantPairs(Q, query, row, np.ones(len(row)), counted)


def blocks(gallery, step):
    def start():
        for a in range(0, N, step):
            rows = np.arange(a, min(a + step, N))
            yield GalleryBlock.whole(rows, gallery[rows], gallery[rows])

    return start


@pytest.mark.parametrize("step", [N, 37, 1])
def test_ranks_and_nearest_items_whatever_the_blocks(problem, step):
    gallery, queries, relevant = problem
    known = GalleryBlock.whole(np.arange(N), gallery, gallery)
    each = ResultList(queries, lambda block: block.old, top=6)
    found = search(blocks(gallery, step), relevant, known, {"x": each}, "l2")["x"]
    scores = -((queries[:, None] - gallery[None]) ** 2).sum(-1)
    expected = []
    for q in range(Q):
        mine = relevant.query == q
        left_out = relevant.row[mine & ~relevant.counted]
        counted = np.setdiff1d(np.arange(N), left_out)
        expected += [
            (scores[q, counted] >= scores[q, row]).sum()
            for row in relevant.row[mine & relevant.counted]
        ]
        best = counted[np.lexsort((counted, -scores[q, counted]))][:6]
        assert found.rows[q].tolist() == best.tolist()
        assert found.scores[q].tolist() == scores[q, best].tolist()
    assert found.ranks.tolist() == expected
    relevant_ranks(found.ranks, relevant)  # ranks are possible ones


def test_scores_of_pairs(problem):
    gallery, queries, _ = problem
    each = ResultList(queries, lambda block: block.old)
    query, row = np.array([3, 0, 3]), np.array([129, 5, 5])
    (scores,) = one_pass(blocks(gallery, 50), [PairScores(query, row, each, "l2")])
    assert scores.tolist() == (-((queries[query] - gallery[row]) ** 2).sum(1)).tolist()


def test_a_list_longer_than_the_gallery(problem):
    gallery, queries, relevant = problem
    known = GalleryBlock.whole(np.arange(N), gallery, gallery)
    each = ResultList(queries, lambda block: block.old, top=N + 5)
    found = search(blocks(gallery, 40), relevant, known, {"x": each}, "l2")["x"]
    left_out = np.bincount(relevant.query[~relevant.counted], minlength=Q)
    assert ((found.rows < 0).sum(1) == 5 + left_out).all()
    assert np.isnan(found.scores[found.rows < 0]).all()


@pytest.mark.parametrize("step", [N, 37, 1])
@pytest.mark.parametrize("distance", ["cosine", "dot", "l2"])
def test_a_list_of_folds_scores_each_item_by_the_first_that_has_not_seen_it(
    problem, step, distance
):
    gallery, queries, relevant = problem
    rng = np.random.default_rng(1)
    turned = [rng.integers(-2, 3, (4, 4)).astype(np.float32) for _ in range(3)]
    within = N - 30  # the rest are beside the sample, most of them equal to one of it
    seen = [rng.random(within) < 0.6 for _ in range(3)]
    samples = [
        EmbeddedSample(np.arange(within), gallery[:within], gallery[:within], each, ~each)
        for each in seen
    ]
    folds = (
        ResultList(queries @ turned[0] + 1, lambda block: block.old),  # a map of the queries
        ResultList(queries, lambda block: block.old @ turned[1] + 7),  # two of the items
        ResultList(queries, lambda block: block.old @ turned[2] + 7),
    )
    first = folds[0]
    each = CrossFittedList(first.queries, first.items, 6, True, folds, FoldOf(samples))
    table = np.empty((Q, N))
    for row in range(N):
        equal = np.flatnonzero((gallery[:within] == gallery[row]).all(axis=1))
        its = row if row < within else equal[0] if len(equal) else None
        k = next((k for k in range(3) if its is not None and not seen[k][its]), 0)
        block = GalleryBlock.whole(np.array([row]), gallery[[row]], gallery[[row]])
        a, b = (x.astype(np.float64) for x in (folds[k].queries, folds[k].items(block)))
        if distance == "cosine":
            a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
        table[:, row] = (a @ b.T)[:, 0] if distance != "l2" else -((a - b) ** 2).sum(1)
    known = GalleryBlock.whole(np.arange(N), gallery, gallery)
    found = search(blocks(gallery, step), relevant, known, {"x": each}, distance)["x"]
    query, row = relevant.counted_pairs
    others = np.zeros((Q, N), bool)
    others[relevant.query[~relevant.counted], relevant.row[~relevant.counted]] = True
    for q, r, rank in zip(query, row, found.ranks, strict=True):
        open_ = ~others[q]
        least, most = ((table[q][open_] >= table[q, r] + e).sum() for e in (1e-5, -1e-5))
        assert least <= rank <= most
    scores = np.where(others, -np.inf, table)
    np.testing.assert_allclose(found.scores, -np.sort(-scores, axis=1)[:, :6], rtol=1e-5, atol=1e-5)
    job = PairScores(query, row, each, distance)
    (pairs,) = one_pass(blocks(gallery, step), [job])
    np.testing.assert_allclose(pairs, table[query, row], rtol=1e-5, atol=1e-5)
