"""Backfilling curves and what is read off them, against a dense evaluation at every point."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import naive
from support.problems import examples, problems

from benchmark.metrics import backfill_curves, identification
from benchmark.ranking import backfill_engine, ranks

seeds = st.integers(0, 2**32 - 1)
some, many = examples(60), examples(80)


@some
@given(problems(most=50, junk=False), st.integers(2, 9), st.integers(1, 3))
def test_every_point_agrees_with_plain_loops(p, points, threads):
    old_q, old_g = (p.rng.integers(-2, 3, x.shape).astype(np.float32) for x in (p.q, p.g))
    order = p.rng.permutation(len(p.g))
    result = backfill_curves.curves(
        old_q, old_g, p.q, p.g, p.ql, p.gl, order,
        points=points, distance="l2", threads=threads, **p.rules(),
    )  # fmt: skip
    old, new = naive.table(old_q, old_g, l2=True), naive.table(p.q, p.g, l2=True)
    for point, count in enumerate(result.filled):
        done = np.isin(np.arange(len(p.g)), order[:count])
        expected = naive.ranking(np.where(done, new, old), p.ql, p.gl, p.ids, p.cameras)
        np.testing.assert_array_equal(result.first_rank[point], expected[0])
        np.testing.assert_allclose(result.average_precision[point], expected[1], rtol=1e-12)
        np.testing.assert_array_equal(result.n_positives, expected[3])


@some
@given(problems(junk=False), st.integers(1, 6))
def test_ends_are_cross_test_and_self_test_exactly(p, dim):
    """Unequal dimensions by cosine, real-valued vectors, all rules: the same bits as rank."""
    old_q = p.rng.normal(size=(len(p.q), dim)).astype(np.float32)
    old_g = p.rng.normal(size=(len(p.g), dim)).astype(np.float32)
    order = p.rng.permutation(len(p.g))
    result = backfill_curves.curves(
        old_q, old_g, p.q, p.g, p.ql, p.gl, order, points=5, **p.rules()
    )
    for point, (q, g) in ((0, (old_q, old_g)), (-1, (p.q, p.g))):
        alone = ranks.rank(q, g, p.ql, p.gl, **p.rules())
        at = backfill_curves.at(result, point)
        assert at.first_rank.tobytes() == alone.first_rank.tobytes()
        assert at.average_precision.tobytes() == alone.average_precision.tobytes()
        assert at.n_positives.tobytes() == alone.n_positives.tobytes()


def test_threads_chunks_and_superblocks_change_nothing(monkeypatch):

    rng = np.random.default_rng(0)
    x = [rng.normal(size=(n, 16)).astype(np.float32) for n in (150, 2500, 150, 2500)]
    ql, gl = rng.integers(0, 6, 150), rng.integers(0, 6, 2500)
    order = rng.permutation(2500)
    whole = backfill_curves.curves(*x, ql, gl, order, points=21, threads=1)
    monkeypatch.setattr(backfill_engine, "CELLS", 1 << 20)
    monkeypatch.setattr(backfill_engine, "_PACKED", 1 << 15)
    parts = backfill_curves.curves(*x, ql, gl, order, points=21, threads=3)
    assert whole.first_rank.tobytes() == parts.first_rank.tobytes()
    assert whole.average_precision.tobytes() == parts.average_precision.tobytes()
    half = order[: whole.filled[10]]
    done = np.isin(np.arange(2500), half)
    unit = [y / np.linalg.norm(y, axis=1, keepdims=True) for y in x]
    table = np.where(done, unit[2][:3] @ unit[3].T, unit[0][:3] @ unit[1].T)
    rough = naive.ranking(table, ql[:3], gl)
    np.testing.assert_allclose(whole.average_precision[10, :3], rough[1], rtol=1e-3)


@some
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.sampled_from([0.25, 0.5, 1.0]))
def test_search_curves_agree_with_dense_searches(seed, points, target):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(20, 40)), int(rng.integers(3, 20))
    x = [rng.integers(1, 4, (k, 3)).astype(np.float32) for k in (n, m, n, m)]
    ps, gs = rng.integers(0, 12, n), rng.integers(0, 6, m)
    ps[:2] = gs[0], 99
    ps[2:8] = 99
    order = rng.permutation(m)
    result = backfill_curves.search_curves(*x, ps, gs, order, points=points)
    curve = result.tpir_at_fpir([target])[0]
    for point, (q, g) in ((0, x[:2]), (-1, x[2:])):
        (alone,) = identification.tpir_at_fpir(identification.search(q, ps, g, gs), [target])
        assert curve[point] == alone.tpir
    unit = [y / np.linalg.norm(y, axis=1, keepdims=True) for y in x]
    same = ps[:, None] == gs
    for point, count in enumerate(result.filled):
        done = np.isin(np.arange(m), order[:count])
        table = np.where(done, unit[2] @ unit[3].T, unit[0] @ unit[1].T)
        best = np.where(same, -np.inf, table).max(1)
        own = np.where(same, table, -np.inf).max(1)
        np.testing.assert_allclose(result.other[point], best, atol=1e-6)
        np.testing.assert_allclose(result.own[point], own, atol=1e-6)


def test_area_offline_and_flips():
    assert backfill_curves.area(np.full(101, 0.3)) == 0.3
    assert backfill_curves.area([0.0, 0.5, 1.0]) == 0.5
    assert backfill_curves.offline([0.2, 0.5, 0.9]).tolist() == [0.2, 0.2, 0.9]
    positive, negative = backfill_curves.flips([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]])
    assert positive.tolist() == [0.0, 0.25, 0.5]
    assert negative.tolist() == [0.0, 0.25, 0.5]


def test_groups_along_the_curve():
    means = backfill_curves.by_group([[0, 1, 1], [1, 1, 1]], ["a", "b", "b"])
    assert {k: v.tolist() for k, v in means.items()} == {"a": [0, 1], "b": [1, 1]}
    assert backfill_curves.group_gap(means).tolist() == [1, 0]
    share = backfill_curves.group_share([3, 2, 1, 0], ["x", "x", "y", "y"], points=3)
    assert share["y"].tolist() == [0, 1, 1]
    assert share["x"].tolist() == [0, 0, 1]


def test_moments_nest_and_cover():
    for n in (0, 1, 7, 100, 101, 1234):
        filled, moment = backfill_curves.moments(n)
        assert filled[0] == 0
        assert filled[-1] == n
        for place in range(n):
            assert filled[moment[place]] > place >= filled[moment[place] - 1]


@pytest.mark.parametrize("points", [2, 9, 70, 400])
@pytest.mark.parametrize("reach", [1, 4])
def test_moments_inside_panels_and_ties_agree_with_a_dense_evaluation(points, reach):
    """Long moments are counted in registers, short ones score by score; ties in both."""
    rng = np.random.default_rng(points)
    n, m = 14, 2011
    x = [rng.integers(-reach, reach + 1, (k, 5)).astype(np.float32) for k in (n, m, n, m)]
    ql, gl = rng.integers(0, 60, n), rng.integers(0, 60, m)
    order = rng.permutation(m)
    result = backfill_curves.curves(*x, ql, gl, order, points=points, distance="l2")
    old, new = (-((a[:, None] - b[None]) ** 2).sum(2) for a, b in (x[:2], x[2:]))
    for point in {0, 1, points // 2, points - 2, points - 1}:
        done = np.isin(np.arange(m), order[: result.filled[point]])
        expected = naive.ranking(np.where(done, new, old)[:3], ql[:3], gl)
        np.testing.assert_array_equal(result.first_rank[point, :3], expected[0])
        np.testing.assert_allclose(result.average_precision[point, :3], expected[1], rtol=1e-12)


def mean(values):
    return sum(map(Fraction, values)) / len(values)


@many
@given(seeds)
def test_flips(seed):
    rng = np.random.default_rng(seed)
    hits = rng.integers(0, 2, (int(rng.integers(1, 8)), int(rng.integers(1, 20))))
    positive, negative = backfill_curves.flips(hits)
    for point, now in enumerate(hits):
        up = sum(b and not a for a, b in zip(hits[0], now, strict=True))
        down = sum(a and not b for a, b in zip(hits[0], now, strict=True))
        assert (positive[point], negative[point]) == (up / len(now), down / len(now))


@many
@given(seeds)
def test_groups_and_their_gap(seed):
    rng = np.random.default_rng(seed)
    points, n = int(rng.integers(1, 8)), int(rng.integers(1, 20))
    values = rng.integers(0, 9, (points, n)) / 8
    names = np.array(["a", "b", "c d"])[rng.integers(0, 3, n)]
    result = backfill_curves.by_group(values, names)
    assert list(result) == sorted(set(names.tolist()))
    expected = {
        name: [mean([v for v, of in zip(row, names, strict=True) if of == name]) for row in values]
        for name in result
    }
    for name, curve in result.items():
        np.testing.assert_allclose(curve, [float(v) for v in expected[name]], rtol=1e-14)
    at = zip(*expected.values(), strict=True)
    gaps = [float(max(row) - min(row)) for row in at]
    np.testing.assert_allclose(backfill_curves.group_gap(result), gaps, atol=1e-14)


@many
@given(seeds, st.integers(2, 12))
def test_share_of_each_group_that_is_filled(seed, points):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 40))
    order, names = rng.permutation(m), rng.integers(0, 4, m)
    result = backfill_curves.group_share(order, names, points)
    for name in sorted(set(names.tolist())):
        for point in range(points):
            # Rounded half up, without a float.
            count = math.floor(Fraction(point * m, points - 1) + Fraction(1, 2))
            done = sum(names[item] == name for item in order[:count])
            assert result[name][point] == done / sum(names == name)


@many
@given(seeds)
def test_area_and_offline(seed):
    rng = np.random.default_rng(seed)
    curve = rng.random(int(rng.integers(1, 30)))
    np.testing.assert_allclose(backfill_curves.area(curve), float(mean(curve.tolist())), rtol=1e-15)
    assert backfill_curves.area(np.full(len(curve), curve[0])) == curve[0]
    waits = backfill_curves.offline(curve)
    assert waits.tolist() == [curve[0]] * (len(curve) - 1) + [curve[-1]]
