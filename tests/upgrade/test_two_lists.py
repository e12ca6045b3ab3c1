"""Two result lists as one, and queries between two models', against their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.contract.lists import ranks
from benchmark.upgrade.fusion import Cascade, RankFusion
from benchmark.upgrade.interpolation import SHARES, midpoint, rotated, slerp


@given(st.lists(st.one_of(st.just(np.nan), st.integers(0, 4).map(float)), min_size=1, max_size=9))
def test_ranks_count_what_scores_at_least_as_high(row):
    found = ranks(np.array([row]))[0]
    for score, rank in zip(row, found, strict=True):
        if np.isnan(score):
            assert np.isnan(rank)
        else:
            assert rank == sum(other >= score for other in row)


def test_rank_fusion_by_hand():
    """Items a, b, c, d: the lists are a b c and c a, d is in neither."""
    first = np.array([[0.9, 0.8, 0.1, np.nan]])
    second = np.array([[0.2, np.nan, 0.7, np.nan]])
    merged = RankFusion().merge(first, second)[0]
    assert merged[:3] == pytest.approx([1 / 61 + 1 / 62, 1 / 62, 1 / 63 + 1 / 61])
    assert np.isnan(merged[3])


def test_a_cascade_keeps_what_the_first_list_has_and_sorts_by_the_second():
    first, second = np.array([[3.0, 2.0, np.nan]]), np.array([[0.1, 0.2, 0.9]])
    merged = Cascade().merge(first, second)[0]
    assert merged[1] > merged[0] and np.isnan(merged[2])
    assert Cascade(window=50).new_embeddings == 50 and RankFusion().new_embeddings == 0


def test_slerp_ranks_as_a_weighted_sum_of_scores():
    """Its score is (1 - b) u.g + b v.g with b = sin(at) / (sin(at) + sin((1 - a)t)), scaled."""
    rng = np.random.default_rng(0)
    u, v, g = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in rng.normal(size=(3, 5, 8)))
    u, v = u.astype(np.float32), v.astype(np.float32)
    for share in SHARES:
        angle = np.arccos((u * v).sum(1))
        b = np.sin(share * angle) / (np.sin(share * angle) + np.sin((1 - share) * angle))
        expected = (1 - b)[:, None] * (u @ g.T) + b[:, None] * (v @ g.T)
        scores = slerp(u, v, share) @ g.T
        assert (np.argsort(scores, 1) == np.argsort(expected, 1)).all()
    assert slerp(u, v, 0) == pytest.approx(u, abs=1e-5)
    assert slerp(u, v, 0.5) == pytest.approx(midpoint(u, v), abs=1e-5)


@pytest.mark.parametrize("dims", [(6, 6), (4, 6), (6, 4)])
def test_rotated_queries_recover_a_rotation(dims):
    rng = np.random.default_rng(0)
    d_old, d_new = dims
    inner = rng.normal(size=(200, min(dims)))
    inner /= np.linalg.norm(inner, axis=1, keepdims=True)
    axes = [np.linalg.qr(rng.normal(size=(d, d)))[0][: min(dims)] for d in dims]
    old, new = (np.asarray(inner @ a, np.float32) for a in axes)
    assert (old.shape[1], new.shape[1]) == (d_old, d_new)
    assert rotated(old, new, new) == pytest.approx(old, abs=1e-5)
