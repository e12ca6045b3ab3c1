"""The type of a number with its interval."""

import pytest

from benchmark.metrics.estimate import Estimate


def test_an_open_end_bounds_nothing():
    open_below, open_above = Estimate(0.5, None, 0.7), Estimate(0.5, 0.3, None)
    assert not open_below.is_above(-1e9)
    assert open_below.is_below(0.8)
    assert open_above.is_above(0.2)
    assert not open_above.is_below(1e9)
    assert open_below.ends is open_above.ends is None


def test_ends_come_together_or_not_at_all():
    assert Estimate.of(0.5, (0.4, 0.6), 0.1) == Estimate(0.5, 0.4, 0.6, 0.1)
    assert Estimate.of(None) == Estimate(None, None, None, None)
    with pytest.raises(ValueError, match="expected a number"):
        _ = Estimate(None).known
