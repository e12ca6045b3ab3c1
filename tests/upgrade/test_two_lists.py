"""Two result lists as one, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import examples
from support.upgrades import all_scores

import benchmark
from benchmark.contract.fusion import RankFusion, RescoredList
from benchmark.contract.lists import ranks
from benchmark.upgrade.measure import evaluation
from benchmark.upgrade.read.qrels import RelevantPairs


@examples(60)
@given(st.lists(st.one_of(st.just(np.nan), st.integers(0, 4).map(float)), min_size=1, max_size=9))
def test_ranks_count_what_scores_at_least_as_high(row):
    found = ranks(np.array([row]))[0]
    for score, rank in zip(row, found, strict=True):
        if np.isnan(score):
            assert np.isnan(rank)
        else:
            assert rank == sum(other >= score for other in row)


def test_rank_fusion_by_hand():
    """Items a, b, c, d: the lists are a b c and c a, d is in neither."""
    first = np.array([[0.9, 0.8, 0.1, np.nan]])
    second = np.array([[0.2, np.nan, 0.7, np.nan]])
    merged = RankFusion().merge(first, second)[0]
    assert merged[:3] == pytest.approx([1 / 61 + 1 / 62, 1 / 62, 1 / 63 + 1 / 61])
    assert np.isnan(merged[3])


def test_a_cascade_keeps_what_the_first_list_has_and_sorts_by_the_second():
    first, second = np.array([[3.0, 2.0, np.nan]]), np.array([[0.1, 0.2, np.nan]])
    merged = RescoredList().merge(first, second)[0]
    assert merged[1] > merged[0] and np.isnan(merged[2])


def test_behind_the_window_the_order_of_the_first_list_goes_on():
    """Items a to e, of which e has been embedded already; a and b are rescored."""
    first = np.array([[5.0, 4.0, 3.0, 2.0, np.nan]])
    second = np.array([[0.1, 0.3, 0.9, 0.8, 0.2]])
    merged = RescoredList(2).merge(first, second)[0]
    assert np.argsort(-merged).tolist() == [1, 4, 0, 2, 3]


def test_new_embeddings_are_those_of_the_window():
    assert RescoredList(window=50).new_embeddings == 50 and RankFusion().new_embeddings == 0


def a_list(rng, n):
    """Rows and scores of some queries, some of them short of items."""
    width = rng.integers(1, 7)
    rows = np.stack([rng.permutation(9)[:width] for _ in range(n)])
    scores = rng.integers(0, 4, rows.shape).astype(np.float32)
    none = np.arange(width) >= rng.integers(0, width + 1, (n, 1))
    return np.where(none, -1, rows), np.where(none, np.float32(np.nan), scores)


@pytest.mark.parametrize("seed", range(40))
def test_two_lists_joined_are_what_loops_say(seed, monkeypatch):
    monkeypatch.setattr(evaluation, "_ROOM", 30)  # several steps
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    (rows, scores), (more, its) = a_list(rng, n), a_list(rng, n)
    out, a, b = evaluation._joined(rows, scores, more, its)
    for i in range(n):
        first, second = (
            {r: s for r, s in zip(x[i], y[i], strict=True) if r >= 0}
            for x, y in ((rows, scores), (more, its))
        )
        both = sorted({*first, *second})
        rest = out.shape[1] - len(both)
        assert out[i].tolist() == both + [-1] * rest
        for found, known in ((a, first), (b, second)):
            expected = [known.get(r, np.nan) for r in both] + [np.nan] * rest
            np.testing.assert_array_equal(found[i], np.array(expected, np.float32))
    query, row = np.sort(rng.integers(0, n, 20)), rng.integers(0, 9, 20)
    relevant = RelevantPairs(n, query, row, np.ones(20), np.ones(20, bool))
    found = evaluation.counted_ranks(scores, rows, relevant)
    for q, r, rank in zip(query, row, found, strict=True):
        own = scores[q][rows[q] == r]
        assert rank == (int((scores[q] >= own[0]).sum()) if len(own) else 0)


def average_precision(scores, relevant):
    """By query, ``[n]``, of a mask ``[n, items]``."""
    order = np.argsort(-scores, axis=1, kind="stable")
    hits = np.take_along_axis(relevant, order, 1)
    precision = hits.cumsum(axis=1) / np.arange(1, hits.shape[1] + 1)
    return (precision * hits).sum(axis=1) / hits.sum(axis=1)


def test_a_cascade_finds_what_is_behind_its_window_by_the_first_list():
    """Classes of some 300 items, of which 200 are rescored."""
    rng = np.random.default_rng(1)
    label, own = rng.integers(0, 6, 1800), rng.integers(0, 6, 40)
    centres = rng.normal(size=(6, 24))
    items, queries = (
        (centres[of] + 1.3 * rng.normal(size=(len(of), 24))).astype(np.float32)
        for of in (label, own)
    )
    turn = rng.normal(size=(24, 16))
    old, old_queries = (
        (each @ turn + 4 * rng.normal(size=(len(each), 16))).astype(np.float32)
        for each in (items, queries)
    )
    by_old, by_new = (all_scores(a, b) for a, b in ((old_queries, old), (queries, items)))
    relevant = label == own[:, None]

    def expected(there):
        """Of the items that are there by query, ``[n, items]``."""
        place = np.argsort(np.argsort(np.where(there, -by_old, np.inf), axis=1), axis=1)
        merged = np.where(place < 200, 10 + by_new, -place)
        return average_precision(np.where(there, merged, -np.inf), relevant & there).mean()

    given = {
        "queries": queries,
        "old_queries": old_queries,
        "labels": (own, label),
        "maps": "linear",
    }
    whole = benchmark.upgrade(old, items, **given).document
    rows = np.sort(rng.choice(1800, 600, replace=False))
    ids = {"old_gallery": np.arange(1800), "new_gallery": rows}
    part = benchmark.upgrade(old, items[rows], **given, ids=ids).document
    scores = [
        next(each["score"] for each in document["strategies"] if each["name"] == "cascade")
        for document in (whole, part)
    ]
    assert scores[0]["value"] == pytest.approx(expected(relevant | True), abs=1e-4)
    # Relevant items that have no new vector are left out.
    counted = expected(~relevant | np.isin(np.arange(1800), rows))
    assert abs(scores[1]["value"] - counted) <= 2 * scores[1]["sampling"]


def test_by_agreement_a_small_gallery_tells_of_the_first_of_the_whole():
    """Nobody judges, and a sample alone has new vectors: a cascade's 200 are a few of its items."""
    rng = np.random.default_rng(0)
    n, hidden = 6000, rng.normal(size=(6500, 16))
    old, new = (
        np.float32(hidden @ rng.normal(size=(16, 32)) + noise * rng.normal(size=(6500, 32)))
        for noise in (4, 2)
    )
    by_old, by_new = (all_scores(each[n:], each[:n]) for each in (old, new))
    rows = rng.choice(n, 1200, replace=False)
    document = benchmark.upgrade(
        old[:n], new[rows], new[n:], old[n:], maps="linear",
        ids={"old_gallery": np.arange(n), "new_gallery": rows},
    ).document  # fmt: skip
    told, depth = document["inputs"], document["inputs"]["agreement_at"]
    assert told["nearest"] == 1 and depth == max(10, round(n / told["held"]))
    place = np.argsort(np.argsort(-by_old, axis=1), axis=1)
    cascade = np.where(place < 200, n + by_new, -place)
    first = np.argsort(-by_new, axis=1)[:, :depth]
    found = {each["name"]: each["score"]["value"] for each in document["strategies"]}
    for name, scores in (("keep-old", by_old), ("cascade", cascade)):
        its = np.argsort(-scores, axis=1)[:, :depth]
        truth = np.mean([np.isin(a, b).mean() for a, b in zip(its, first, strict=True)])
        assert found[name] == pytest.approx(truth, abs=0.06), name
    assert found["cascade"] < 0.9
