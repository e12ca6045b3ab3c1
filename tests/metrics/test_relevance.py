"""Relevance judgements: against trec_eval, naive loops, sklearn and hand-worked results."""

import math

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from benchmark.metrics import retrieval
from benchmark.metrics.relevance import RelevantRanks, agreement, ndcg, recall
from benchmark.metrics.retrieval import average_precision, reciprocal_rank
from benchmark.ranking.ranks import rank

MEASURES = {"ndcg_cut.10", "recall.1,10,100", "recip_rank", "map"}


def judged(scores, gains):
    """Of all scores and gains, ``[n_query, n_gallery]``: what the definition says, item by item."""
    sizes, ranks, kept = [0], [], []
    for row, gain in zip(scores, gains, strict=True):
        relevant = np.flatnonzero(gain > 0)
        sizes.append(len(relevant))
        ranks += [int((row >= row[i]).sum()) for i in relevant]
        kept += gain[relevant].tolist()
    return RelevantRanks(np.cumsum(sizes), np.array(ranks, np.int64), np.array(kept, float))


def trec(scores, gains, most=None):
    """trec_eval's values of the queries with a relevant item, by measure."""
    qrels = {f"q{i}": {f"d{j}": int(g) for j, g in enumerate(row)} for i, row in enumerate(gains)}
    run = {}
    for i, row in enumerate(scores):
        kept = np.argsort(-row, kind="stable")[:most]
        run[f"q{i}"] = {f"d{j}": float(row[j]) for j in kept}
    result = pytrec_eval.RelevanceEvaluator(qrels, MEASURES).evaluate(run)
    answered = [f"q{i}" for i in range(len(gains)) if (gains[i] > 0).any()]
    return {key: np.array([result[q][key] for q in answered]) for key in result["q0"]}


@st.composite
def problems(draw):
    """Scores without ties (trec_eval holds float32), and gains 0 to 3; some queries have none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m = draw(st.integers(1, 5)), draw(st.integers(1, 150))
    scores = rng.permuted(np.tile(np.arange(m, dtype=float), (n, 1)), axis=1)
    share = draw(st.sampled_from([0.02, 0.2, 0.9]))
    return scores, np.where(rng.random((n, m)) < share, rng.integers(0, 4, (n, m)), 0)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_equal_to_trec_eval_without_ties(problem):
    scores, gains = problem
    ours, its = judged(scores, gains), trec(scores, gains)
    assert (ours.answered == (gains > 0).any(axis=1)).all()
    for value, key in [
        (ndcg(ours, 10), "ndcg_cut_10"), (recall(ours, 1), "recall_1"),
        (recall(ours, 10), "recall_10"), (recall(ours, 100), "recall_100"),
        (reciprocal_rank(ours), "recip_rank"), (average_precision(ours), "map"),
    ]:  # fmt: skip
        np.testing.assert_allclose(value, its[key], atol=1e-9, rtol=0, err_msg=key)
    # trec_eval has no cut-off here: it is given ten items only.
    cut = trec(scores, gains, most=10)["recip_rank"]
    np.testing.assert_allclose(reciprocal_rank(ours, 10), cut, atol=1e-9, rtol=0)


def test_a_result_of_some_nearest_items_is_as_trec_eval_takes_it():
    """RelevantRanks items that are not in the result count as relevant and are never found."""
    rng = np.random.default_rng(3)
    scores, gains = (
        rng.permuted(np.tile(np.arange(80.0), (6, 1)), axis=1),
        rng.integers(0, 3, (6, 80)),
    )
    whole = judged(scores, gains)
    some = RelevantRanks(whole.offset, np.where(whole.rank <= 20, whole.rank, 0), whole.gain)
    its = trec(scores, gains, most=20)
    np.testing.assert_allclose(average_precision(some), its["map"], atol=1e-9)
    np.testing.assert_allclose(ndcg(some, 10), its["ndcg_cut_10"], atol=1e-9)
    np.testing.assert_allclose(recall(some, 100), its["recall_100"], atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(1, 12))
def test_ties_stand_against_the_query(problem, levels):
    """The least that any order of equal scores gives; precision merges them."""
    scores, gains = np.floor(problem[0] / levels), problem[1]
    ours, places = judged(scores, gains), []
    for row, gain in zip(scores, gains, strict=True):
        order = np.lexsort((gain, -row))  # of equal scores the smaller gain first
        at = np.empty(len(row), int)
        at[order] = np.arange(1, len(row) + 1)
        places += at[gain > 0].tolist()
    # Of equal score and gain, which comes first says nothing.
    for a, b in zip(ours.offset, ours.offset[1:], strict=False):
        assert sorted(zip(ours.place[a:b], ours.gain[a:b], strict=True)) == sorted(
            zip(places[a:b], ours.gain[a:b], strict=True)
        )
    rows = (gains > 0).any(axis=1)
    merged = [
        average_precision_score(g > 0, s) for g, s in zip(gains[rows], scores[rows], strict=True)
    ]
    np.testing.assert_allclose(average_precision(ours), merged, atol=1e-12)


def test_hand_worked():
    # Scores 9 8 8 7: the item of gain 2 ties with one of gain 1 and follows it.
    ours = judged(np.array([[9.0, 8.0, 8.0, 7.0]]), np.array([[0, 2, 1, 3]]))
    assert ours.rank.tolist() == [3, 3, 4] and ours.place.tolist() == [3, 2, 4]
    dcg = 1 / math.log2(3) + 2 / math.log2(4) + 3 / math.log2(5)
    ideal = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
    assert ndcg(ours, 10) == pytest.approx([dcg / ideal])
    assert ndcg(ours, 1).tolist() == [0.0]
    assert recall(ours, 2) == pytest.approx([1 / 3])
    assert reciprocal_rank(ours).tolist() == [0.5] and reciprocal_rank(ours, 1).tolist() == [0.0]
    assert average_precision(ours) == pytest.approx([(2 / 3 + 2 / 3 + 3 / 4) / 3])


def test_ties_differ_from_trec_eval():
    """trec_eval orders equal scores by the items' names; a name moves its score, not ours."""
    scores = np.array([[5.0, 5.0], [5.0, 5.0]])
    gains = np.array([[1, 0], [0, 1]])  # relevant: d0, then d1, which trec_eval puts first
    its = trec(scores, gains)
    assert its["recip_rank"].tolist() == [0.5, 1.0] and its["map"].tolist() == [0.5, 1.0]
    ours = judged(scores, gains)
    assert reciprocal_rank(ours).tolist() == average_precision(ours).tolist() == [0.5, 0.5]
    # A model for which all items are the same finds nothing here.
    constant = judged(np.zeros((1, 1000)), np.eye(1, 1000))
    assert recall(constant, 100).tolist() == [0.0]


def test_classes_are_gains_of_one():
    """The engine's results for classes, ties and distractors among them."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(-2, 3, (7, 3)) + 0.0, rng.integers(-2, 3, (40, 3)) + 0.0
    ql, gl = rng.integers(0, 3, 7), rng.integers(0, 5, 40)
    result = rank(x, y, ql, gl, distance="l2")
    scores = -((x[:, None] - y) ** 2).sum(axis=2)
    ours = judged(scores, (ql[:, None] == gl).astype(int))
    assert (np.diff(np.sort(scores)) == 0).any()
    np.testing.assert_array_equal(reciprocal_rank(ours), retrieval.reciprocal_rank(result))
    np.testing.assert_array_equal(reciprocal_rank(ours, 2), retrieval.reciprocal_rank(result, 2))
    np.testing.assert_allclose(
        average_precision(ours), retrieval.average_precision(result), atol=1e-12
    )


def test_ndcg_as_sklearn_has_it():
    rng = np.random.default_rng(2)
    scores, gains = rng.random((5, 30)), rng.integers(0, 4, (5, 30))
    ours = ndcg(judged(scores, gains), 10)
    expected = [ndcg_score(g[None], s[None], k=10) for g, s in zip(gains, scores, strict=True)]
    np.testing.assert_allclose(ours, expected, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32))
def test_agreement_is_the_share_of_a_set(n, k, seed):
    rng = np.random.default_rng(seed)
    found, expected = (np.array([rng.permutation(12)[:9] for _ in range(n)]) for _ in range(2))
    expected[:, rng.integers(1, 10) :] = -1  # a result of fewer items
    found[:, rng.integers(0, 10) :] = -1
    naive = []
    for mine, its in zip(found[:, :k].tolist(), expected[:, :k].tolist(), strict=True):
        kept = {row for row in its if row >= 0}
        naive.append(len(kept & set(mine)) / len(kept))
    np.testing.assert_allclose(agreement(found, expected, k), naive, atol=1e-15)
    assert (agreement(expected, expected, k) == 1).all()
