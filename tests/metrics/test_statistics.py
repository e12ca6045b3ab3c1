"""Intervals, tests and Kendall's tau against counting, scipy and worked values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau
from support.problems import examples

from benchmark.metrics import statistics
from benchmark.metrics.statistics import kendall_tau


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=30))
def test_kendall_tau_agrees_with_counting(pairs):
    x, y = (np.array(side, float) for side in zip(*pairs, strict=True))
    concordant = tied_x = tied_y = total = 0
    for i in range(len(x)):
        for j in range(i):
            concordant += np.sign(x[i] - x[j]) * np.sign(y[i] - y[j])
            tied_x += x[i] != x[j]
            tied_y += y[i] != y[j]
            total += 1
    got = kendall_tau(x, y)
    if not tied_x or not tied_y:
        assert got is None
    else:
        assert got == pytest.approx(concordant / math.sqrt(tied_x * tied_y))
        assert got == pytest.approx(kendalltau(x, y).statistic)


def test_bootstrap():
    rng = np.random.default_rng(0)
    x = rng.normal(0.5, 0.1, 400)
    low, high = statistics.bootstrap(x, n=2000)
    assert low < x.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * 0.1 / 20, rel=0.15)
    assert statistics.bootstrap(x) == statistics.bootstrap(x)
    assert statistics.bootstrap(x, seed=1) != statistics.bootstrap(x)
    groups = np.repeat(np.arange(20), 20)
    wide = statistics.bootstrap(np.repeat(rng.normal(size=20), 20), groups)
    narrow = statistics.bootstrap(np.repeat(rng.normal(size=20), 20))
    assert wide[1] - wide[0] > narrow[1] - narrow[0]
    for bad in ({"level": 1.0}, {"n": 0}):
        with pytest.raises(ValueError, match="expected"):
            statistics.bootstrap(x, **bad)
    with pytest.raises(ValueError, match="values: expected at least one"):
        statistics.bootstrap(np.zeros(0))


def test_paired():
    rng = np.random.default_rng(0)
    x = rng.random(300)
    better = statistics.paired(x + 0.05 + 0.01 * rng.normal(size=300), x)
    assert better.low > 0
    assert better.p_value < 0.01
    same = statistics.paired(x, x)
    assert (same.difference, same.p_value) == (0.0, 1.0)
    with pytest.raises(ValueError, match="right: expected 300"):
        statistics.paired(x, x[:9])


def test_t_interval_and_holm():
    low, high = statistics.t_interval(np.array([1.0, 2.0, 3.0]))
    assert (low, high) == (pytest.approx(2 - 2.4841, abs=1e-3), pytest.approx(4.4841, abs=1e-3))
    assert statistics.t_interval(np.array([1.0])) is None
    assert statistics.holm(np.array([0.01, 0.04, 0.03])).tolist() == [0.03, 0.06, 0.06]
    assert statistics.holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="p_values"):
        statistics.holm(np.array([1.5]))
