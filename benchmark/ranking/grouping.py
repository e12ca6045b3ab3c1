"""Items that belong to queries: by label, by id; nothing is held for the other items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import arrays
from benchmark.ranking.arrays import Ints, Mask

_BLOCK = 8192  # labels looked at together


class Ragged(NamedTuple):
    """Some values of each query: those of query i are ``values[offset[i] : offset[i + 1]]``."""

    offset: Ints
    values: NDArray[Any]

    @property
    def sizes(self) -> Ints:
        """Number of values of each query."""
        return np.diff(self.offset)

    @property
    def owner(self) -> Ints:
        """The query of each value."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def split(self, mask: Mask, number: Ints) -> tuple[Ragged, Ragged]:
        """The values outside of a mask and those in it, of which each query has ``number``."""
        inside = offsets(number)
        return Ragged(self.offset - inside, self.values[~mask]), Ragged(inside, self.values[mask])

    def added(self, rows: Ints, values: NDArray[Any]) -> Ragged:
        """Append values to those of some queries."""
        order = np.argsort(np.concatenate([self.owner, rows]), kind="stable")
        sizes = self.sizes + np.bincount(rows, minlength=len(self.sizes))
        return Ragged(offsets(sizes), np.concatenate([self.values, values])[order])


class Grouped(NamedTuple):
    """Queries and items in the order of their labels."""

    q_order: Ints  # queries by label
    g_order: Ints  # items by label
    start: Ints  # for each ordered query, where the items of its label begin in ``g_order``
    stop: Ints  # where they end
    offset: Ints  # where they begin if all queries' items are listed one after the other

    def some(self, rows: slice | Ints) -> Grouped:
        """Some of the ordered queries."""
        start, stop = self.start[rows], self.stop[rows]
        return Grouped(self.q_order[rows], self.g_order, start, stop, offsets(stop - start))


class Rules(NamedTuple):
    """Ids and cameras of both sides; empty where the protocol has none."""

    query_ids: Ints
    gallery_ids: Ints
    query_cameras: Ints
    gallery_cameras: Ints


def offsets(sizes: Ints) -> Ints:
    """The beginning of each of several pieces, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(sizes)])


def spread(start: Ints, stop: Ints) -> Ints:
    """The integers ``start[i]`` ... ``stop[i] - 1`` of each i, one i after the other."""
    offset = offsets(stop - start)
    return np.arange(offset[-1]) + np.repeat(start - offset[:-1], stop - start)


def grouped(ql: Ints, gl: Ints) -> Grouped:
    """Order queries and items by label, equal labels by position."""
    q_order, g_order = np.argsort(ql, kind="stable"), np.argsort(gl, kind="stable")
    labels, known = ql[q_order], gl[g_order]
    start, stop = np.searchsorted(known, labels), np.searchsorted(known, labels, "right")
    return Grouped(q_order, g_order, start, stop, offsets(stop - start))


@dataclass(frozen=True)
class Labels:
    """Labels of both sides, checked, and what leaves items out of a query's ranking."""

    query: Ints
    gallery: Ints
    rules: Rules
    junk: Mask | None  # gallery items that do not count

    @classmethod
    def checked(
        cls, shape: tuple[int, int], query_labels: Any, gallery_labels: Any, *,
        query_ids: Any = None, gallery_ids: Any = None, query_cameras: Any = None,
        gallery_cameras: Any = None, junk: Any = None,
    ) -> Labels:  # fmt: skip
        """Check the arguments of :func:`benchmark.ranking.ranks.rank`, for ``(n, m)`` rows."""
        labels = arrays.codes("labels", (query_labels, gallery_labels), shape)
        ids = arrays.both("ids", (query_ids, gallery_ids), shape)
        cameras = arrays.both("cameras", (query_cameras, gallery_cameras), shape)
        if junk is not None:
            junk = arrays.one_per_row("junk", junk, shape[1]).astype(bool, copy=False)
        return cls(*labels, Rules(*ids, *cameras), junk)

    def grouped(self, rows: Ints) -> Grouped:
        """Some queries, and the items of their labels but for junk, by label."""
        labels = self.query[rows]
        items = _among(np.unique(labels), self.gallery, self.junk)
        by = grouped(labels, self.gallery[items])
        return by._replace(q_order=rows[by.q_order], g_order=items[by.g_order])

    def matches(self) -> Ints:
        """Number of items that are not junk with each query's label."""
        known, place = np.unique(self.query, return_inverse=True)
        sizes = np.zeros(len(known), np.int64)
        for a in range(0, len(self.gallery), _BLOCK):
            here = slice(a, a + _BLOCK)
            some = self.gallery[here]
            some = some[_among(known, some, None if self.junk is None else self.junk[here])]
            sizes += np.bincount(np.searchsorted(known, some), minlength=len(known))
        return sizes[place]

    def strangers(self, order: Ints) -> tuple[Ints, Ints]:
        """Places in ``order``, ascending, and items of the id but another label: left out too."""
        if not len(self.rules.query_ids):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        expected = self.rules.query_ids[order]
        by_id = _among(np.unique(expected), self.rules.gallery_ids, self.junk)
        by_id = by_id[np.argsort(self.rules.gallery_ids[by_id], kind="stable")]
        ids = self.rules.gallery_ids[by_id]
        left, right = np.searchsorted(ids, expected), np.searchsorted(ids, expected, "right")
        rows, items = np.repeat(np.arange(len(order)), right - left), by_id[spread(left, right)]
        strange = self.query[order][rows] != self.gallery[items]
        return rows[strange], items[strange]


def _among(known: Ints, values: Ints, junk: Mask | None) -> Ints:
    """Rows, ascending, of the ``values`` that are among the ascending ``known`` and not junk."""
    parts = [np.empty(0, np.int64)]  # some thousand at a time: only what is found is held
    for a in range(0, len(values) if len(known) else 0, _BLOCK):
        some = values[a : a + _BLOCK]
        rows = np.flatnonzero((some >= known[0]) & (some <= known[-1]))
        rows = rows[known[np.searchsorted(known, some[rows])] == some[rows]]
        parts.append(a + (rows if junk is None else rows[~junk[a + rows]]))
    return np.concatenate(parts)
