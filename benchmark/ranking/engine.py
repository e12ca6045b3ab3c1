"""Exact counts on CPUs: prepares the arrays, cuts the work and runs the kernels in threads.

The kernels release the interpreter's lock, so plain threads share the work; each takes the next
piece when it is done. Pieces write to places of their own: the result cannot depend on their order.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import arrays, kernels, matching, threshold_search, tile_counts
from benchmark.ranking.grouping import Grouped, Rules

_PACKED = 32 << 20  # bytes of packed items at a time
_TABLES = 3 << 19  # bytes of tables and buffers a thread
_BLOCK = 8192  # vectors looked at together


@dataclass(frozen=True)
class Side:
    """Vectors, and what each is multiplied by before it is used: 1 / length for cosines.

    Attributes:
        x: float32, float16 or the bits of bfloat16; the last two are widened a few at a time, where
            they are used.
        scale: The factors; None where they are found anew at each use, so that nothing is held for
            each item of a large gallery.
        l2: No cosines: every factor is 1.
    """

    x: NDArray[Any]
    scale: NDArray[np.float64] | None
    l2: bool = False

    def take(self, rows: NDArray[np.int64] | slice) -> Side:
        """Some of the vectors."""
        return Side(self.x[rows], None if self.scale is None else self.scale[rows], self.l2)

    def wide(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Some of the vectors, as float32."""
        return arrays.widened(self.x[rows])

    def scales(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The factors of some of the vectors."""
        if self.scale is not None:
            return self.scale[rows]
        return np.ones(len(rows)) if self.l2 else _inverse(_lengths(self.x, rows))


def n_threads(threads: int | None) -> int:
    """The number of threads to use.

    Raises:
        ValueError: If it is below 1.
    """
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if threads < 1:
        raise ValueError(f"threads: expected at least 1, got {threads}")
    return threads


def share(work: Callable[[Any], None], pieces: Iterable[Any], threads: int) -> None:
    """Carry out ``work`` for every piece, in threads that take the next one when free."""
    items = list(pieces)
    if threads == 1 or len(items) < 2:
        for item in items:
            work(item)
        return
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        for _ in pool.map(work, items):
            pass


def spans(n: int, step: int) -> list[tuple[int, int]]:
    """``range(n)`` cut into pieces."""
    return [(a, min(a + step, n)) for a in range(0, n, step)]


def even(n: int, most: int, unit: int, threads: int) -> list[tuple[int, int]]:
    """``range(n)`` cut into pieces of at most ``most``, as many for each thread.

    Args:
        n: What there is.
        most: The largest piece, a multiple of ``unit``.
        unit: Pieces are multiples of it, but the last.
        threads: Which share the pieces.

    Example:
        >>> even(820, 96, 12, 2)[-2:]  # pieces of 96 would be nine, of which one thread gets five
        [(672, 756), (756, 820)]
    """
    pieces = -(-n // most)
    pieces = -(-pieces // threads) * threads
    return spans(n, max(unit, -(-n // (pieces * unit)) * unit))


def side(
    name: str,
    value: Any,
    *,
    l2: bool = False,
    dim: int | None = None,
    threads: int = 1,
    keep: bool = True,
) -> Side:
    """Check vectors by their lengths, and keep what follows from these, or not.

    Raises:
        ValueError: If the shape or type is another, or a value is NaN or infinite.
    """
    x = arrays.compact(name, value, dim=dim)
    scale = np.ones(len(x)) if keep else None
    bad: list[tuple[int, float]] = []

    def work(span: tuple[int, int]) -> None:
        a, b = span
        found = _lengths(x, np.arange(a, b))
        good = np.isfinite(found)
        if not good.all():
            row = int(np.argmin(good))
            bad.append((a + row, float(found[row])))
        elif scale is not None and not l2:
            scale[a:b] = _inverse(found)

    share(work, spans(len(x), _BLOCK), threads)
    if bad:
        row, found = min(bad)
        raise ValueError(f"{name}: expected finite values, got {found} in row {row}")
    return Side(x, scale, l2)


def _lengths(x: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    out = np.empty(len(rows))
    if x.dtype == np.float32:
        tile_counts.norms(x, rows, out)
        return out
    for a, b in spans(len(rows), _BLOCK):
        tile_counts.norms(arrays.widened(x[rows[a:b]]), np.arange(b - a), out[a:b])
    return out


def _inverse(length: NDArray[np.float64]) -> NDArray[np.float64]:
    length[length == 0.0] = 1.0
    return np.divide(1.0, length, out=length)


def aligned(n: int) -> NDArray[np.float32]:
    """Room for float32 values on a cache line's boundary."""
    raw = np.empty(n * 4 + 64, np.uint8)
    first = -raw.ctypes.data % 64
    return raw[first : first + n * 4].view(np.float32)


def packed(part: Side, order: NDArray[np.int64], width: int, threads: int) -> NDArray[np.float32]:
    """The vectors ``order`` as panels."""
    dim = part.x.shape[1]
    out = aligned(-(-len(order) // width) * width * dim)

    def work(span: tuple[int, int]) -> None:
        first, last = span
        rows = order[first:last]
        room, scale = out[first * dim :], part.scales(rows)
        if part.x.dtype == np.float32:
            tile_counts.pack(part.x, rows, scale, width, room)
        else:
            tile_counts.pack(part.wide(rows), np.arange(len(rows)), scale, width, room)

    share(work, spans(len(order), 64 * width), threads)
    return out


def count_above(
    query: Side,
    gallery: Side,
    offset: NDArray[np.int64],
    thresholds: NDArray[np.float32],
    *,
    l2: bool,
    threads: int,
    junk: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """How many items of the gallery score at least each threshold.

    Args:
        query: ``[n, d]``.
        gallery: ``[m, d]``.
        offset: Where each query's thresholds begin, ``[n + 1]``.
        thresholds: Ascending for each query.
        l2: Negative squared distances instead of products.
        threads: Threads.
        junk: Items that are not counted; none by default.

    Returns:
        Counts, as ``thresholds``.
    """
    above = np.zeros(len(thresholds), np.int64)
    most = int(np.diff(offset).max(initial=0))
    if not most:
        return above
    dim = query.x.shape[1]
    nodes = 1 << threshold_search.depth_of(most)
    one = 4 * nodes + 4 * tile_counts.CAPACITY + 4 * threshold_search.COPIES * (most + 1)
    groups = max(1, min(8, _TABLES // (one * kernels.ROWS)))
    rows = groups * kernels.ROWS
    qp = packed(query, np.arange(len(query.x)), kernels.ROWS, threads)
    local = threading.local()

    def room() -> tuple[Any, ...]:
        if not hasattr(local, "room"):
            local.room = (
                aligned(kernels.ROWS * kernels.COLUMNS),
                aligned(rows * tile_counts.CAPACITY + 64),
                np.empty((rows, nodes), np.float32),
                np.empty((rows, threshold_search.COPIES * (most + 1)), np.uint32),
            )
        return tuple(local.room)

    step = max(1, _PACKED // (4 * dim * kernels.COLUMNS)) * kernels.COLUMNS
    for first, last in spans(len(gallery.x), step):
        some = np.arange(first, last)
        if junk is not None:
            some = some[~junk[first:last]]
        gp = packed(gallery, some, kernels.COLUMNS, threads)

        def work(span: tuple[int, int], gp: NDArray[np.float32] = gp, n: int = len(some)) -> None:
            tile_counts.count(qp, gp, n, dim, l2, offset, thresholds, *span, *room(), above)

        share(work, spans(len(query.x), rows), threads)
        del gp, work  # before the next items are packed
    return above


def own_scores(
    query: Side,
    gallery: Side,
    by: Grouped,
    rules: Rules,
    *,
    l2: bool,
    threads: int,
    ascending: bool = True,
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:
    """Scores of each ordered query's matches, and of the items of its label left out.

    Returns:
        Offsets and scores of the matches, ascending or in the order of ``by.g_order``, and offsets
        and scores of the items left out.
    """
    n = len(by.q_order)
    pieces = _whole_labels(by)
    ids = (rules.qi, rules.gi, rules.qc, rules.gc)
    out = np.zeros(n, np.int64)
    if len(rules.qi) or len(rules.qc):
        share(
            lambda s: matching.left_out(by.q_order, *s, by.start, by.stop, by.g_order, *ids, out),
            pieces,
            threads,
        )
    offset = np.concatenate([[0], np.cumsum(by.stop - by.start - out)])
    out_offset = np.concatenate([[0], np.cumsum(out)])
    scores = np.empty(offset[-1], np.float32)
    out_scores = np.empty(out_offset[-1], np.float32)

    def work(span: tuple[int, int]) -> None:
        a, b = span
        low, high = int(by.start[a:b].min()), int(by.stop[a:b].max())
        rows, items = by.q_order[a:b], by.g_order[low:high]
        q_scale, g_scale = query.scales(rows), gallery.scales(items)
        q, g, some = query.x, gallery.x, ids
        if not q.dtype == g.dtype == np.float32:
            q, g = query.wide(rows), gallery.wide(items)
            qi, gi, qc, gc = (
                value[few] if len(value) else value
                for value, few in zip(ids, (rows, items, rows, items), strict=True)
            )
            some = (qi, gi, qc, gc)
            rows, items = np.arange(b - a), np.arange(high - low)
        matching.class_scores(
            q, q_scale, rows, g, g_scale, items, by.start[a:b] - low, by.stop[a:b] - low, *some, l2,
            offset[a : b + 1], scores, out_offset[a : b + 1], out_scores,
        )  # fmt: skip
        if ascending:
            sort(offset, *span, scores)

    share(work, pieces, threads)
    return offset, scores, out_offset, out_scores


def sort(offset: NDArray[np.int64], first: int, last: int, scores: NDArray[np.float32]) -> None:
    """Sort each query's scores; rows of one length together, which NumPy does faster."""
    sizes = np.diff(offset[first : last + 1])
    edges = np.concatenate([[0], np.flatnonzero(np.diff(sizes)) + 1, [len(sizes)]])
    if len(edges) > len(sizes) // 4 + 2:
        matching.sort_rows(offset, first, last, scores)
        return
    for a, b in itertools.pairwise(edges.tolist()):
        if sizes[a] > 1:
            rows = scores[offset[first + a] : offset[first + b]].reshape(b - a, sizes[a])
            rows.sort(axis=1)


def pairs(
    left: Side,
    right: Side,
    left_rows: NDArray[np.int64],
    right_rows: NDArray[np.int64],
    *,
    l2: bool,
    threads: int,
) -> NDArray[np.float32]:
    """Scores of listed pairs, equal to those of the tiles."""
    out = np.empty(len(left_rows), np.float32)

    def work(span: tuple[int, int]) -> None:
        a, b = span
        i, j = left_rows[a:b], right_rows[a:b]
        p, q, scales = left.x, right.x, (left.scales(i), right.scales(j))
        if not p.dtype == q.dtype == np.float32:
            p, q = left.wide(i), right.wide(j)
            i = j = np.arange(b - a)
        matching.pair_scores(p, scales[0], i, q, scales[1], j, l2, out[a:b])

    share(work, spans(len(out), 1 << 16), threads)
    return out


def _whole_labels(by: Grouped) -> list[tuple[int, int]]:
    """Pieces of about equal work, cut between labels or inside large ones."""
    n = len(by.q_order)
    if not n:
        return []
    work = np.cumsum(by.stop - by.start + 1)
    goal = max(int(work[-1]) // 64, 4096)
    cuts = np.unique(np.searchsorted(work, np.arange(goal, int(work[-1]) + goal, goal)))
    edges = np.unique(np.concatenate([[0], np.minimum(cuts + 1, n), [n]]))
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]
