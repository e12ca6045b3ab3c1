"""The engine of backfilling curves: cuts the work and runs the kernels in threads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import arrays, backfill_kernels, engine, kernels, threshold_search
from benchmark.ranking.arrays import permutation
from benchmark.ranking.engine import Floats, Panels, Scorer, Span
from benchmark.ranking.grouping import Grouped, Ints, Labels, Ragged, grouped, spread

_CELLS = 64 << 20  # bytes of histograms at a time; threads wait for each other in between
_PACKED = 64 << 20  # bytes of packed items at a time
_TABLES = 1 << 20  # bytes of tables and buffers a thread

Sides = tuple[Any, Any]
Steps = tuple[Ints, NDArray[np.int32]]
"""Filled items at each point of the curve, and the point at which each item in order is filled."""


def scorers(
    old: Sides, new: Sides, *, l2: bool = False, threads: int | None = None
) -> tuple[Scorer, Scorer]:
    """Old and new (query, gallery), checked against each other.

    Raises:
        ValueError: If a shape does not fit.
    """
    both = [
        Scorer(*vectors, names=(f"{name}_query", f"{name}_gallery"), l2=l2, threads=threads)
        for name, vectors in (("old", old), ("new", new))
    ]
    for name, rows, expected in zip(
        ("query", "gallery"), both[1].shape, both[0].shape, strict=True
    ):
        if rows != expected:
            raise ValueError(f"new_{name}: expected {expected} rows, got {rows}")
    dims = [scorer.dim for scorer in both]
    if l2 and dims[0] != dims[1]:
        raise ValueError(
            f"distance: expected cosine for dimensions {dims[0]} and {dims[1]}, got l2"
        )
    return both[0], both[1]


class Run:
    """One backfilling evaluation: checked arguments, and the queries a chunk at a time."""

    def __init__(
        self,
        old: Sides,
        new: Sides,
        labels: Sides,
        order: Any,
        steps: Steps,
        *,
        distance: str = "cosine",
        threads: int | None = None,
        **rules: Any,
    ) -> None:
        """Check the arguments of ``backfill_curves.curves``."""
        self.old, self.new = scorers(old, new, l2=arrays.is_l2(distance), threads=threads)
        self.threads = self.old.threads
        self.labels = Labels.checked(self.old.shape, *labels, **rules)
        self.order = permutation(order, self.old.shape[1])
        filled, self.moment = steps
        self.points = len(filled)
        in_order = grouped(self.labels.query, self.labels.gallery[self.order])
        self.when = self.moment[in_order.g_order]  # by label, ascending
        self.by = in_order._replace(g_order=self.order[in_order.g_order])
        most = int(np.diff(filled).max(initial=0))  # items that change at one point
        self.cells = np.zeros(0, np.int16 if most < 1 << 14 else np.int32)
        self.kept: dict[Scorer, Panels] = {}

    def curves(self) -> tuple[Ints, NDArray[np.float64], Ints]:
        """Ranks and average precisions ``[points, n]``, and matches ``[n]``."""
        n = len(self.by.q_order)
        # A row for each query, which the kernels write as a whole: turning it takes one thread long
        rank, ap = np.zeros((n, self.points), np.int64), np.full((n, self.points), np.nan)
        matches = np.zeros(n, np.int64)
        first = 0
        while first < n:
            last = self._chunk_end(first)
            by = self.by.some(slice(first, last))
            matches[by.q_order] = self._chunk(by, rank, ap)
            first = last
        return rank.T, ap.T, matches

    def _chunk_end(self, first: int) -> int:
        """Where the chunk of queries that begins at ``first`` ends: its histograms must fit."""
        widths = 2 * np.maximum.accumulate(np.diff(self.by.offset)[first:]) + 1
        needed = np.arange(1, len(widths) + 1) * widths * self.points * self.cells.itemsize
        return first + max(1, int(np.searchsorted(needed, _CELLS, "right")))

    def _chunk(self, by: Grouped, rank: Ints, ap: NDArray[np.float64]) -> Ints:
        """Fill in rank and average precision ``[query, point]`` of some queries.

        Returns:
            How many matches each has.
        """
        n = len(by.q_order)
        matches, left_out = self._scores(by)
        old, new, _ = matches
        thresholds = Ragged(2 * old.offset, np.empty(2 * len(old.values), np.float32))

        def merge(span: Span) -> None:
            backfill_kernels.two_by_two(old, new, *span, thresholds.values)
            engine.sort(thresholds, *span)

        engine.share(merge, engine.spans(n, 1024), self.threads)
        width = int(thresholds.sizes.max(initial=0)) + 1
        cells = self._clean(n * self.points * width).reshape(n, self.points * width)
        totals = np.zeros((n, width), np.int32)

        def summarise(span: Span) -> None:
            backfill_kernels.summarise(
                thresholds, matches, left_out, *span, self.points, width, cells, totals,
                by.q_order, rank, ap,
            )  # fmt: skip

        nodes = 1 << threshold_search.depth_of(width - 1)
        rows = max(1, min(16, _TABLES // (4 * (nodes + kernels.CAPACITY) * kernels.ROWS)))
        rows *= kernels.ROWS
        room = engine.Workspace(rows, nodes)
        parts = self._counting(by.q_order, thresholds, width, room, cells, totals)
        pieces = engine.even(n, rows, kernels.ROWS, self.threads)
        if self._fits(self.old) and self._fits(self.new):
            stages = [*parts, summarise]  # each piece goes its way, none waits for another

            def work(span: Span) -> None:
                for stage in stages:
                    stage(span)

            engine.share(work, pieces, self.threads)
        else:
            for part in (*parts, summarise):
                engine.share(part, pieces, self.threads)
        return old.sizes

    def _scores(self, by: Grouped) -> tuple[tuple[Ragged, ...], tuple[Ragged, ...]]:
        """Old scores, new scores and moments, of the matches and of the items left out."""
        both = self.old, self.new
        columns = [
            *(scorer.class_scores(by) for scorer in both),
            self.when[spread(by.start, by.stop)],
        ]
        mask = self.old.left_out(by, self.labels)
        split = [Ragged(by.offset, column).split(*mask) for column in columns]
        matches, left_out = zip(*split, strict=True)
        rows, items = self.labels.strangers(by.q_order)
        if len(rows):
            place = np.empty(len(self.order), np.int64)
            place[self.order] = np.arange(len(self.order))
            more = [
                *(scorer.pairs(by.q_order[rows], items) for scorer in both),
                self.moment[place[items]],
            ]
            left_out = tuple(
                column.added(rows, extra) for column, extra in zip(left_out, more, strict=True)
            )
        return matches, left_out

    def _clean(self, n: int) -> NDArray[Any]:
        """Room for histograms, all zero; each chunk leaves it so."""
        if len(self.cells) < n:
            self.cells = np.zeros(n, self.cells.dtype)
        return self.cells[:n]

    def _counting(
        self,
        rows: Ints,
        thresholds: Ragged,
        width: int,
        room: engine.Workspace,
        cells: NDArray[Any],
        totals: NDArray[np.int32],
    ) -> Iterator[Callable[[Span], None]]:
        """Count all items into the cells, with old and then with new vectors, in order.

        Each part is to be called for every piece of the queries; for one piece, one after another.
        """
        if width == 1:
            return

        def count(panels: tuple[Any, ...], change: int, span: Span) -> None:
            backfill_kernels.fill_cells(
                *panels, change, thresholds, *span, width, self.points, room.arrays, cells
            )

        for scorer, change in ((self.old, -1), (self.new, 1)):
            queries = scorer.queries(rows)
            for first, last in engine.spans(len(self.order), scorer.step(_PACKED)):
                panels = (
                    queries,
                    self._packed(scorer, first, last),
                    scorer.l2,
                    self.moment[first:last],
                )
                yield functools.partial(count, panels, change)
            if scorer is self.old:
                yield lambda span: backfill_kernels.taken(cells, *span, self.points, width, totals)

    def _fits(self, scorer: Scorer) -> bool:
        """Are all items packed together, and kept?"""
        return len(self.order) <= scorer.step(_PACKED)

    def _packed(self, scorer: Scorer, first: int, last: int) -> Panels:
        if scorer in self.kept:
            return self.kept[scorer]
        panels = scorer.items(self.order[first:last])
        if self._fits(scorer):
            self.kept[scorer] = panels
        return panels


def search(
    old: Sides, new: Sides, subjects: Sides, order: Any, steps: Steps, threads: int | None
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Best scores along the curve, of each probe's own subject and of the others ``[points, n]``.

    Returns:
        Both, and which subjects are in the gallery.
    """
    both = scorers(old, new, threads=threads)
    n, m = both[0].shape
    ps, gs = arrays.codes("subjects", subjects[0], n, subjects[1], m)
    rows = permutation(order, m)
    gs = gs[rows]
    points, moment = len(steps[0]), steps[1]
    own, other = (np.full((n, points), -np.inf, np.float32) for _ in range(2))
    packed = [scorer.items(rows) for scorer in both]

    def work(span: Span) -> None:
        here = slice(*span)
        for is_old, scorer, items in zip((True, False), both, packed, strict=True):
            some = scorer.query.packed(np.arange(*span), kernels.ROWS, 1)
            scores = engine.tile(some, items, l2=False)
            best = np.full((2, some.n, points + 1), -np.inf, np.float32)
            backfill_kernels.best_along(scores, moment, gs, ps[here], points, is_old, *best)
            shift = 1 if is_old else 0  # old scores of moments > p, new ones of moments <= p
            for target, value in zip((own, other), best, strict=True):
                target[here] = np.maximum(target[here], value[:, shift : points + shift])

    engine.share(work, engine.spans(n, 96), both[0].threads)
    return own.T, other.T, np.isin(ps, gs)
