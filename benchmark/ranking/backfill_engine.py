"""The engine of backfilling curves: cuts the work and runs the kernels in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import (
    arrays,
    backfill_kernels,
    engine,
    grouping,
    kernels,
    threshold_search,
    tile_counts,
)
from benchmark.ranking.arrays import permutation

_CELLS = 64 << 20  # bytes of histograms at a time; threads wait for each other in between
_PACKED = 64 << 20  # bytes of packed items at a time
_TABLES = 1 << 20  # bytes of tables and buffers a thread


def curves(
    vectors: tuple[Any, Any, Any, Any],
    given: tuple[Any, Any, Any, Any, Any, Any],
    order: Any,
    steps: tuple[NDArray[np.int64], NDArray[np.int32]],
    distance: str,
    threads: int | None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Filled items, ranks, average precisions and matches: what ``backfill.Curves`` holds."""
    run = Run(vectors, given, order, steps, distance, threads)
    n, points = len(run.by.q_order), len(steps[0])
    # A row for each query, which the kernels write as a whole: turning it takes one thread long.
    rank, ap = np.zeros((n, points), np.int64), np.full((n, points), np.nan)
    matches = np.zeros(n, np.int64)
    first = 0
    while first < n:
        last = run.chunk_end(first)
        matches[run.by.q_order[first:last]] = run.chunk(first, last, rank, ap)
        first = last
    return steps[0], rank.T, ap.T, matches


class Run:
    """One backfilling evaluation: checked arguments, and the queries a chunk at a time."""

    def __init__(
        self,
        vectors: tuple[Any, Any, Any, Any],
        given: tuple[Any, Any, Any, Any, Any, Any],
        order: Any,
        steps: tuple[NDArray[np.int64], NDArray[np.int32]],
        distance: str,
        threads: int | None,
    ) -> None:
        """Check the arguments of ``backfill.curves``."""
        if distance not in ("cosine", "l2"):
            raise ValueError(f"distance: expected 'cosine' or 'l2', got {distance!r}")
        self.l2, self.threads = distance == "l2", engine.n_threads(threads)
        self.old, self.new = sides(vectors, l2=self.l2, threads=self.threads)
        n, m = len(self.old[0].x), len(self.old[1].x)
        labels, g_labels, ids, g_ids, cameras, g_cameras = given
        self.ql, self.gl = arrays.codes("labels", labels, n, g_labels, m)
        self.rules = grouping.Rules(
            *arrays.both("ids", ids, n, g_ids, m),
            *arrays.both("cameras", cameras, n, g_cameras, m),
        )
        self.order = permutation(order, m)
        self.moment = steps[1]
        self.points = len(steps[0])
        in_order = grouping.grouped(self.ql, self.gl[self.order])
        place = in_order.g_order  # places in the order, by label, moments ascending
        self.when = self.moment[place]
        self.by = grouping.Grouped(
            in_order.q_order, self.order[place], in_order.start, in_order.stop
        )
        self.sizes = self.by.stop - self.by.start
        most = int(np.diff(steps[0]).max(initial=0))  # items that change at one point
        self.cells = np.zeros(0, np.int16 if most < 1 << 14 else np.int32)
        self.packed: dict[tuple[bool, int], NDArray[np.float32]] = {}

    def chunk_end(self, first: int) -> int:
        """Where the chunk of queries that begins at ``first`` ends: its histograms must fit."""
        widths = 2 * np.maximum.accumulate(self.sizes[first:]) + 1
        needed = np.arange(1, len(widths) + 1) * widths * self.points * self.cells.itemsize
        return first + max(1, int(np.searchsorted(needed, _CELLS, "right")))

    def chunk(
        self, first: int, last: int, rank: NDArray[np.int64], ap: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Fill in rank and average precision ``[query, point]`` of some ordered queries.

        Returns:
            How many matches each has.
        """
        by = grouping.Grouped(
            self.by.q_order[first:last],
            self.by.g_order,
            self.by.start[first:last],
            self.by.stop[first:last],
        )
        n = last - first
        own = [
            engine.own_scores(
                *side, by, self.rules, l2=self.l2, threads=self.threads, ascending=False
            )
            for side in (self.old, self.new)
        ]
        (offset, old, left_offset, left_old), (_, new, _, left_new) = own
        moment = np.empty(len(old), np.int32)
        left_moment = np.empty(len(left_old), np.int32)
        rules = self.rules
        engine.share(
            lambda s: backfill_kernels.moments_of(
                by.q_order, *s, by.start, by.stop, by.g_order, self.when,
                rules.qi, rules.gi, rules.qc, rules.gc, offset, moment, left_offset, left_moment,
            ),
            engine.spans(n, 512),
            self.threads,
        )  # fmt: skip
        left_offset, left_old, left_new, left_moment = self._strangers(
            by.q_order, left_offset, left_old, left_new, left_moment
        )
        thresholds = np.empty(2 * len(old), np.float32)

        def merge(span: tuple[int, int]) -> None:
            backfill_kernels.two_by_two(offset, old, new, *span, thresholds)
            engine.sort(2 * offset, *span, thresholds)

        engine.share(merge, engine.spans(n, 1024), self.threads)
        width = 2 * int(np.diff(offset).max(initial=0)) + 1
        cells = self._clean(n * self.points * width).reshape(n, self.points * width)
        totals = np.zeros((n, width), np.int32)
        counted = self._counting(by.q_order, 2 * offset, thresholds, width, cells, totals)

        def summarise(span: tuple[int, int]) -> None:
            backfill_kernels.summarise(
                2 * offset, thresholds, offset, old, new, moment, left_offset, left_old, left_new,
                left_moment, *span, self.points, width,
                1 << threshold_search.depth_of(width - 1), cells, totals, by.q_order, rank, ap,
            )  # fmt: skip

        pieces = engine.even(n, self._rows(width), kernels.ROWS, self.threads)
        if self.whole:  # each piece goes its way, none waits for another
            parts = [*counted, summarise]

            def all_of(span: tuple[int, int]) -> None:
                for part in parts:
                    part(span)

            engine.share(all_of, pieces, self.threads)
        else:
            for part in (*counted, summarise):
                engine.share(part, pieces, self.threads)
        return np.diff(offset)

    def _clean(self, n: int) -> NDArray[Any]:
        """Room for histograms, all zero; each chunk leaves it so."""
        if len(self.cells) < n:
            self.cells = np.zeros(n, self.cells.dtype)
        return self.cells[:n]

    def _strangers(
        self,
        q_order: NDArray[np.int64],
        offset: NDArray[np.int64],
        old: NDArray[Any],
        new: NDArray[Any],
        moment: NDArray[Any],
    ) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Add left-out items of other labels to (old scores, new scores, moments)."""
        rows, items = grouping.strangers(q_order, self.ql, self.gl, self.rules)
        if not len(rows):
            return offset, old, new, moment
        where = np.empty(len(self.order), np.int64)
        where[self.order] = np.arange(len(self.order))
        more = [
            engine.pairs(*side, q_order[rows], items, l2=self.l2, threads=self.threads)
            for side in (self.old, self.new)
        ]
        both = [
            grouping.added(offset, value, rows, extra)
            for value, extra in zip(
                (old, new, moment), [*more, self.moment[where[items]]], strict=True
            )
        ]
        return both[0][0], both[0][1], both[1][1], both[2][1]

    def _rows(self, width: int) -> int:
        """Queries of a piece: the tables and buffers of a thread must fit."""
        one = 4 * (1 << threshold_search.depth_of(width - 1)) + 4 * tile_counts.CAPACITY
        return max(1, min(16, _TABLES // (one * kernels.ROWS))) * kernels.ROWS

    def _counting(
        self,
        q_order: NDArray[np.int64],
        offset: NDArray[np.int64],
        thresholds: NDArray[np.float32],
        width: int,
        cells: NDArray[Any],
        totals: NDArray[np.int32],
    ) -> Iterator[Callable[[tuple[int, int]], None]]:
        """What counts all items into the cells, with old and then with new vectors, in order.

        Each part is to be called for every piece of the queries; for one piece, one after another.
        """
        if width == 1:
            return
        nodes, rows = 1 << threshold_search.depth_of(width - 1), self._rows(width)
        local = threading.local()

        def room() -> tuple[Any, ...]:
            if not hasattr(local, "room"):
                local.room = (
                    engine.aligned(kernels.ROWS * kernels.COLUMNS),
                    engine.aligned(rows * tile_counts.CAPACITY + 64),
                    np.empty((rows, nodes), np.float32),
                )
            return tuple(local.room)

        for is_old, (query, gallery) in ((True, self.old), (False, self.new)):
            dim = query.x.shape[1]
            qp = engine.packed(query, q_order, kernels.ROWS, self.threads)
            for first, last in engine.spans(len(self.order), self.step(dim)):
                gp = self._packed(gallery, is_old, first, last)
                tag = self.moment[first:last]

                def count(
                    span: tuple[int, int],
                    parts: tuple[Any, ...] = (qp, gp, tag, last - first, dim, self.l2, is_old),
                ) -> None:
                    backfill_kernels.fill_cells(
                        *parts, offset, thresholds, *span, width, self.points, *room(), cells
                    )

                yield count
            if is_old:
                yield lambda span: backfill_kernels.taken(cells, *span, self.points, width, totals)

    @staticmethod
    def step(dim: int) -> int:
        """Items that are packed together."""
        return max(1, _PACKED // (4 * dim * kernels.COLUMNS)) * kernels.COLUMNS

    @property
    def whole(self) -> bool:
        """Are all items packed together, with old and with new vectors, and kept?"""
        return all(
            len(self.order) <= self.step(side[1].x.shape[1]) for side in (self.old, self.new)
        )

    def _packed(
        self, gallery: engine.Side, is_old: bool, first: int, last: int
    ) -> NDArray[np.float32]:
        key = (is_old, first)
        if key in self.packed:
            return self.packed[key]
        panels = engine.packed(gallery, self.order[first:last], kernels.COLUMNS, self.threads)
        if last - first == len(self.order):
            self.packed[key] = panels
        return panels


def sides(
    vectors: tuple[Any, Any, Any, Any], *, l2: bool, threads: int
) -> tuple[tuple[engine.Side, engine.Side], tuple[engine.Side, engine.Side]]:
    """Old and new (query, gallery), checked against each other.

    Raises:
        ValueError: If a shape does not fit.
    """
    oq = engine.side("old_query", vectors[0], l2=l2, threads=threads)
    og = engine.side("old_gallery", vectors[1], l2=l2, dim=oq.x.shape[1], threads=threads)
    nq = engine.side("new_query", vectors[2], l2=l2, threads=threads)
    ng = engine.side("new_gallery", vectors[3], l2=l2, dim=nq.x.shape[1], threads=threads)
    for name, old, new in (("new_query", oq, nq), ("new_gallery", og, ng)):
        if len(old.x) != len(new.x):
            raise ValueError(f"{name}: expected {len(old.x)} rows, got {len(new.x)}")
    if l2 and oq.x.shape[1] != nq.x.shape[1]:
        raise ValueError(
            f"distance: expected cosine for dimensions {oq.x.shape[1]} and {nq.x.shape[1]}, got l2"
        )
    return (oq, og), (nq, ng)


def search(
    vectors: tuple[Any, Any, Any, Any],
    subjects: tuple[Any, Any],
    order: Any,
    steps: tuple[NDArray[np.int64], NDArray[np.int32]],
    threads: int | None,
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
    """Best own and other scores along the curve: what ``backfill.SearchCurves`` holds."""
    n_threads = engine.n_threads(threads)
    old, new = sides(vectors, l2=False, threads=n_threads)
    n, m = len(old[0].x), len(old[1].x)
    ps, gs = arrays.codes("subjects", subjects[0], n, subjects[1], m)
    rows = permutation(order, m)
    gs = gs[rows]
    filled, moment = steps
    points = len(filled)
    own = np.full((n, points), -np.inf, np.float32)
    other = np.full((n, points), -np.inf, np.float32)
    packed = [engine.packed(side[1], rows, kernels.COLUMNS, n_threads) for side in (old, new)]

    def work(span: tuple[int, int]) -> None:
        a, b = span
        for is_old, (query, _), gp in zip((True, False), (old, new), packed, strict=True):
            dim = query.x.shape[1]
            qp = engine.packed(query, np.arange(a, b), kernels.ROWS, 1)
            scores = np.empty((b - a) * m, np.float32)
            scratch = np.empty(kernels.ROWS * kernels.COLUMNS, np.float32)
            tile_counts.tile_scores(qp, b - a, gp, m, dim, False, scratch, scores)
            best = np.full((2, b - a, points + 1), -np.inf, np.float32)
            backfill_kernels.best_along(
                scores, b - a, moment, gs, ps[a:b], points, is_old, best[0], best[1]
            )
            shift = 1 if is_old else 0  # old scores of moments > p, new ones of moments <= p
            for target, value in zip((own, other), best, strict=True):
                part = value[:, shift : points + shift]
                target[a:b] = np.maximum(target[a:b], part)

    engine.share(work, engine.spans(n, 96), n_threads)
    return filled, own.T, other.T, np.isin(ps, gs)
