"""Backfilling orders on plain arrays: values, ties, seeds, and who may see new vectors."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import examples

from benchmark.metrics import backfill_orders
from benchmark.metrics.backfill_orders import ORDERS


@pytest.fixture
def table():
    """Logits whose probabilities range from even to certain."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 5)) * rng.uniform(0.1, 8, (30, 1))


def probabilities(row):
    total = math.fsum(math.exp(x) for x in row)
    return sorted(math.exp(x) / total for x in row)


def items(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return backfill_orders.Items(
        ids=rng.permutation(1000)[:n], labels=rng.integers(0, 6, n), seed=4,
        priority=rng.integers(0, 5, n).astype(np.float32),
        logits=rng.standard_normal((n, 4)).round(), old_logits=rng.standard_normal((n, 3)),
        l2=rng.random(n), disc=rng.random(n), converted=rng.standard_normal((n, 3)),
    )  # fmt: skip


def test_uncertainties_are_what_they_are_called(table):
    for i, row in enumerate(table):
        p = probabilities(row)
        assert backfill_orders.entropy(table)[i] == pytest.approx(-sum(q * math.log(q) for q in p))
        assert backfill_orders.margin(table)[i] == pytest.approx(-(p[-1] - p[-2]))
        assert 1 - math.exp(-backfill_orders.least_confidence(table)[i]) == pytest.approx(1 - p[-1])


@pytest.mark.parametrize(
    "score", [backfill_orders.entropy, backfill_orders.margin, backfill_orders.least_confidence]
)
def test_the_least_certain_comes_first(score):
    even, sure = [0.0, 0.1, 0.0], [9.0, 0.0, 0.0]
    assert backfill_orders.by_score(score(np.array([sure, even])), [0, 1]).tolist() == [1, 0]


def test_huge_logits_stay_finite_and_apart():
    table = np.array([[800.0, 0.0], [790.0, 0.0], [0.0, 0.0]])
    assert backfill_orders.by_score(backfill_orders.least_confidence(table), [0, 1, 2])[0] == 2
    assert np.isfinite(backfill_orders.entropy(table)).all()


def test_squared_distance_of_vectors_and_of_directions():
    a, b = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[6.0, 8.0], [1.0, 0.0]])
    assert backfill_orders.squared_distance(a, b).tolist() == [25.0, 1.0]
    assert backfill_orders.squared_distance(a, b, unit=True).tolist() == [pytest.approx(0), 1.0]


def test_every_order_is_a_permutation_and_does_not_depend_on_how_items_lie():
    known = items()
    moved = np.random.default_rng(9).permutation(30)
    shuffled = backfill_orders.Items(
        **{
            f.name: value[moved] if isinstance(value, np.ndarray) else value
            for f in dataclasses.fields(known)
            if (value := getattr(known, f.name)) is not None
        }
    )
    orders, left_out = backfill_orders.make_orders(list(ORDERS), known)
    again, _ = backfill_orders.make_orders(list(ORDERS), shuffled)
    assert left_out == {}
    assert list(orders) == list(ORDERS)
    for name, rows in orders.items():
        assert sorted(rows) == list(range(30))
        np.testing.assert_array_equal(known.ids[rows], shuffled.ids[again[name]])


def test_ties_go_by_id():
    assert backfill_orders.by_score(np.array([1.0, 2.0, 2.0]), ["b", "c", "a"]).tolist() == [
        2,
        1,
        0,
    ]


@examples(80)
@given(st.integers(0, 2**32 - 1))
def test_orders_agree_with_sorting(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    score, ids = rng.integers(-2, 3, n).astype(float), rng.permutation(100)[:n]
    order = backfill_orders.by_score(score, ids)
    assert order.tolist() == sorted(range(n), key=lambda i: (-score[i], ids[i]))
    labels = rng.integers(0, 4, n)
    order = backfill_orders.class_by_class(labels, ids, seed)
    known = sorted(set(labels.tolist()))
    classes = [known[i] for i in np.random.default_rng([seed, 1]).permutation(len(known))]
    assert order.tolist() == sorted(range(n), key=lambda i: (classes.index(labels[i]), ids[i]))


def test_random_orders_follow_their_seed():
    ids = np.arange(40)
    assert backfill_orders.random(ids, 3).tolist() == backfill_orders.random(ids, 3).tolist()
    assert backfill_orders.random(ids, 3).tolist() != backfill_orders.random(ids, 4).tolist()


def test_class_by_class_finishes_a_class_and_does_not_go_by_its_number():
    labels = np.random.default_rng(1).integers(0, 9, 60)
    seen = labels[backfill_orders.class_by_class(labels, np.arange(60), seed=0)]
    firsts = [c for i, c in enumerate(seen) if not i or seen[i - 1] != c]
    assert len(firsts) == 9
    assert firsts != sorted(firsts)


def test_class_distance_by_a_loop():
    rng = np.random.default_rng(2)
    vectors, labels = rng.standard_normal((40, 3)), rng.integers(0, 6, 40)
    wanted = [
        np.linalg.norm(v - np.mean([w for w, k in zip(vectors, labels, strict=True) if k == y], 0))
        for v, y in zip(vectors, labels, strict=True)
    ]
    np.testing.assert_allclose(backfill_orders.class_distance(vectors, labels), wanted, rtol=1e-6)
    names = np.array(list("abcdef"))[labels]
    same = backfill_orders.class_distance(vectors, names)
    np.testing.assert_array_equal(same, backfill_orders.class_distance(vectors, labels))
    known = backfill_orders.Items(ids=np.arange(40), labels=labels, converted=vectors)
    rows = ORDERS["class-distance"].make(known)
    assert rows[0] == int(np.argmax(wanted))
    stored = np.flatnonzero(rng.random(40) < 0.6)
    stored = stored[labels[stored] != labels[0]]  # a class that nothing stored is of
    means = {y: vectors[stored[labels[stored] == y]].mean(0) for y in set(labels[stored].tolist())}
    wanted = [
        np.linalg.norm(v - means[y]) if y in means else 0.0
        for v, y in zip(vectors, labels, strict=True)
    ]
    found = backfill_orders.class_distance(vectors, labels, stored)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert wanted[0] == 0.0 < max(found[stored])
    pair = backfill_orders.class_distance(rng.standard_normal((2, 5)), [7, 7])
    assert pair[0] == pair[1]


def test_only_oracles_see_new_vectors():
    blind = dataclasses.replace(items(), l2=None, disc=None, why={"l2": "not backfilled yet"})
    orders, left_out = backfill_orders.make_orders(list(ORDERS), blind)
    assert set(left_out) == {name for name in ORDERS if backfill_orders.is_oracle(name)}
    assert set(left_out) == {"true-l2", "true-disc", "true-l2+disc"}
    assert not backfill_orders.is_oracle("true-sigma")
    assert left_out["true-l2"] == "not backfilled yet"
    assert left_out["true-disc"] == "disc is not known"
    sighted, _ = backfill_orders.make_orders(list(ORDERS), items())
    for name, rows in orders.items():
        np.testing.assert_array_equal(rows, sighted[name])
