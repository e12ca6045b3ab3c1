"""The search tree against NumPy's binary search: ties, gaps, few and many thresholds."""

import numpy as np
import pytest

from benchmark.ranking import threshold_search


@pytest.mark.parametrize("kind", ["spread", "ties", "clumped", "one"])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 127, 128, 129, 255, 256, 1000, 5000])
def test_counts_the_thresholds_that_a_score_reaches(kind, n):
    rng = np.random.default_rng(n)
    t = {
        "spread": rng.normal(size=n),
        "ties": rng.integers(-2, 3, n),
        "clumped": np.concatenate([1e-6 * rng.normal(size=n - 1), [1e6]]),
        "one": np.full(n, 0.25),
    }[kind].astype(np.float32)
    t.sort()
    near = [t, np.nextafter(t, np.float32(-np.inf)), np.nextafter(t, np.float32(np.inf))]
    scores = rng.permutation(np.concatenate([*near, rng.normal(size=37)])).astype(np.float32)
    depth = threshold_search.depth_of(n)
    tree = np.full(1 << depth, np.nan, np.float32)
    assert threshold_search.plant(t, tree) == depth
    room = np.zeros(len(scores) + 16, np.float32)
    room[: len(scores)] = scores
    expected = np.searchsorted(t, scores, side="right")
    result = np.zeros(len(room), np.int32)
    threshold_search.reached(room, len(scores), tree, depth, 1, result)
    np.testing.assert_array_equal(result[: len(scores)], expected)
    copies = threshold_search.COPIES
    threshold_search.reached(room, len(scores), tree, depth, copies, result)
    np.testing.assert_array_equal(result[: len(scores)] // copies, expected)
    np.testing.assert_array_equal(result[: len(scores)] % copies, np.arange(len(scores)) % copies)
