"""Shares of an upgrade that are kept, and their intervals."""

import numpy as np
import pytest

from benchmark.upgrade.statistics import share_kept


def test_a_share_by_hand():
    old, new = np.array([0.0, 0.5, 0.5]), np.array([1.0, 1.0, 0.5])
    kept = share_kept(np.array([1.0, 0.5, 0.75]), old, new)
    assert kept.value == pytest.approx(1.25 / 1.5)


def test_both_bounds_keep_nothing_and_all():
    rng = np.random.default_rng(0)
    old = rng.random(60)
    new = old + 0.1 + 0.2 * rng.random(60)
    for values, share in ((old, 0.0), (new, 1.0)):
        kept = share_kept(values, old, new)
        assert (kept.value, kept.low, kept.high) == (share, share, share)


def test_no_upgrade_has_no_share():
    assert share_kept(np.ones(9), np.ones(9), np.ones(9)) is None
    assert share_kept(np.ones(9), np.ones(9), np.zeros(9)) is None


def test_an_uncertain_upgrade_leaves_the_interval_open():
    """In many draws of these queries there is no upgrade at all."""
    rng = np.random.default_rng(1)
    old, new = rng.random(20), rng.random(20)
    new += 0.02 + (old - new).mean()
    kept = share_kept(rng.random(20), old, new)
    assert kept.low is None and kept.high is None


def test_groups_are_drawn_whole():
    """Ten queries of one class say no more than one."""
    rng = np.random.default_rng(2)
    old, new, values = np.zeros(20), np.ones(20), rng.random(20)
    alone = share_kept(values, old, new)
    many = share_kept(*(np.repeat(x, 10) for x in (values, old, new)), np.repeat(np.arange(20), 10))
    assert (many.low, many.high) == pytest.approx((alone.low, alone.high))


def test_without_a_lower_bound_it_is_of_the_new_score():
    assert share_kept(np.full(9, 0.4), None, np.full(9, 0.8)).value == pytest.approx(0.5)
