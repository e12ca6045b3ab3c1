"""The criterion, the gains and the multi-model averages, by hand and against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.metrics import compatibility


def test_compatibility_by_hand():
    assert compatibility.compatible(0.5, 0.4)
    assert not compatibility.compatible(0.4, 0.4)
    assert compatibility.not_hurting(0.6, 0.6)
    assert not compatibility.not_hurting(0.59, 0.6)
    assert compatibility.update_gain(0.5, 0.25, 0.75) == 0.5
    assert compatibility.update_gain(0.25, 0.25, 0.75) is None
    assert compatibility.update_gain(0.5, 0.25, 0.25) is None
    assert compatibility.absolute_gain(0.5, 0.25) == 0.25
    first, gallery = {"tar_at_far_1e-4": 0.5}, {"tpir_at_fpir_1e-2": 0.25}
    two = {"tar_at_far_1e-4": 1.0, "tpir_at_fpir_1e-2": 0.75}
    assert compatibility.average(first, gallery, two) == 0.625


def test_matrices():
    matrix = [[0.4, np.nan, np.nan], [0.5, 0.6, np.nan], [0.4, 0.7, 0.8]]
    assert compatibility.average_compatibility(matrix) == pytest.approx(2 / 3)
    assert compatibility.average_accuracy(matrix) == pytest.approx(3.4 / 6)


@pytest.mark.parametrize("dim", [8, 512])
def test_scores_that_are_equal_but_for_rounding_are_kept(dim):
    """Lengths of queries change no cosine; a change beyond rounding counts, however small."""
    rng = np.random.default_rng(0)
    old, g = (rng.normal(size=(n, dim)).astype(np.float32) for n in (60, 80))
    ql, gl = rng.integers(0, 3, 60), rng.integers(0, 3, 80)
    longer = old * rng.uniform(0.1, 10, (60, 1)).astype(np.float32)
    assert compatibility.pairwise(old, g, longer, ql, gl) == 1.0
    one = np.zeros((1, dim), np.float32)
    one[0, 0] = 1
    turned = one.copy()
    turned[0, 1] = 3e-3  # a cosine lower by 4.5e-6
    same, other = np.zeros(1, int), np.ones(1, int)
    assert compatibility.pairwise(one, one, turned, same, same) == 0.0
    assert compatibility.pairwise(one, one, turned, same, other) == 1.0


@given(st.floats(-1, 2), st.floats(0, 1), st.floats(0.01, 1))
def test_shares_of_draws_are_those_of_each_score(value, lower, upgrade):
    """The update gain, boards and studies take the one function: of scores, or of their draws."""
    share = compatibility.share_of_upgrade(value, lower, lower + upgrade)
    assert share == (value - lower) / (lower + upgrade - lower)
    if value > lower:
        assert compatibility.update_gain(value, lower, lower + upgrade) == share
    draws = [np.array([x, x, 0.5]) for x in (value, lower, lower + upgrade)]
    drawn = compatibility.share_of_upgrade(*draws)
    assert drawn[:2].tolist() == [share, share] and np.isnan(drawn[2])  # no upgrade in that draw


@pytest.mark.parametrize("upgrade", [-0.1, 0.0, 0.019])
def test_without_an_upgrade_there_is_no_share(upgrade):
    least = compatibility.LEAST_UPGRADE
    assert compatibility.share_of_upgrade(0.6, 0.5, 0.5 + upgrade, least) is None
    draws = [np.array([x, x]) for x in (0.6, 0.5, 0.5 + upgrade)]
    assert compatibility.share_of_upgrade(*draws, least) is None
    assert (compatibility.share_of_upgrade(0.6, 0.5, 0.5 + upgrade) is None) == (upgrade <= 0)
