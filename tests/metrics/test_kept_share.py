"""Shares of an upgrade that are kept, and their intervals, beside what is true."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.metrics.intervals import mean_difference, mean_spread
from benchmark.metrics.kept_share import (
    Scored,
    beyond,
    contrast,
    difference,
    mean,
    measured,
    share_kept,
)


def kept(values, old, new, groups=None):
    old = None if old is None else measured(old)
    return share_kept(measured(values), old, measured(new), groups)


def test_a_share_by_hand():
    old, new = np.array([0.0, 0.5, 0.5]), np.array([1.0, 1.0, 0.5])
    assert kept(np.array([1.0, 0.5, 0.75]), old, new).value == pytest.approx(1.25 / 1.5)


def test_both_bounds_keep_nothing_and_all():
    rng = np.random.default_rng(0)
    old = measured(rng.random(60))
    new = measured(old.values + 0.1 + 0.2 * rng.random(60))
    for each, share in ((old, 0.0), (new, 1.0)):
        found = share_kept(each, old, new)
        assert (found.value, found.low, found.high) == (share, share, share)


def test_no_upgrade_has_no_share():
    assert kept(np.ones(9), np.ones(9), np.ones(9)) is None
    assert kept(np.ones(9), np.ones(9), np.zeros(9)) is None


def test_an_uncertain_upgrade_leaves_the_interval_open():
    """The differences allow that there is no upgrade at all."""
    rng = np.random.default_rng(1)
    old, new = rng.random(20), rng.random(20)
    new += 0.02 + (old - new).mean()
    found = kept(rng.random(20), old, new)
    assert difference(measured(new), measured(old)).low < 0
    assert found.low is None and found.high is None


def test_groups_are_drawn_whole():
    """Ten queries of one class say no more than one."""
    rng = np.random.default_rng(2)
    old, new, values = np.zeros(20), np.ones(20), rng.random(20)
    alone = kept(values, old, new)
    many = kept(*(np.repeat(x, 10) for x in (values, old, new)), np.repeat(np.arange(20), 10))
    assert (many.low, many.high) == pytest.approx((alone.low, alone.high))


def test_without_a_lower_bound_it_is_of_the_new_score():
    assert kept(np.full(9, 0.4), None, np.full(9, 0.8)).value == pytest.approx(0.5)


def test_a_difference_of_scores_ends_at_one():
    new = np.ones(200)
    new[:2] = 0.9
    found = difference(measured(new), measured(np.zeros(200)))
    assert found.value == pytest.approx(0.999) and found.high == 1.0 and found.low > 0.95


def test_ends_are_where_the_difference_to_that_share_is_off_zero():
    rng = np.random.default_rng(3)
    old, new = rng.random((2, 80)) + np.array([[0.0], [0.4]])
    values = old + 0.8 * (new - old) + 0.1 * rng.normal(size=80)
    found = kept(values, old, new)
    for end, side in ((found.low, 0), (found.high, 1)):
        span = beyond(measured(values), measured(old), measured(new), end).interval()
        assert span[side] == pytest.approx(0.0, abs=1e-6)


def test_all_of_fifty_kept_is_not_surely_all():
    """One of thirteen more could be lost, and fifty would not show it in one of forty cases."""
    found = kept(np.ones(50), np.zeros(50), np.ones(50))
    assert found.value == 1.0 and 0.9 < found.low < 0.95 and found.high > 1.0


@pytest.mark.parametrize("n", [50, 100, 300])
def test_rare_losses_are_not_said_to_be_none(n):
    """Losses of .45 in 3.8 % of the queries, true share .85: samples that have none say little."""
    rng, says, holds, rounds = np.random.default_rng(4), 0, 0, 200
    for _ in range(rounds):
        new = (rng.random(n) < 0.114).astype(float)
        found = kept(new - 0.45 * (rng.random(n) < 0.038), np.zeros(n), new)
        if found is not None:
            says += found.low is not None and found.low >= 0.9
        holds += found is None or (
            (found.low is None or found.low <= 0.85) and (found.high is None or found.high >= 0.85)
        )
    assert says <= 0.025 * rounds and holds >= 0.93 * rounds


def test_two_that_agree_on_a_sample_may_differ():
    """A class of ten queries in eighteen differs: of thirty classes drawn a sixth have none."""
    rng, holds, rounds = np.random.default_rng(5), 0, 300
    for _ in range(rounds):
        differs = np.repeat(rng.random(30) < 1 / 18, 10) * 0.108
        found = difference(measured(differs), measured(np.zeros(300)), np.repeat(np.arange(30), 10))
        holds += found.low <= 0.006 <= found.high
    assert holds >= 0.95 * rounds


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.3, 0.0, 0.0, 0.2, 1.0]), min_size=5, max_size=60))
def test_an_interval_and_its_p_value_say_the_same(values):
    found = mean_difference(np.array(values))
    low, high = found.interval()
    assert (found.p_value() < 0.05) == (low > 0 or high < 0)
    assert low - 1e-12 <= found.value <= high + 1e-12


def test_three_of_five_hundred_tell_nothing():
    values = np.zeros(500)
    values[:3] = 1.0
    found = mean_difference(values)
    assert found.interval()[0] < 0 and found.p_value() > 0.25


def test_estimates_are_less_sure_than_measurements():
    """An interval has both: queries as they were drawn, and what was not measured of them."""
    rng = np.random.default_rng(6)
    values = rng.random(100)
    noise = 0.05 * rng.standard_normal(200)
    draws = Scored.of_draws(np.clip(values + noise[:, None], 0, 1))
    alone, both = mean(measured(values)), mean(draws)
    assert alone.sampling is None and both.sampling == pytest.approx(0.098, abs=0.015)
    halves = [(each.high - each.low) / 2 for each in (alone, both)]
    assert halves[1] ** 2 == pytest.approx(halves[0] ** 2 + both.sampling**2, rel=0.1)
    assert mean_spread(values).value == pytest.approx(alone.value)


def test_errors_of_their_own_weigh_more_in_fewer_queries():
    """A tenth of the queries: errors of each query ten times the variance, common ones the same."""
    rng = np.random.default_rng(8)
    own, common = 0.1 * rng.standard_normal((2000, 400)), 0.02 * rng.standard_normal((2000, 1))
    at = np.arange(0, 400, 10)
    for errors, times in ((own, 10.0), (np.broadcast_to(common, (2000, 400)), 1.0)):
        whole = Scored.of_draws(0.5 + errors)
        some = whole.of_queries(at)
        assert some.variance == pytest.approx(times * whole.variance, rel=0.15)
        np.testing.assert_array_equal(some.values, whole.values[at])
    turned = whole.of_queries(at, turn=3)
    np.testing.assert_array_equal(turned.noise, np.roll(some.noise, 3))
    alone = measured(np.arange(400.0)).of_queries(at)
    assert alone.noise is None and alone.values.tolist() == at.tolist()
    with pytest.raises(ValueError, match="got a difference"):
        whole.less(measured(np.zeros(400))).of_queries(at)


def test_common_draws_cancel():
    """Two estimates that are off together differ by little."""
    noise = 0.1 * np.random.default_rng(7).standard_normal(50)
    left, right = (Scored(np.full(30, level), noise - noise.mean()) for level in (0.6, 0.5))
    assert contrast(left, right).interval()[0] > 0
    assert left.less(right).variance == 0.0 and left.variance > 0.005
