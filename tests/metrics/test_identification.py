"""Open-set identification against plain loops and hand-worked cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from published_scripts import all_pairs, unit
from support.problems import examples

from benchmark.metrics import identification as ident
from benchmark.metrics.catalog import describe

many = examples(60)


@st.composite
def searches(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(4, 40)), draw(st.integers(1, 25))
    x = [rng.integers(0, 3, (k, 3)).astype(np.float32) for k in (n, m)]
    ps, gs = rng.integers(0, 14, n), rng.integers(0, 7, m)
    ps[0], ps[1] = gs[0], 99
    return x[0], ps, x[1], gs


@many
@given(searches())
def test_permuting_the_gallery_changes_nothing(problem):
    p, ps, g, gs = problem
    order = np.random.default_rng(0).permutation(len(g))
    one, two = ident.search(p, ps, g, gs), ident.search(p, ps, g[order], gs[order])
    for field in ("rank", "own", "best"):
        assert getattr(one, field).tobytes() == getattr(two, field).tobytes()


def test_hand_worked():
    """Two enrolled; one probe right, one beaten, one stranger near, one far."""
    g = np.eye(3)[:2]
    p = np.array([[0.9, 0.1, 0], [0.8, 0.7, 0], [0, 0.6, 0.8], [0, 0.1, 1]])
    result = ident.search(p, ["a", "b", "x", "y"], g, ["a", "b"])
    assert result.rank.tolist() == [1, 2, 0, 0]
    points = ident.tpir_at_fpir(result, [0.5, 1.0])
    assert [point.tpir for point in points] == [0.5, 0.5]
    assert [point.fpir for point in points] == [0.5, 1.0]
    assert ident.rank_k(result, 1).tolist() == [1.0, 0.0]
    assert ident.rank_k(result, 2).tolist() == [1.0, 1.0]


def test_ties_lose_and_several_templates_count_as_one_subject():
    g = np.array([[1.0, 0], [1.0, 0], [0, 1.0]])
    result = ident.search([[1.0, 0]], [0], g, [0, 1, 1])
    assert result.rank.tolist() == [2]
    result = ident.search([[1.0, 0.1]], [0], g, [0, 0, 1])
    assert result.rank.tolist() == [1]


def test_all_pairs_are_those_of_the_script():
    rng = np.random.default_rng(0)
    gs = rng.permutation(20)
    ps = rng.integers(0, 20, 70)
    centres = rng.normal(size=(20, 6))
    p, g = (centres[s] + 0.7 * rng.normal(size=(len(s), 6)) for s in (ps, gs))
    parts = [(g[:8], gs[:8]), (g[8:], gs[8:])]
    scores = unit(p) @ unit(g).T
    targets = [0.01, 0.05, 0.3, 1.0]
    for point in ident.all_pairs_tpir_at_fpir(p, ps, parts, targets):
        wanted = all_pairs(scores, np.argsort(gs)[ps], point.target)
        assert (point.tar, point.threshold) == pytest.approx(wanted, rel=1e-5)
    assert "no rank condition" in describe("all_pairs_tpir_at_fpir_1e-2").rules


def test_all_pairs_by_hand():
    """Ten probes of one subject, FPIR 0.2: the second largest of ten negative scores decides."""
    angles = np.linspace(0.05, 0.9, 10)
    p = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    parts = [(np.eye(2)[:1], [0]), (np.eye(2)[1:], [1])]
    (point,) = ident.all_pairs_tpir_at_fpir(p, np.zeros(10, int), parts, [0.2])
    threshold = np.sort(np.sin(angles))[-2]
    assert point.threshold == pytest.approx(threshold)
    assert point.tar == np.mean(np.cos(angles) > threshold)
    assert point.far == 0.1
