"""Exact scores and counts on CPUs: prepares the arrays, cuts the work, runs kernels in threads.

The kernels release the interpreter's lock, so plain threads share the work; each takes the next
piece when it is done. Pieces write to places of their own: the result cannot depend on their order.
"""

import functools
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import arrays, device, kernels, matching, threshold_search, tile_counts
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.ranking.grouping import Grouped, Labels, Ragged, offsets
from benchmark.ranking.nearest_kernels import Best, count_and_find

_PACKED = 32 << 20  # bytes of packed items at a time
_TABLES = 3 << 19  # bytes of tables and buffers a thread
_SCORES = 8 << 20  # bytes of a block of scores
_QUERIES = 96  # of a block of scores
_BLOCK = 8192  # vectors looked at together
# Lengths of which float32 holds the squares, down to the least difference of two vectors.
SHORTEST, LONGEST = 1e-12, 1e18

Span = tuple[int, int]


def n_threads(threads: int | None) -> int:
    """The number of threads to use; a ValueError if it is below 1."""
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if threads < 1:
        raise ValueError(f"threads: expected at least 1, got {threads}")
    return threads


def share(work: Callable[[int, int], object], pieces: Sequence[Span], threads: int) -> None:
    """Carry out ``work(first, last)`` for every piece, in threads that take the next when free."""
    if threads == 1 or len(pieces) < 2:
        for piece in pieces:
            work(*piece)
        return
    with ThreadPoolExecutor(min(threads, len(pieces))) as pool:
        list(pool.map(lambda piece: work(*piece), pieces))


def spans(n: int, step: int) -> list[Span]:
    """``range(n)`` cut into pieces."""
    return [(a, min(a + step, n)) for a in range(0, n, step)]


def even(n: int, most: int, unit: int, threads: int) -> list[Span]:
    """``range(n)`` cut into pieces of at most ``most``, multiples of ``unit``, as many a thread.

    Example:
        >>> even(820, 96, 12, 2)[-2:]  # pieces of 96 would be nine, of which one thread gets five
        [(672, 756), (756, 820)]
    """
    pieces = -(-n // most)
    pieces = -(-pieces // threads) * threads
    return spans(n, max(unit, -(-n // (pieces * unit)) * unit))


def aligned(n: int) -> Floats:
    """Room for float32 values on a cache line's boundary."""
    raw = np.empty(n * 4 + 64, np.uint8)
    first = -raw.ctypes.data % 64
    return raw[first : first + n * 4].view(np.float32)


class Workspace(threading.local):
    """Buffers, trees and counters of some queries, in each thread its own."""

    def __init__(self, queries: int, nodes: int, counters: int = 0) -> None:
        self.arrays = (
            aligned(queries * kernels.CAPACITY + 64),
            np.empty((queries, nodes), np.float32),
            np.empty((queries, counters), np.uint32),
        )


class Panels(NamedTuple):
    """Vectors as tiles read them: ``values`` of ``n`` vectors, ``[panel, dim, width]``."""

    values: Floats
    n: int
    dim: int


class Side:
    """Checked vectors, and what each is multiplied by before it is used: 1 / length for cosines.

    ``x`` is float32, float16 or bits of bfloat16, widened a few at a time where they are used.
    """

    def __init__(
        self, name: str, value: Any, *, plain: bool, dim: int | None, threads: int, keep: bool
    ) -> None:
        """Check vectors ``[n, d]`` by their lengths; ``plain`` ones are multiplied by nothing.

        For these float32 must hold their squares. Without ``keep`` the factors are found anew at
        each use, so that nothing is held for each item of a large gallery.
        """
        self.x = arrays.compact(name, value, dim=dim)
        self._plain, self._scale = False, None
        scale = np.ones(len(self.x) if keep else 0)
        bad: list[int] = []

        def work(first: int, last: int) -> None:
            factors = self.part(np.arange(first, last))[2]
            good = (factors >= 1 / LONGEST) & (factors <= 1 / SHORTEST) if plain else factors > 0
            wrong = np.flatnonzero(~good)
            if len(wrong):
                bad.append(first + int(wrong[0]))
            elif keep and not plain:
                scale[first:last] = factors

        share(work, spans(len(self.x), _BLOCK), threads)
        if bad:
            raise ValueError(
                f"{name}: {_fault(arrays.widened(self.x[min(bad)]))} in row {min(bad)}"
            )
        self._plain, self._scale = plain, scale if keep else None

    def part(self, rows: Ints) -> tuple[Floats, Ints, NDArray[np.float64]]:
        """Some of the vectors as kernels read them: float32, their rows there, their factors."""
        x, places = self.x, rows
        if x.dtype != np.float32:
            x, places = arrays.widened(x[rows]), np.arange(len(rows))
        if self._scale is not None:
            return x, places, self._scale[rows]
        factors = np.ones(len(rows))
        if not self._plain:
            tile_counts.inverse_lengths(x, places, factors)
        return x, places, factors

    def packed(self, rows: Ints, width: int, threads: int) -> Panels:
        """The vectors ``rows`` as panels."""
        dim = self.x.shape[1]
        out = aligned(-(-len(rows) // width) * width * dim)

        def work(first: int, last: int) -> None:
            tile_counts.pack(*self.part(rows[first:last]), width, out[first * dim :])

        share(work, spans(len(rows), 64 * width), threads)
        return Panels(out, len(rows), dim)


def _fault(row: Floats) -> str:
    """The expectation of a refused vector, and what it has."""
    finite = np.isfinite(row)
    if not finite.all():
        return f"expected finite values, got {row[~finite][0]}"
    length = np.linalg.norm(row.astype(np.float64))
    return f"expected lengths of {SHORTEST:.0e} to {LONGEST:.0e}, got {length:.3g}"


class Scorer:
    """Queries ``[n, d]`` and a gallery ``[m, d]``, checked, and their exact scores.

    ``shape`` is ``(n, m)``, ``dim`` is ``d``. Scores are cosines, with ``dot`` dot products, with
    ``l2`` negative squared distances.
    """

    def __init__(
        self, query: Any, gallery: Any, *, names: tuple[str, str] = ("query", "gallery"),
        distance: str = "cosine", threads: int | None = None, keep: bool = True,
    ) -> None:  # fmt: skip
        """Check both sides as :class:`Side` does; ``names`` are for messages."""
        if distance not in ("cosine", "dot", "l2"):
            raise ValueError(f"distance: expected 'cosine', 'dot' or 'l2', got {distance!r}")
        self.l2, self.threads = distance == "l2", n_threads(threads)
        self.device = device.current()
        side = functools.partial(Side, plain=distance != "cosine", threads=self.threads)
        self.query = side(names[0], query, dim=None, keep=True)
        self.dim = self.query.x.shape[1]
        self.gallery = side(names[1], gallery, dim=self.dim, keep=keep)
        self.shape = len(self.query.x), len(self.gallery.x)

    def queries(self, rows: Ints) -> Panels:
        """Some queries, packed."""
        return self.query.packed(rows, kernels.ROWS, self.threads)

    def items(self, rows: Ints) -> Panels:
        """Some items of the gallery, packed."""
        return self.gallery.packed(rows, kernels.COLUMNS, self.threads)

    def step(self, room: int) -> int:
        """Items that fill a room of so many bytes when they are packed."""
        return max(1, room // (4 * self.dim * kernels.COLUMNS)) * kernels.COLUMNS

    def blocks(
        self, work: Callable[[int, int, Floats], None], q_rows: Ints | None = None,
        g_rows: Ints | None = None,
    ) -> None:  # fmt: skip
        """Call ``work(first, last, scores[last - first, items])`` for all queries, in threads.

        The rows say which queries and items, and in which order; all by default.
        """
        q_rows = np.arange(self.shape[0]) if q_rows is None else q_rows
        items = self.items(np.arange(self.shape[1]) if g_rows is None else g_rows)
        rows = min(_QUERIES, _SCORES // (4 * max(items.n, 1)))

        def block(first: int, last: int) -> None:
            some = self.query.packed(q_rows[first:last], kernels.ROWS, 1)
            work(first, last, tile(some, items, l2=self.l2))

        step = max(1, rows // kernels.ROWS) * kernels.ROWS
        share(block, spans(len(q_rows), step), self.threads)

    def pairs(self, q_rows: Ints, g_rows: Ints) -> Floats:
        """Scores of listed pairs, equal to those of the tiles."""
        out = np.empty(len(q_rows), np.float32)

        def work(a: int, b: int) -> None:
            sides = *self.query.part(q_rows[a:b]), *self.gallery.part(g_rows[a:b])
            matching.pair_scores(*sides, self.l2, out[a:b])

        share(work, spans(len(out), 1 << 16), self.threads)
        return out

    def class_scores(self, by: Grouped) -> Floats:
        """Scores of each ordered query's items, one query after the other, in the items' order."""
        out = np.empty(by.offset[-1], np.float32)

        def work(a: int, b: int) -> None:
            low, high = int(by.start[a:b].min()), int(by.stop[a:b].max())
            query, items = self.query.part(by.q_order[a:b]), self.gallery.part(by.g_order[low:high])
            start, stop = by.start[a:b] - low, by.stop[a:b] - low
            matching.class_scores(*query, *items, start, stop, self.l2, by.offset[a:b], out)

        share(work, _whole_labels(by), self.threads)
        return out

    def left_out(self, by: Grouped, labels: Labels) -> tuple[Mask, Ints]:
        """Mask of the items that rules leave out of the ordered queries, and how many of each."""
        mask, number = np.zeros(by.offset[-1], bool), np.zeros(len(by.q_order), np.int64)
        rules = labels.rules
        if len(rules.query_ids) or len(rules.query_cameras):

            def work(first: int, last: int) -> None:
                matching.left_out(by, rules, first, last, mask, number)

            share(work, _whole_labels(by), self.threads)
        return mask, number

    def count_above(self, rows: Ints, thresholds: Ragged, junk: Mask | None) -> Ints:
        """Number of items, without junk, that score at least each of the ascending thresholds."""
        above = np.zeros(len(thresholds.values), np.int64)
        most = int(thresholds.sizes.max(initial=0))
        if not most:
            return above
        n, room = _room(most)
        queries = self.queries(rows)

        def count(items: Panels, a: int, b: int) -> None:
            tile_counts.count(queries, items, self.l2, thresholds, a, b, room.arrays, above)

        for first, last in spans(self.shape[1], self.step(_PACKED)):
            some = np.arange(first, last)
            items = self.items(some if junk is None else some[~junk[first:last]])
            share(functools.partial(count, items), spans(queries.n, n), self.threads)
        return above

    def count_and_find(self, thresholds: Ragged, best: Best, rows: Ints, left_out: Ragged) -> Ints:
        """Items that score at least each query's ascending thresholds; the nearest go to ``best``.

        Args:
            thresholds: Of all queries.
            best: The nearest items so far, of all queries; is changed.
            rows: Number of each item, ascending, below 2^32: what ``best`` knows it by.
            left_out: Ascending items of each query that never are among its nearest.
        """
        above = np.zeros(len(thresholds.values), np.int64)
        n, room = _room(int(thresholds.sizes.max(initial=0)))
        queries = self.queries(np.arange(self.shape[0]))

        def work(items: Panels, some: Ints, out: Ragged, a: int, b: int) -> None:
            count_and_find(
                queries, items, self.l2, thresholds, a, b, room.arrays[1:], above, some, out, best
            )

        for first, last in spans(self.shape[1], self.step(_PACKED)):
            here = (left_out.values >= first) & (left_out.values < last)
            sizes = np.bincount(left_out.owner[here], minlength=self.shape[0])
            out = Ragged(offsets(sizes), left_out.values[here] - first)
            items = self.items(np.arange(first, last))
            call = functools.partial(work, items, rows[first:last], out)
            share(call, spans(queries.n, n), self.threads)
        return above


def _room(most: int) -> tuple[int, Workspace]:
    """Queries that are worked on together, and their buffers, for at most so many thresholds."""
    nodes = 1 << threshold_search.depth_of(most)
    counters = threshold_search.COPIES * (most + 1)
    one = 4 * (nodes + kernels.CAPACITY + counters)
    n = max(1, min(8, _TABLES // (one * kernels.ROWS))) * kernels.ROWS
    return n, Workspace(n, nodes, counters)


def tile(queries: Panels, items: Panels, *, l2: bool) -> Floats:
    """Scores of packed queries and items, ``[queries, items]``."""
    out = np.empty((queries.n, items.n), np.float32)
    sides = queries.values, queries.n, items.values, items.n
    tile_counts.tile_scores(*sides, items.dim, l2, out.reshape(-1))
    return out


def sort(rows: Ragged, first: int, last: int) -> None:
    """Sort the scores of some queries; rows of one length together, which NumPy does faster."""
    offset = rows.offset[first : last + 1]
    sizes = np.diff(offset)
    edges = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(sizes)]
    for a, b in itertools.pairwise(edges):
        if sizes[a] > 1:
            rows.values[offset[a] : offset[b]].reshape(b - a, sizes[a]).sort(axis=1)


def _whole_labels(by: Grouped) -> list[Span]:
    """Pieces of about equal work, cut between labels or inside large ones."""
    n = len(by.q_order)
    if not n:
        return []
    work = np.cumsum(by.stop - by.start + 1)
    goal = max(int(work[-1]) // 64, 4096)
    cuts = np.unique(np.searchsorted(work, np.arange(goal, int(work[-1]) + goal, goal)))
    edges = np.unique(np.concatenate([[0], np.minimum(cuts + 1, n), [n]]))
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]
