"""What is read off a backfilling curve, against plain loops over points, queries and items."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.problems import examples

from benchmark.metrics import backfill_curves

seeds = st.integers(0, 2**32 - 1)
many = examples(80)


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
    found = backfill_curves.by_group(values, names)
    assert list(found) == sorted(set(names.tolist()))
    wanted = {
        name: [mean([v for v, of in zip(row, names, strict=True) if of == name]) for row in values]
        for name in found
    }
    for name, curve in found.items():
        np.testing.assert_allclose(curve, [float(v) for v in wanted[name]], rtol=1e-14)
    at = zip(*wanted.values(), strict=True)
    gaps = [float(max(row) - min(row)) for row in at]
    np.testing.assert_allclose(backfill_curves.group_gap(found), gaps, atol=1e-14)


@many
@given(seeds, st.integers(2, 12))
def test_share_of_each_group_that_is_filled(seed, points):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 40))
    order, names = rng.permutation(m), rng.integers(0, 4, m)
    found = backfill_curves.group_share(order, names, points)
    for name in sorted(set(names.tolist())):
        for point in range(points):
            # Rounded half up, without a float.
            count = math.floor(Fraction(point * m, points - 1) + Fraction(1, 2))
            done = sum(names[item] == name for item in order[:count])
            assert found[name][point] == done / sum(names == name)


@many
@given(seeds)
def test_area_and_offline(seed):
    rng = np.random.default_rng(seed)
    curve = rng.random(int(rng.integers(1, 30)))
    np.testing.assert_allclose(backfill_curves.area(curve), float(mean(curve.tolist())), rtol=1e-15)
    assert backfill_curves.area(np.full(len(curve), curve[0])) == curve[0]
    waits = backfill_curves.offline(curve)
    assert waits.tolist() == [curve[0]] * (len(curve) - 1) + [curve[-1]]


@many
@given(seeds)
def test_orders(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    score, ids = rng.integers(-2, 3, n).astype(float), rng.permutation(100)[:n]
    order = backfill_curves.order_by_score(score, ids)
    assert order.tolist() == sorted(range(n), key=lambda i: (-score[i], ids[i]))
    labels = rng.integers(0, 4, n)
    classes = rng.permutation(4).tolist()
    order = backfill_curves.order_by_class(labels, classes)
    assert order.tolist() == sorted(range(n), key=lambda i: (classes.index(labels[i]), i))
