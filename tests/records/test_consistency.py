"""A score beside the values of its queries, of which some are kept."""

import numpy as np
import pytest
from support.records import make_record

from benchmark.records.consistency import _apart, _of_scores, contradictions
from benchmark.records.details import QueryResults


def of(values: np.ndarray, n_queries: int) -> QueryResults:
    rows = np.arange(len(values))
    return QueryResults(values.astype(float), rows, rows, n_queries)


@pytest.mark.parametrize("hits", [1, 2, 5, 20, 300])
def test_a_true_score_is_never_refused(hits):
    """Down to a single hit, which seldom is among the queries that are kept."""
    n, kept, rng = 1650, 1000, np.random.default_rng(hits)
    values = np.zeros(n)
    values[:hits] = 1
    for _ in range(200):
        assert _apart(hits / n, of(rng.permutation(values)[:kept], n)) is None


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("cmc_at_1", "cmc_at_5"), ("cmc_at_5", "cmc_at_50"), ("rank_1", "rank_10"),
        ("tar_at_far_1e-3", "tar_at_far_1e-2"), ("g2_tpir_at_fpir_1e-2", "g2_tpir_at_fpir_1e-1"),
        ("group_latin__cmc_at_1", "group_latin__cmc_at_20"),
    ],
)  # fmt: skip
def test_a_score_that_falls_as_its_cut_off_rises_is_told(lower, upper):
    scores = {"map": 0.3, upper: 0.5, lower: 0.4, "ndcg_at_1": 0.9, "ndcg_at_5": 0.7, "eer": None}
    record = make_record("bct").model_copy(update={"scores": {"new/new": scores}, "intervals": {}})
    assert not list(_of_scores(record))
    scores[lower] = 0.6
    assert list(_of_scores(record)) == [f"new/new: {lower} 0.6 is above {upper} 0.5"]


@pytest.mark.parametrize("span", [(-0.01, 0.4), (0.2, 1.01)])
def test_an_interval_ends_where_scores_do(span):
    record = make_record("bct").model_copy(
        update={"scores": {"new/new": {"map": 0.3}}, "intervals": {"new/new": {"map": span}}}
    )
    (said,) = _of_scores(record)
    assert said.startswith("new/new map: expected 0.0 to 1.0, got ")


@pytest.mark.parametrize("finished", ["2099-13-45", "today", None])
def test_a_run_ends_at_a_time(finished):
    record = make_record("bct")
    told = "run.finished: expected a date and a time, got"
    assert not any(said.startswith(told) for said in contradictions(record, None))
    false = record.model_copy(update={"run": record.run.model_copy(update={"finished": finished})})
    assert any(said.startswith(told) for said in contradictions(false, None))


@pytest.mark.parametrize(("score", "hits"), [(0.1, 0), (0.9, 1000), (0.0, 50), (0.6, 400)])
def test_a_false_one_is(score, hits):
    values = np.zeros(1000)
    values[:hits] = 1
    assert "as its queries say" in str(_apart(score, of(values, 1650)))


def test_where_all_are_kept_nothing_is_forgiven():
    values = np.zeros(1000)
    values[:3] = 1
    assert _apart(0.003, of(values, 1000)) is None
    assert _apart(0.004, of(values, 1000)) is not None
