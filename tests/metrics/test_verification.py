"""Operating points and curves against plain loops and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from published_scripts import nearest_far
from sklearn.metrics import roc_curve
from support.problems import examples

from benchmark.metrics import verification

many = examples(60)


@st.composite
def sides(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    steps = draw(st.sampled_from([2, 5, 50, 10**6]))
    kind = draw(st.sampled_from([np.float32, np.float64]))
    n, m = draw(st.integers(1, 40)), draw(st.integers(1, 60))
    return [(rng.integers(-steps, steps + 1, k) / steps).astype(kind) for k in (n, m)]


@many
@given(sides(), st.booleans())
def test_roc_is_sklearns(pair, drop):
    good, bad = pair
    curve = verification.roc(good, bad, drop_intermediate=drop)
    truth = np.concatenate([np.ones(len(good)), np.zeros(len(bad))])
    far, tar, threshold = roc_curve(truth, np.concatenate([good, bad]), drop_intermediate=drop)
    np.testing.assert_allclose(curve.far, far)
    np.testing.assert_allclose(curve.tar, tar)
    np.testing.assert_array_equal(curve.threshold, threshold)
    np.testing.assert_array_equal(curve.frr, 1 - curve.tar)


@many
@given(sides(), st.sampled_from([0.1, 0.25, 0.5]))
def test_nearest_far(pair, target):
    good, bad = pair
    if target < 1 / len(bad):
        return
    (point,) = verification.tar_at_nearest_far(good, bad, [target])
    assert (point.far, point.tar) == pytest.approx(nearest_far(good, bad, target))


def test_nearest_far_knows_no_point_between_two_equal_steps():
    """FARs 1/4, 2/4 and 3/4 at TAR 1/2 are one line: of its ends 1/4 is nearest to 0.45."""
    good, bad = np.array([0.9, 0.1]), np.array([0.8, 0.7, 0.6, 0.5])
    (point,) = verification.tar_at_nearest_far(good, bad, [0.45])
    assert (point.far, point.tar) == (0.0, 0.5)
    (point,) = verification.tar_at_nearest_far(good, bad, [0.55])
    assert (point.far, point.tar) == (1.0, 1.0)


def test_hand_worked():
    good, bad = np.array([0.9, 0.8, 0.4]), np.array([0.5, 0.3, 0.2, 0.1])
    points = verification.tar_at_far(good, bad, [0.25, 0.5, 1.0])
    assert [p.tar for p in points] == [1.0, 1.0, 1.0]
    assert [p.far for p in points] == [0.25, 0.5, 1.0]
    tied = verification.tar_at_far(good, np.array([0.5, 0.5, 0.2, 0.1]), [0.25])[0]
    assert (tied.tar, tied.far) == (2 / 3, 0.0)
    nearest = verification.tar_at_nearest_far(good, np.array([0.5, 0.5, 0.5, 0.1]), [0.5])[0]
    assert (nearest.tar, nearest.far) == (1.0, 0.75)
    assert verification.equal_error_rate([0.9, 0.8], [0.2, 0.1]) == 0.0
    assert verification.equal_error_rate([0.2, 0.1], [0.9, 0.8]) == 1.0
    assert verification.equal_error_rate([0.5, 0.5], [0.5, 0.5]) == 0.5
