"""Listed pairs and all pairs: the scores of the tiles, bit for bit."""

import numpy as np
import pytest

from benchmark.ranking import pair_scores


@pytest.mark.parametrize("pairs", [7, 3000])
def test_listed_pairs_equal_the_tiles(pairs):
    """Few pairs go one by one, many by tiles: the same bits."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(n, 19)).astype(np.float32) for n in (40, 120))
    left, right = rng.integers(0, 40, pairs), rng.integers(0, 120, pairs)
    ((_, table),) = pair_scores.tiles(a, b)
    got = pair_scores.listed(a, b, left, right, threads=2)
    assert got.tobytes() == table[left, right].tobytes()
    exact = [
        a[i].astype(float) @ b[j] / np.linalg.norm(a[i]) / np.linalg.norm(b[j])
        for i, j in zip(left, right, strict=True)
    ]
    np.testing.assert_allclose(got, exact, atol=1e-6)
    with pytest.raises(ValueError, match="right_rows: expected rows 0"):
        pair_scores.listed(a, b, left, right + 120)
    with pytest.raises(ValueError, match="left_rows: expected 1-D integers"):
        pair_scores.listed(a, b, left * 0.5, right)


def test_all_pairs():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(130, 6)).astype(np.float32), rng.integers(0, 9, 130)
    ids = np.arange(130)
    good, bad = pair_scores.all_pairs(x, x, y, y, left_ids=ids, right_ids=ids, threads=2)
    table = np.concatenate([rows for _, rows in pair_scores.tiles(x, x)])
    same, other = y[:, None] == y, ids[:, None] != ids
    np.testing.assert_array_equal(good, table[same & other])
    np.testing.assert_array_equal(bad, table[~same & other])
