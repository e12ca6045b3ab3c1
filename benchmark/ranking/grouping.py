"""Which items belong to which queries: by label, by id; nothing is held for the other items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 8192  # labels looked at together


@dataclass(frozen=True)
class Grouped:
    """Queries and items in the order of their labels.

    Attributes:
        q_order: Queries by label.
        g_order: Items by label.
        start: For each ordered query, where the items of its label begin in ``g_order``.
        stop: Where they end.
    """

    q_order: NDArray[np.int64]
    g_order: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]


def grouped(ql: NDArray[np.int64], gl: NDArray[np.int64]) -> Grouped:
    """Order queries and items by label, equal labels by position."""
    q_order, g_order = np.argsort(ql, kind="stable"), np.argsort(gl, kind="stable")
    labels, sorted_gl = ql[q_order], gl[g_order]
    return Grouped(
        q_order,
        g_order,
        np.searchsorted(sorted_gl, labels, "left"),
        np.searchsorted(sorted_gl, labels, "right"),
    )


def among(
    known: NDArray[np.int64], values: NDArray[np.int64], junk: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Which of ``values`` are among the ascending ``known``, and not junk: their rows, ascending.

    Some thousand values at a time: what is held is what is found.
    """
    found = [np.empty(0, np.int64)]
    for a in range(0, len(values) if len(known) else 0, _BLOCK):
        some = values[a : a + _BLOCK]
        rows = np.flatnonzero((some >= known[0]) & (some <= known[-1]))
        rows = rows[known[np.searchsorted(known, some[rows])] == some[rows]]
        found.append(a + (rows if junk is None else rows[~junk[a + rows]]))
    return np.concatenate(found)


def matches_of(
    ql: NDArray[np.int64], gl: NDArray[np.int64], junk: NDArray[np.bool_] | None
) -> NDArray[np.int64]:
    """How many items that are not junk have each query's label."""
    known, place = np.unique(ql, return_inverse=True)
    sizes = np.zeros(len(known), np.int64)
    for a in range(0, len(gl), _BLOCK):
        some = gl[a : a + _BLOCK]
        found = some[among(known, some, None if junk is None else junk[a : a + _BLOCK])]
        sizes += np.bincount(np.searchsorted(known, found), minlength=len(known))
    return sizes[place]


@dataclass(frozen=True)
class Rules:
    """Ids and cameras of both sides; empty where the protocol has none."""

    qi: NDArray[np.int64]
    gi: NDArray[np.int64]
    qc: NDArray[np.int64]
    gc: NDArray[np.int64]


def strangers(
    order: NDArray[np.int64],
    ql: NDArray[np.int64],
    gl: NDArray[np.int64],
    rules: Rules,
    junk: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Items of a query's id but of another label, relabelled ones, say: they are left out too.

    Returns:
        Places in ``order``, ascending, and items.
    """
    if not len(rules.qi):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    by_id = among(np.unique(rules.qi[order]), rules.gi, junk)
    by_id = by_id[np.argsort(rules.gi[by_id], kind="stable")]
    ids = rules.gi[by_id]
    left = np.searchsorted(ids, rules.qi[order], "left")
    sizes = np.searchsorted(ids, rules.qi[order], "right") - left
    rows = np.repeat(np.arange(len(order)), sizes)
    inside = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    items = by_id[np.repeat(left, sizes) + inside]
    strange = ql[order][rows] != gl[items]
    return rows[strange], items[strange]


def added(
    offset: NDArray[np.int64], values: NDArray[Any], rows: NDArray[np.int64], more: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Append values to some rows of a ragged array."""
    sizes = np.diff(offset)
    owner = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), rows])
    total = sizes + np.bincount(rows, minlength=len(sizes))
    both = np.concatenate([values, more])[np.argsort(owner, kind="stable")]
    return np.concatenate([[0], np.cumsum(total)]), both
