"""The engine of backfilling curves: cuts the work and runs the kernels in threads."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import arrays, backfill_kernels, engine, kernels, threshold_search
from benchmark.ranking.arrays import Floats, Ints
from benchmark.ranking.blocks import blocks
from benchmark.ranking.engine import Panels, Scorer
from benchmark.ranking.grouping import Grouped, Labels, Ragged, grouped, spread

_CELLS = 64 << 20  # bytes of histograms at a time; threads wait for each other in between
_PACKED = 64 << 20  # bytes of packed items at a time
_TABLES = 1 << 20  # bytes of tables and buffers a thread

Sides = tuple[Any, Any]
Stage = Callable[[int, int], object]  # of a piece of the queries
Steps = tuple[Ints, NDArray[np.int32]]
"""Filled items at each point of the curve, and the point at which each item in order is filled."""


class Cells(NamedTuple):
    """Histograms of some queries, over points and numbers of thresholds reached."""

    changes: NDArray[Any]  # what each point adds, [query, points * width]
    totals: NDArray[np.int32]  # what the unfilled gallery has, [query, width]
    points: int
    width: int  # 1 + the most thresholds of a query


def scorers(old: Sides, new: Sides, distance: str, threads: int | None) -> tuple[Scorer, Scorer]:
    """Old and new (query, gallery), checked against each other."""
    a, b = (
        Scorer(*x, names=(f"{name}_query", f"{name}_gallery"), distance=distance, threads=threads)
        for name, x in (("old", old), ("new", new))
    )
    for name, expected, rows in zip(("query", "gallery"), a.shape, b.shape, strict=True):
        if rows != expected:
            raise ValueError(f"new_{name}: expected {expected} rows, got {rows}")
    if a.l2 and a.dim != b.dim:
        raise ValueError(f"distance: expected cosine for dimensions {a.dim} and {b.dim}, got l2")
    return a, b


class Run:
    """One backfilling evaluation: checked arguments, and the queries a chunk at a time."""

    def __init__(
        self, old: Sides, new: Sides, labels: Sides, order: Any, steps: Steps, *,
        distance: str = "cosine", threads: int | None = None, **rules: Any,
    ) -> None:  # fmt: skip
        """Check the arguments of ``backfill_curves.curves``."""
        self.scorers = scorers(old, new, distance, threads)
        self.old, self.threads = self.scorers[0], self.scorers[0].threads
        self.labels = Labels.checked(self.old.shape, *labels, **rules)
        self.order = arrays.permutation(order, self.old.shape[1])
        filled, self.moment = steps  # moments of the items in order
        self.points = len(filled)
        self.moment_of = np.empty(len(self.order), np.int32)  # moments of the items as they lie
        self.moment_of[self.order] = self.moment
        by = grouped(self.labels.query, self.labels.gallery[self.order])
        self.by = by._replace(g_order=self.order[by.g_order])
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

    def _class_scores(self, scorer: Scorer, by: Grouped) -> Floats:
        """Scores of each ordered query's items, one query after the other."""
        return scorer.class_scores(by)

    def _pairs(self, scorer: Scorer, by: Grouped, rows: Ints, items: Ints) -> Floats:
        """Scores of places among the ordered queries and of items."""
        return scorer.pairs(by.q_order[rows], items)

    def _chunk(self, by: Grouped, rank: Ints, ap: NDArray[np.float64]) -> Ints:
        """Fill in rank and average precision ``[query, point]`` of some; returns their matches."""
        n = len(by.q_order)
        matches, left_out = self._scores(by)
        old, new, _ = matches
        thresholds = Ragged(2 * old.offset, np.empty(2 * len(old.values), np.float32))

        def merge(first: int, last: int) -> None:
            backfill_kernels.two_by_two(old, new, first, last, thresholds.values)
            engine.sort(thresholds, first, last)

        engine.share(merge, engine.spans(n, 1024), self.threads)
        cells = self._cells(n, int(thresholds.sizes.max(initial=0)) + 1)

        def summarise(first: int, last: int) -> None:
            backfill_kernels.summarise(
                thresholds, matches, left_out, cells, first, last, by.q_order, rank, ap
            )

        nodes = 1 << threshold_search.depth_of(cells.width - 1)
        tiles = max(1, min(16, _TABLES // (4 * (nodes + kernels.CAPACITY) * kernels.ROWS)))
        room = engine.Workspace(tiles * kernels.ROWS, nodes)
        pieces = engine.even(n, tiles * kernels.ROWS, kernels.ROWS, self.threads)
        counting = self._counting(by.q_order, thresholds, room, cells)
        stages: Iterable[Stage] = itertools.chain(counting, [summarise])
        if all(self._fits(scorer) for scorer in self.scorers):
            every = list(stages)  # each piece goes its way, none waits for another
            stages = [lambda *span: [stage(*span) for stage in every]]
        for stage in stages:
            engine.share(stage, pieces, self.threads)
        return old.sizes

    def _scores(self, by: Grouped) -> tuple[tuple[Ragged, ...], tuple[Ragged, ...]]:
        """Old scores, new scores and moments, of the matches and of the items left out."""
        moments = self.moment_of[by.g_order[spread(by.start, by.stop)]]
        columns = [*(self._class_scores(scorer, by) for scorer in self.scorers), moments]
        mask = self.old.left_out(by, self.labels)
        split = [Ragged(by.offset, column).split(*mask) for column in columns]
        matches, left_out = zip(*split, strict=True)
        rows, items = self.labels.strangers(by.q_order)
        if len(rows):
            more = [self._pairs(scorer, by, rows, items) for scorer in self.scorers]
            pairs = zip(left_out, [*more, self.moment_of[items]], strict=True)
            left_out = tuple(column.added(rows, extra) for column, extra in pairs)
        return matches, left_out

    def _cells(self, n: int, width: int) -> Cells:
        """Room for histograms, all zero; each chunk leaves it so."""
        shape = n, self.points * width
        if len(self.cells) < n * shape[1]:
            self.cells = np.zeros(n * shape[1], self.cells.dtype)
        changes = self.cells[: n * shape[1]].reshape(shape)
        return Cells(changes, np.zeros((n, width), np.int32), self.points, width)

    def _counting(
        self, rows: Ints, thresholds: Ragged, room: engine.Workspace, cells: Cells
    ) -> Iterator[Stage]:
        """Stages that count all items into the cells, with old and then with new vectors.

        Each is to be called for every piece of the queries; for one piece, one after another.
        """
        if cells.width == 1:
            return

        def count(panels: tuple[Any, ...], change: int, first: int, last: int) -> None:
            backfill_kernels.fill_cells(
                *panels, self.old.l2, change, thresholds, first, last, room.arrays, cells
            )

        for scorer, change in zip(self.scorers, (-1, 1), strict=True):
            queries = scorer.queries(rows)
            for first, last in engine.spans(len(self.order), scorer.step(_PACKED)):
                items = self.kept.get(scorer) or scorer.items(self.order[first:last])
                if self._fits(scorer):
                    self.kept[scorer] = items
                panels = queries, items, self.moment[first:last]
                yield functools.partial(count, panels, change)
            if scorer is self.old:
                yield functools.partial(backfill_kernels.taken, cells)

    def _fits(self, scorer: Scorer) -> bool:
        """Whether all items are packed together, and kept."""
        return len(self.order) <= scorer.step(_PACKED)


def search(
    old: Sides, new: Sides, subjects: Sides, order: Any, steps: Steps, threads: int | None
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Best scores of each probe's subject and of others ``[points, n]``, and who is enrolled."""
    both = scorers(old, new, "cosine", threads)
    n, m = both[0].shape
    ps, gs = arrays.codes("subjects", subjects, (n, m))
    rows, points = arrays.permutation(order, m), len(steps[0])
    own, other = (np.full((n, points), -np.inf, np.float32) for _ in range(2))

    def add(is_old: bool, first: int, last: int, scores: Floats) -> None:
        peaks = np.full((2, last - first, points + 1), -np.inf, np.float32)
        backfill_kernels.peaks(scores, steps[1], gs[rows], ps[first:last], *peaks)
        if is_old:  # at point p those of moments > p count, of new ones those of moments <= p
            peaks = np.maximum.accumulate(peaks[:, :, ::-1], axis=2)[:, :, -2::-1]
        else:
            peaks = np.maximum.accumulate(peaks, axis=2)[:, :, :points]
        for target, best in zip((own, other), peaks, strict=True):
            target[first:last] = np.maximum(target[first:last], best)

    for scorer, is_old in zip(both, (True, False), strict=True):
        blocks(scorer, functools.partial(add, is_old), g_rows=rows)
    return own.T, other.T, np.isin(ps, gs)
