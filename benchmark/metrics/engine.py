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

from benchmark.metrics import arrays, counting, kernels, lookup, matching

_PACKED = 32 << 20  # bytes of packed items at a time
_TABLES = 3 << 19  # bytes of tables and buffers a thread


@dataclass(frozen=True)
class Side:
    """Vectors and what each is multiplied by before it is used: 1 / length for cosines.

    The vectors are float32, float16 or the bits of bfloat16; the last two are widened a few at a
    time, where they are used.
    """

    x: NDArray[Any]
    scale: NDArray[np.float64]

    def take(self, rows: NDArray[np.int64]) -> Side:
        """Some of the vectors."""
        return Side(self.x[rows], self.scale[rows])

    def wide(self, rows: NDArray[np.int64]) -> Side:
        """Some of the vectors, as float32."""
        return Side(arrays.widened(self.x[rows]), self.scale[rows])


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


def side(
    name: str, value: Any, *, l2: bool = False, dim: int | None = None, threads: int = 1
) -> Side:
    """Check vectors and find their lengths in one pass.

    Raises:
        ValueError: If the shape or type is another, or a value is NaN or infinite.
    """
    x = arrays.compact(name, value, dim=dim)
    scale = np.empty(len(x))

    def work(span: tuple[int, int]) -> None:
        a, b = span
        counting.norms(arrays.widened(x[a:b]), 0, b - a, scale[a:b])

    share(work, spans(len(x), 8192), threads)
    arrays.finite(name, scale)
    scale[(scale == 0.0) | l2] = 1.0
    return Side(x, np.divide(1.0, scale, out=scale))


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
        if part.x.dtype == np.float32:
            counting.pack(part.x, order, part.scale, first, last, width, out)
            return
        some, n = part.wide(order[first:last]), last - first
        counting.pack(some.x, np.arange(n), some.scale, 0, n, width, out[first * dim :])

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
    items: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """How many items of the gallery score at least each threshold.

    Args:
        query: ``[n, d]``.
        gallery: ``[m, d]``.
        offset: Where each query's thresholds begin, ``[n + 1]``.
        thresholds: Ascending for each query.
        l2: Negative squared distances instead of products.
        threads: Threads.
        items: The items to count; all by default.

    Returns:
        Counts, as ``thresholds``.
    """
    above = np.zeros(len(thresholds), np.int64)
    most = int(np.diff(offset).max(initial=0))
    n_items = len(gallery.x) if items is None else len(items)
    if not most or not n_items:
        return above
    dim = query.x.shape[1]
    nodes = 1 << lookup.depth_of(most)
    one = 4 * nodes + 4 * counting.CAPACITY + 4 * lookup.COPIES * (most + 1)
    groups = max(1, min(8, _TABLES // (one * kernels.ROWS)))
    rows = groups * kernels.ROWS
    qp = packed(query, np.arange(len(query.x)), kernels.ROWS, threads)
    local = threading.local()

    def room() -> tuple[Any, ...]:
        if not hasattr(local, "room"):
            local.room = (
                aligned(kernels.ROWS * kernels.COLUMNS),
                aligned(rows * counting.CAPACITY + 64),
                np.empty((rows, nodes), np.float32),
                np.empty((rows, lookup.COPIES * (most + 1)), np.uint32),
            )
        return tuple(local.room)

    step = max(1, _PACKED // (4 * dim * kernels.COLUMNS)) * kernels.COLUMNS
    for first, last in spans(n_items, step):
        some = np.arange(first, last) if items is None else items[first:last]
        gp = packed(gallery, some, kernels.COLUMNS, threads)

        def work(
            span: tuple[int, int], gp: NDArray[np.float32] = gp, n: int = last - first
        ) -> None:
            counting.count(qp, gp, n, dim, l2, offset, thresholds, *span, *room(), above)

        share(work, spans(len(query.x), rows), threads)
    return above


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


@dataclass(frozen=True)
class Rules:
    """Ids and cameras of both sides; empty where the protocol has none."""

    qi: NDArray[np.int64]
    gi: NDArray[np.int64]
    qc: NDArray[np.int64]
    gc: NDArray[np.int64]


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
        if query.x.dtype == gallery.x.dtype == np.float32:
            matching.class_scores(
                query.x, query.scale, by.q_order, *span, gallery.x, gallery.scale, by.g_order,
                by.start, by.stop, *ids, l2, offset, scores, out_offset, out_scores,
            )  # fmt: skip
        else:
            a, b = span
            low, high = int(by.start[a:b].min()), int(by.stop[a:b].max())
            rows, items = by.q_order[a:b], by.g_order[low:high]
            q, g = query.wide(rows), gallery.wide(items)
            few = (
                value[some] if len(value) else value
                for value, some in zip(ids, (rows, items, rows, items), strict=True)
            )
            matching.class_scores(
                q.x, q.scale, np.arange(b - a), 0, b - a, g.x, g.scale, np.arange(high - low),
                by.start[a:b] - low, by.stop[a:b] - low, *few, l2,
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


def strangers(
    order: NDArray[np.int64], ql: NDArray[np.int64], gl: NDArray[np.int64], rules: Rules
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Items of a query's id but of another label, relabelled ones, say: they are left out too.

    Returns:
        Places in ``order``, ascending, and items.
    """
    if not len(rules.qi):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    by_id = np.argsort(rules.gi, kind="stable")
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
        if left.x.dtype == right.x.dtype == np.float32:
            matching.pair_scores(
                left.x, left.scale, left_rows, right.x, right.scale, right_rows, l2, a, b, out
            )
            return
        p, q, each = left.wide(left_rows[a:b]), right.wide(right_rows[a:b]), np.arange(b - a)
        matching.pair_scores(p.x, p.scale, each, q.x, q.scale, each, l2, 0, b - a, out[a:b])

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
