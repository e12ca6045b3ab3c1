"""Classes that are drawn, and a priority against the truth."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from threadpoolctl import threadpool_limits

from benchmark.harness.evaluation.cases import Case
from benchmark.harness.evaluation.details import draw

NAMES = ("a", "b", "c", "d", "e", "f")


def items(labels, query=None, gallery=None):
    rows = np.arange(len(labels))
    return SimpleNamespace(
        query=rows if query is None else query, gallery=rows if gallery is None else gallery,
        labels=np.asarray(labels), ids=rows[::-1].copy(),
    )  # fmt: skip


def on_a_line(places, each: int = 6):
    """Classes around places on a line, ``each`` items apart by a little."""
    labels = np.repeat(np.arange(len(places)), each)
    rng = np.random.default_rng(0)
    vectors = np.zeros((len(labels), 4), np.float32)
    vectors[:, 0] = np.asarray(places)[labels] + rng.normal(size=len(labels)) * 1e-3
    return vectors, labels


def test_the_median_class_and_its_three_nearest() -> None:
    # Nearest neighbours at 1, 1, 2, 3, 4, 10: the median (lower of two) is c, 2 away from b.
    old, labels = on_a_line([0.0, 1.0, 3.0, 6.0, 10.0, 20.0])
    shown = draw(Case("new/old", old, old), old, items(labels), NAMES, "l2")
    assert shown is not None
    assert shown.classes == ("c", "b", "a", "d")
    assert np.bincount(shown.label).tolist() == [6, 6, 6, 6]
    # The same vectors twice lie at the same places, up to what t-SNE moves them.
    assert np.abs(shown.old - shown.new).max() < 0.2
    both = np.concatenate([shown.old, shown.new])
    assert both.min() == 0.0
    assert both.max() == 1.0


def test_at_most_so_many_items_of_a_class() -> None:
    old, labels = on_a_line([0.0, 1.0], each=60)
    shown = draw(Case("new/old", old, old), old, items(labels), NAMES, "l2")
    assert shown is not None
    assert np.bincount(shown.label).tolist() == [48, 48]


def test_nothing_to_draw() -> None:
    same, labels = np.ones((8, 4), np.float32), np.repeat([0, 1], 4)
    assert draw(Case("new/old", same, same), same, items(labels), NAMES, "l2") is None
    one = items([0], np.array([0]), np.array([0]))
    assert draw(Case("new/old", same[:1], same[:1]), same[:1], one, NAMES, "l2") is None


def test_only_directions_count_with_cosine() -> None:
    old, labels = on_a_line([0.0, 1.0, 3.0, 6.0])
    old[:, 1] = 1.0
    # Powers of two, which leave no trace in a direction.
    longer = old * (2.0 ** (np.arange(len(old)) % 5)).astype(np.float32)[:, None]
    got = [draw(Case("new/old", v, v), v, items(labels), NAMES, "cosine") for v in (old, longer)]
    assert got[0] is not None
    assert got[1] is not None
    assert got[0].classes == got[1].classes
    np.testing.assert_array_equal(got[0].old, got[1].old)


def test_does_not_depend_on_threads() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 12)
    old = (rng.normal(size=(5, 16))[labels] + rng.normal(size=(60, 16))).astype(np.float32)
    made = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            made.append(draw(Case("new/old", old + 1, old), old, items(labels), NAMES, "cosine"))
    assert made[0] is not None
    assert made[1] is not None
    np.testing.assert_array_equal(made[0].new, made[1].new)
