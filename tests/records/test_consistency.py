"""A score beside the values of its queries, of which some are kept."""

import numpy as np
import pytest

from benchmark.records.consistency import _apart
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
