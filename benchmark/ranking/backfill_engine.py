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
from benchmark.ranking.score_scale import Scale, rounded_up

CELLS = 64 << 20  # bytes of histograms at a time; threads wait for each other in between
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


def scorers(
    first: Sides, second: Sides, distance: str, threads: int | None,
    names: tuple[str, str] = ("old", "new"),
) -> tuple[Scorer, Scorer]:  # fmt: skip
    """Two pairs of query and gallery, of as many rows each."""
    a, b = (
        Scorer(*x, names=(f"{name}_query", f"{name}_gallery"), distance=distance, threads=threads)
        for name, x in zip(names, (first, second), strict=True)
    )
    for side, expected, rows in zip(("query", "gallery"), a.shape, b.shape, strict=True):
        if rows != expected:
            raise ValueError(f"{names[1]}_{side}: expected {expected} rows, got {rows}")
    return a, b


def moment_of(order: Any, steps: Steps) -> NDArray[np.int32]:
    """The point at which each item is filled, as the items lie, ``[m]``."""
    moment = np.empty(len(steps[1]), np.int32)
    moment[arrays.permutation(order, len(moment))] = steps[1]
    return moment


class BackfillRun:
    """One backfilling evaluation: checked arguments, and the queries a chunk at a time."""

    def __init__(
        self, old: Sides, new: Sides, labels: Sides, order: Any, steps: Steps, *,
        distance: str = "cosine", threads: int | None = None, scale: Scale | None = None,
        **rules: Any,
    ) -> None:  # fmt: skip
        """Check the arguments of ``backfill_curves.curves``.

        ``scale`` maps old scores before they are ranked with new ones.
        """
        self.scale = scale
        self.scorers = a, b = scorers(old, new, distance, threads)
        if a.l2 and a.dim != b.dim:
            dims = f"dimensions {a.dim} and {b.dim}"
            raise ValueError(f"distance: expected cosine for {dims}, got l2")
        self.old, self.threads = a, a.threads
        self.labels = Labels.checked(self.old.shape, *labels, **rules)
        self.order = arrays.permutation(order, self.old.shape[1])
        self.filled, self.moment = steps  # moments of the items in order
        self.points = len(self.filled)
        self.moment_of = moment_of(self.order, steps)
        by = grouped(self.labels.query, self.labels.gallery[self.order])
        self.by = by._replace(g_order=self.order[by.g_order])
        most = int(np.diff(self.filled).max(initial=0))  # items that change at one point
        self.room = np.zeros(0, np.int16 if most < 1 << 14 else np.int32)  # for the cells
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
        """The end of the chunk of queries that begins at ``first``: its histograms must fit."""
        widths = 2 * np.maximum.accumulate(np.diff(self.by.offset)[first:]) + 1
        needed = np.arange(1, len(widths) + 1) * widths * self.points * self.room.itemsize
        return first + max(1, int(np.searchsorted(needed, CELLS, "right")))

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
        thresholds = self._thresholds(old, new)
        cells = self._cells(n, int(thresholds[0].sizes.max(initial=0)) + 1)

        def summarise(first: int, last: int) -> None:
            backfill_kernels.summarise(
                *thresholds, matches, left_out, cells, first, last, by.q_order, rank, ap
            )

        nodes = 1 << threshold_search.depth_of(cells.width - 1)
        tiles = max(1, min(16, _TABLES // (4 * (nodes + kernels.CAPACITY) * kernels.ROWS)))
        pieces = engine.even(n, tiles * kernels.ROWS, kernels.ROWS, self.threads)
        room = engine.Workspace(tiles * kernels.ROWS, nodes)
        stages: Iterable[Stage]
        stages = itertools.chain(self._counting(by.q_order, thresholds, room, cells), [summarise])
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

    def _thresholds(self, old: Ragged, new: Ragged) -> tuple[Ragged, Ragged]:
        """Scores that reach a match before or after its moment: in the old list, in the new one."""
        scale, start = self.scale, 2 * old.offset
        kind = np.float32 if scale is None else np.float64
        merged = Ragged(start, np.empty(start[-1], kind))
        scores = old if scale is None else Ragged(old.offset, scale(old.values))

        def merge(first: int, last: int) -> None:
            backfill_kernels.two_by_two(scores, new, first, last, merged.values)
            engine.sort(merged, first, last)

        engine.share(merge, engine.spans(len(old.sizes), 1024), self.threads)
        if scale is None:
            return merged, merged
        least = np.empty(start[-1], np.float32)

        def invert(first: int, last: int) -> None:
            least[first:last] = scale.reaching(merged.values[first:last])

        engine.share(invert, engine.spans(len(least), 1 << 16), self.threads)
        return Ragged(start, least), Ragged(start, rounded_up(merged.values))

    def _cells(self, n: int, width: int) -> Cells:
        """Room for histograms, all zero; each chunk leaves it so."""
        shape = n, self.points * width
        if len(self.room) < n * shape[1]:
            self.room = np.zeros(n * shape[1], self.room.dtype)
        changes = self.room[: n * shape[1]].reshape(shape)
        return Cells(changes, np.zeros((n, width), np.int32), self.points, width)

    def _counting(
        self, rows: Ints, thresholds: tuple[Ragged, Ragged], room: engine.Workspace, cells: Cells
    ) -> Iterator[Stage]:
        """Stages that count all items into the cells, with old and then with new vectors.

        Each is to be called for every piece of the queries; for one piece, one after another.
        """
        if cells.width == 1:
            return
        yield from self._count(self.old, rows, thresholds[0], room, cells)
        yield functools.partial(backfill_kernels.taken, cells)
        yield from self._count(self.scorers[1], rows, thresholds[1], room, cells)

    def _count(
        self, scorer: Scorer, rows: Ints, thresholds: Ragged, room: engine.Workspace, cells: Cells
    ) -> Iterator[Stage]:
        """Stages that count one list's items: old ones leave at their moment, new ones come."""
        change, queries = (-1 if scorer is self.old else 1), scorer.queries(rows)

        def count(panels: tuple[Any, ...], a: int, b: int) -> None:
            backfill_kernels.fill_cells(
                *panels, self.old.l2, change, thresholds, a, b, room.arrays, cells
            )

        for first, last in engine.spans(len(self.order), scorer.step(_PACKED)):
            items = self.kept.get(scorer) or scorer.items(self.order[first:last])
            if self._fits(scorer):
                self.kept[scorer] = items
            yield functools.partial(count, (queries, items, self.moment[first:last]))

    def _fits(self, scorer: Scorer) -> bool:
        """Tell whether all items are packed together, and kept."""
        return len(self.order) <= scorer.step(_PACKED)


def search(
    old: Sides, new: Sides, subjects: Sides, order: Any, steps: Steps, threads: int | None,
    scale: Scale | None = None,
) -> tuple[Floats, Floats, NDArray[np.bool_]]:  # fmt: skip
    """Best scores of each probe's subject and of others ``[points, n]``, and who is enrolled."""
    both = scorers(old, new, "cosine", threads)
    n, m = both[0].shape
    ps, gs = arrays.codes("subjects", subjects, (n, m))
    rows, points = arrays.permutation(order, m), len(steps[0])
    kind = np.float32 if scale is None else np.float64
    own, other = (np.full((n, points), -np.inf, kind) for _ in range(2))

    def add(is_old: bool, first: int, last: int, scores: Floats) -> None:
        peaks: NDArray[Any] = np.full((2, last - first, points + 1), -np.inf, np.float32)
        backfill_kernels.peaks(scores, steps[1], gs[rows], ps[first:last], *peaks)
        if is_old and scale is not None:
            peaks = np.where(np.isfinite(peaks), scale(np.maximum(peaks, -1.0)), -np.inf)
        if is_old:  # at point p those of moments > p count, of new ones those of moments <= p
            peaks = np.maximum.accumulate(peaks[:, :, ::-1], axis=2)[:, :, -2::-1]
        else:
            peaks = np.maximum.accumulate(peaks, axis=2)[:, :, :points]
        for target, best in zip((own, other), peaks, strict=True):
            target[first:last] = np.maximum(target[first:last], best)

    for scorer, is_old in zip(both, (True, False), strict=True):
        blocks(scorer, functools.partial(add, is_old), g_rows=rows)
    return own.T, other.T, np.isin(ps, gs)
