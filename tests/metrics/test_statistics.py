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


def test_holm():
    assert statistics.holm(np.array([0.01, 0.04, 0.03])).tolist() == [0.03, 0.06, 0.06]
    assert statistics.holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
