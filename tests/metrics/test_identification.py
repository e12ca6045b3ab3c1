"""Open-set identification against plain loops and hand-worked cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from published_scripts import all_pairs, unit
from support.problems import examples

from benchmark.metrics import identification as ident
from benchmark.metrics.catalog import describe

many = examples(150)


@st.composite
def searches(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(4, 40)), draw(st.integers(1, 25))
    x = [rng.integers(0, 3, (k, 3)).astype(np.float32) for k in (n, m)]
    ps, gs = rng.integers(0, 14, n), rng.integers(0, 7, m)
    ps[0], ps[1] = gs[0], 99
    return x[0], ps, x[1], gs


@many
@given(searches(), st.integers(1, 3))
def test_search_agrees_with_plain_loops(problem, threads):
    p, ps, g, gs = problem
    result = ident.search(p, ps, g, gs, threads=threads)
    unit = [(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)) for x in (p, g)]
    table = np.round(unit[0].astype(float) @ unit[1].T, 5)  # equal cosines are equal here
    for i in range(len(p)):
        own = [s for s, subject in zip(table[i], gs, strict=True) if subject == ps[i]]
        assert result.mated[i] == bool(own)
        assert result.best[i] == pytest.approx(max(table[i]), abs=1e-4)
        if own:
            assert result.own[i] == pytest.approx(max(own), abs=1e-4)


@many
@given(searches(), st.sampled_from([0.05, 0.2, 0.5, 1.0]))
def test_operating_points_agree_with_plain_loops(problem, target):
    result = ident.search(*problem)
    bad = result.best[~result.mated].tolist()
    if target < 1 / len(bad):
        with pytest.raises(ValueError, match="non-mated probes"):
            ident.tpir_at_fpir(result, [target])
        return
    (point,) = ident.tpir_at_fpir(result, [target])
    own, rank = result.own[result.mated].tolist(), result.rank[result.mated].tolist()
    allowed = [t for t in [*own, *bad, 9.0] if sum(b >= t for b in bad) / len(bad) <= target]
    t = min(allowed)
    hits = [float(r == 1 and s >= t) for r, s in zip(rank, own, strict=True)]
    assert point.hits.tolist() == hits
    assert point.tpir == pytest.approx(sum(hits) / len(hits))
    assert point.fpir == sum(b >= t for b in bad) / len(bad)
    assert (point.n_mated, point.n_nonmated) == (len(own), len(bad))


@many
@given(searches())
def test_curve_passes_through_the_points(problem):
    result = ident.search(*problem)
    fpir, tpir = ident.dir_curve(result)
    assert (fpir[0], fpir[-1]) == (0.0, 1.0)
    assert tpir[-1] == ident.rank_k(result, 1).mean()
    for rate, value in zip(fpir[1:], tpir[1:], strict=True):
        (point,) = ident.tpir_at_fpir(result, [rate])
        assert (point.fpir, point.tpir) == (pytest.approx(rate), pytest.approx(value))


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


def test_pooled_is_the_search_of_both():
    rng = np.random.default_rng(0)
    p, g = rng.normal(size=(9, 4)), rng.normal(size=(6, 4))
    ps, gs = np.arange(9), np.arange(6)
    one = ident.pooled(p, ps, [(g[:2], gs[:2]), (g[2:], gs[2:])])
    two = ident.search(p, ps, g, gs)
    assert one.rank.tolist() == two.rank.tolist()


def test_refusals():
    x = np.eye(2)
    with pytest.raises(ValueError, match="gallery_vectors: expected at least one"):
        ident.search(x, [0, 1], x[:0], np.zeros(0, int))
    with pytest.raises(ValueError, match="expected mated and non-mated"):
        ident.tpir_at_fpir(ident.search(x, [0, 1], x, [0, 1]), [0.5])
    with pytest.raises(ValueError, match="k: expected at least 1"):
        ident.rank_k(ident.search(x, [0, 1], x, [0, 1]), 0)
    with pytest.raises(ValueError, match="probe_vectors: expected finite"):
        ident.search(x * np.nan, [0, 1], x, [0, 1])


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
    for bad in (0.0, 1.1):
        with pytest.raises(ValueError, match="targets: expected rates"):
            ident.all_pairs_tpir_at_fpir(p, np.zeros(10, int), parts, [bad])
    with pytest.raises(ValueError, match="probe_subjects: expected one"):
        ident.all_pairs_tpir_at_fpir(p, np.full(10, 7), parts, [0.2])
