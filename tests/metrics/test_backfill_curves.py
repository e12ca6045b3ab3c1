"""Backfilling curves against a dense evaluation at every point."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import naive
from support.problems import examples, problems

from benchmark.metrics import backfill_curves, identification
from benchmark.ranking import backfill_engine, ranks

some = examples(60)


@some
@given(problems(most=50, junk=False), st.integers(2, 9), st.integers(1, 3))
def test_every_point_agrees_with_plain_loops(p, points, threads):
    old_q, old_g = (p.rng.integers(-2, 3, x.shape).astype(np.float32) for x in (p.q, p.g))
    order = p.rng.permutation(len(p.g))
    found = backfill_curves.curves(
        old_q, old_g, p.q, p.g, p.ql, p.gl, order,
        points=points, distance="l2", threads=threads, **p.rules(),
    )  # fmt: skip
    old = [[naive.score(a, b, True) for b in old_g] for a in old_q]
    new = [[naive.score(a, b, True) for b in p.g] for a in p.q]
    for point, count in enumerate(found.filled):
        done = np.isin(np.arange(len(p.g)), order[:count])
        wanted = naive.ranking(np.where(done, new, old), p.ql, p.gl, p.ids, p.cameras)
        np.testing.assert_array_equal(found.first_rank[point], wanted[0])
        np.testing.assert_allclose(found.average_precision[point], wanted[1], rtol=1e-12)
        np.testing.assert_array_equal(found.n_positives, wanted[3])


@some
@given(problems(junk=False), st.integers(1, 6))
def test_ends_are_cross_test_and_self_test_exactly(p, dim):
    """Unequal dimensions by cosine, real-valued vectors, all rules: the same bits as rank."""
    old_q = p.rng.normal(size=(len(p.q), dim)).astype(np.float32)
    old_g = p.rng.normal(size=(len(p.g), dim)).astype(np.float32)
    order = p.rng.permutation(len(p.g))
    found = backfill_curves.curves(old_q, old_g, p.q, p.g, p.ql, p.gl, order, points=5, **p.rules())
    for point, (q, g) in ((0, (old_q, old_g)), (-1, (p.q, p.g))):
        alone = ranks.rank(q, g, p.ql, p.gl, **p.rules())
        at = backfill_curves.at(found, point)
        assert at.first_rank.tobytes() == alone.first_rank.tobytes()
        assert at.average_precision.tobytes() == alone.average_precision.tobytes()
        assert at.n_positives.tobytes() == alone.n_positives.tobytes()


def test_threads_chunks_and_superblocks_change_nothing(monkeypatch):

    rng = np.random.default_rng(0)
    x = [rng.normal(size=(n, 16)).astype(np.float32) for n in (150, 2500, 150, 2500)]
    ql, gl = rng.integers(0, 6, 150), rng.integers(0, 6, 2500)
    order = rng.permutation(2500)
    whole = backfill_curves.curves(*x, ql, gl, order, points=21, threads=1)
    monkeypatch.setattr(backfill_engine, "_CELLS", 1 << 20)
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
    found = backfill_curves.search_curves(*x, ps, gs, order, points=points)
    curve = found.tpir_at_fpir(target)
    for point, (q, g) in ((0, x[:2]), (-1, x[2:])):
        (alone,) = identification.tpir_at_fpir(identification.search(q, ps, g, gs), [target])
        assert curve[point] == alone.tpir
    unit = [y / np.linalg.norm(y, axis=1, keepdims=True) for y in x]
    same = ps[:, None] == gs
    for point, count in enumerate(found.filled):
        done = np.isin(np.arange(m), order[:count])
        table = np.where(done, unit[2] @ unit[3].T, unit[0] @ unit[1].T)
        best = np.where(same, -np.inf, table).max(1)
        own = np.where(same, table, -np.inf).max(1)
        np.testing.assert_allclose(found.other[point], best, atol=1e-6)
        np.testing.assert_allclose(found.own[point], own, atol=1e-6)


def test_area_offline_and_flips():
    assert backfill_curves.area(np.full(101, 0.3)) == 0.3
    assert backfill_curves.area([0.0, 0.5, 1.0]) == 0.5
    assert backfill_curves.offline([0.2, 0.5, 0.9]).tolist() == [0.2, 0.2, 0.9]
    positive, negative = backfill_curves.flips([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]])
    assert positive.tolist() == [0.0, 0.25, 0.5]
    assert negative.tolist() == [0.0, 0.25, 0.5]
    with pytest.raises(ValueError, match="curve"):
        backfill_curves.area([])
    with pytest.raises(ValueError, match="hits"):
        backfill_curves.flips([1, 0])


def test_groups_along_the_curve():
    means = backfill_curves.by_group([[0, 1, 1], [1, 1, 1]], ["a", "b", "b"])
    assert {k: v.tolist() for k, v in means.items()} == {"a": [0, 1], "b": [1, 1]}
    assert backfill_curves.group_gap(means).tolist() == [1, 0]
    share = backfill_curves.group_share([3, 2, 1, 0], ["x", "x", "y", "y"], points=3)
    assert share["y"].tolist() == [0, 1, 1]
    assert share["x"].tolist() == [0, 0, 1]


def test_orders():
    assert sorted(backfill_curves.random_order(50, 3)) == list(range(50))
    assert (
        backfill_curves.random_order(50, 3).tolist() == backfill_curves.random_order(50, 3).tolist()
    )
    assert backfill_curves.order_by_score([1.0, 2.0, 2.0], ids=["c", "b", "a"]).tolist() == [
        2,
        1,
        0,
    ]
    assert backfill_curves.order_by_class([2, 1, 2, 1]).tolist() == [1, 3, 0, 2]
    assert backfill_curves.order_by_class(["u", "v"], classes=["v", "u"]).tolist() == [1, 0]
    with pytest.raises(ValueError, match="classes"):
        backfill_curves.order_by_class(["u", "v"], classes=["v"])


def test_moments_nest_and_cover():
    for n in (0, 1, 7, 100, 101, 1234):
        filled, moment = backfill_curves.moments(n)
        assert filled[0] == 0
        assert filled[-1] == n
        for place in range(n):
            assert filled[moment[place]] > place >= filled[moment[place] - 1]


def test_refusals():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match="order: expected each"):
        backfill_curves.curves(x, x, x, x, [0, 1], [0, 1], [0, 0])
    with pytest.raises(ValueError, match="distance: expected cosine for dimensions"):
        backfill_curves.curves(x[:, :2], x[:, :2], x, x, [0, 1], [0, 1], [0, 1], distance="l2")
    with pytest.raises(ValueError, match="new_query: expected 2 rows"):
        backfill_curves.curves(x, x, x[:1], x, [0, 1], [0, 1], [0, 1])
    with pytest.raises(ValueError, match="points"):
        backfill_curves.moments(5, 1)


@pytest.mark.parametrize("points", [2, 9, 70, 400])
@pytest.mark.parametrize("reach", [1, 4])
def test_moments_inside_panels_and_ties_agree_with_a_dense_evaluation(points, reach):
    """Long moments are counted in registers, short ones score by score; ties in both."""
    rng = np.random.default_rng(points)
    n, m = 14, 2011
    x = [rng.integers(-reach, reach + 1, (k, 5)).astype(np.float32) for k in (n, m, n, m)]
    ql, gl = rng.integers(0, 60, n), rng.integers(0, 60, m)
    order = rng.permutation(m)
    found = backfill_curves.curves(*x, ql, gl, order, points=points, distance="l2")
    old, new = (-((a[:, None] - b[None]) ** 2).sum(2) for a, b in (x[:2], x[2:]))
    for point in {0, 1, points // 2, points - 2, points - 1}:
        done = np.isin(np.arange(m), order[: found.filled[point]])
        wanted = naive.ranking(np.where(done, new, old)[:3], ql[:3], gl)
        np.testing.assert_array_equal(found.first_rank[point, :3], wanted[0])
        np.testing.assert_allclose(found.average_precision[point, :3], wanted[1], rtol=1e-12)
