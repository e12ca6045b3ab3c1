"""Queries that are looked at: by hand, and the same whatever the method did."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.records.details import Nearest
from benchmark.records.pictures import choose_queries, look_at


def nearest(first_right: list[str], cases=("old/old", "new/old", "new/new")) -> Nearest:
    """A string a query: whether the first item is right (+) in each case; the second never is."""
    n = len(first_right)
    right = np.zeros((len(cases), n, 2), np.bool_)
    for q, marks in enumerate(first_right):
        right[:, q, 0] = [mark == "+" for mark in marks]
    items = np.arange(len(cases) * n * 2).reshape(len(cases), n, 2)
    return Nearest(tuple(cases), np.arange(n) * 10, items, right)


def test_by_hand() -> None:
    # old/old, new/old, new/new of each query; the method's own case in the middle chooses nothing
    bounds = nearest(["-+-", "-++", "+-+", "+--", "--+", "++-", "+++", "---"])
    assert choose_queries(bounds) == [
        ("fixed", 1), ("fixed", 4), ("broken", 3), ("broken", 5),
        ("typical", 0), ("typical", 2), ("typical", 6), ("typical", 7),
    ]  # fmt: skip


def test_four_of_each_kind_and_twelve_in_all() -> None:
    many = nearest(["--+"] * 9 + ["+--"] * 9 + ["+-+"] * 30 + ["---"] * 10)
    chosen = choose_queries(many)
    assert [kind for kind, _ in chosen] == ["fixed"] * 4 + ["broken"] * 4 + ["typical"] * 4
    # three quarters of the rest are right before and after
    assert [place for _, place in chosen[8:]] == [18, 19, 20, 48]


def test_typical_ones_stand_in() -> None:
    chosen = choose_queries(nearest(["--+"] * 2 + ["+-+"] * 40))
    assert [kind for kind, _ in chosen] == ["fixed"] * 2 + ["typical"] * 10


@pytest.mark.parametrize("cases", [("old/old", "new/new"), ("old/old", "new/old", "new/new")])
def test_a_methods_items(cases) -> None:
    marks = ["-" + "+" * (len(cases) - 1)]
    own = nearest(marks, cases)
    (looked,) = look_at(own, nearest(["-++"]))
    assert (looked.kind, looked.query) == ("fixed", 0)
    assert looked.before == ((0, False), (1, False))
    assert looked.after == ((2, True), (3, False))


def test_nothing_where_there_is_nothing_to_compare() -> None:
    bounds = nearest(["-++", "+++"])
    assert look_at(nearest(["-"] * 2, ("old/old",)), bounds) == []
    assert look_at(nearest(["-++"]), bounds) == []  # of other queries
    assert choose_queries(nearest(["-"], ("old/old",))) == []
