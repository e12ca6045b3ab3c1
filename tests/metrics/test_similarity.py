"""Linear CKA on streams, its edges and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import examples

from benchmark.metrics.similarity import linear_cka


@examples(100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_cka_on_a_stream_is_the_whole(seed, parts):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 5)) + 100
    y = x[:, :3] @ rng.normal(size=(3, 4)) + rng.normal(size=(40, 4))
    batches = zip(np.array_split(x, parts), np.array_split(y, parts), strict=True)
    xc, yc = x - x.mean(0), y - y.mean(0)
    cross = (xc.T @ yc) ** 2
    own = np.linalg.norm(xc.T @ xc) * np.linalg.norm(yc.T @ yc)
    assert linear_cka(batches) == pytest.approx(cross.sum() / own, rel=1e-9)


def test_cka_edges():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert linear_cka([(x, 3 * x @ turn + 7)]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="constant side"):
        linear_cka([(x, np.ones((30, 2)))])
    with pytest.raises(ValueError, match="at least 2 items"):
        linear_cka([])
    with pytest.raises(ValueError, match="as many rows"):
        linear_cka([(x, x[:3])])
    with pytest.raises(ValueError, match="expected dimensions"):
        linear_cka([(x, x), (x[:, :3], x)])
    with pytest.raises(ValueError, match="finite"):
        linear_cka([(x * np.nan, x)])
