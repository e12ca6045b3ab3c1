"""Exact search of several lists in one pass, against what a naive program finds, ties included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.upgrade.read.gallery import GalleryBlock, one_pass
from benchmark.upgrade.read.qrels import RelevantPairs
from benchmark.upgrade.search.lists import (
    PairScores,
    ResultList,
    joined_ranks,
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


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_ranks_that_two_lists_share_out(seed):
    """By plain loops: items that are not relevant above, and relevant ones in that order."""
    rng = np.random.default_rng(seed)
    n_query, n_item = int(rng.integers(1, 5)), int(rng.integers(2, 12))
    scores = [rng.permutation(n_query * n_item).reshape(n_query, n_item) for _ in range(2)]
    relevant = [np.flatnonzero(rng.random(n_item) < 0.5).tolist() for _ in range(n_query)]
    first = rng.random(n_item) < 0.5  # items that the first list shows

    def rank(table, q, row):
        return 0 if table[q, row] < n_item else int((table[q] >= table[q, row]).sum())

    query = np.array([q for q, rows in enumerate(relevant) for _ in rows], np.int64)
    row = np.array([row for rows in relevant for row in rows], np.int64)
    ranks = [
        np.array([rank(t, q, r) for q, r in zip(query, row, strict=True)], np.int64) for t in scores
    ]
    got = joined_ranks(query, [(first[row], ranks[0]), (~first[row], ranks[1])])
    if np.array_equal(*ranks):
        assert np.array_equal(got, ranks[0])
        return
    for q, rows in enumerate(relevant):
        above = {}
        for r in rows:
            table = scores[0 if first[r] else 1]
            if table[q, r] >= n_item:
                others = [i for i in range(n_item) if i not in rows]
                above[r] = sum(int(table[q, i] > table[q, r]) for i in others)
        ordered = sorted(above.values())
        found = dict(zip(row[query == q].tolist(), got[query == q].tolist(), strict=True))
        assert sorted(v for v in found.values() if v) == [a + k + 1 for k, a in enumerate(ordered)]
        assert {r for r, v in found.items() if not v} == set(rows) - set(above)
        for r, mine in above.items():
            least, most = (sum(a < mine + k for a in ordered) for k in (0, 1))
            assert mine + least < found[r] <= mine + most
