"""The CPU engine of exact ranking: counts of scores against thresholds, no matrix of scores.

A tile of scores is compared with each query's lowest threshold while it is in registers; what
passes is appended to the query's buffer. A full buffer is counted: a search tree says how many
thresholds each score reaches, for 16 scores at a time. Only counts stay.
"""

from typing import Any

import numpy as np

from benchmark.ranking.kernels import CAPACITY, COLUMNS, COMPRESS, ROWS, jit, keep, prefetch, store
from benchmark.ranking.threshold_search import COPIES, plant, reached


@jit
def total(terms: Any, n: int) -> Any:
    """The sum of ``terms[:n]``, always in the same order: four sums, every fourth term each."""
    a = b = c = e = 0.0
    k = np.uint64(0)
    while k + np.uint64(4) <= np.uint64(n):
        a += terms[k]
        b += terms[k + np.uint64(1)]
        c += terms[k + np.uint64(2)]
        e += terms[k + np.uint64(3)]
        k += np.uint64(4)
    while k < np.uint64(n):
        a += terms[k]
        k += np.uint64(1)
    return (a + b) + (c + e)


@jit
def inverse_lengths(x: Any, rows: Any, out: Any) -> None:
    """1 / length of some rows, 1 for zeros; NaN or 0 where a value is NaN or infinite."""
    squares = np.empty(x.shape[1])
    for r in range(len(rows)):
        i = np.uint64(rows[r])
        for k in range(np.uint64(len(squares))):
            squares[k] = np.float64(x[i, k]) * np.float64(x[i, k])
        length = np.sqrt(total(squares, len(squares)))
        out[r] = 1.0 / length if length != 0.0 else 1.0


@jit
def pack(x: Any, rows: Any, scale: Any, width: int, out: Any) -> None:
    """Rows times their scales as panels of ``width``, at ``out[p * d * width]``; zeros fill up."""
    dim = np.uint64(x.shape[1])
    for start in range(0, len(rows), width):
        base = np.uint64(start) * dim
        n = np.uint64(min(width, len(rows) - start))
        panel = out[base : base + dim * np.uint64(width)]
        items, factors = rows[start : start + n], scale[start : start + n]
        for k in range(dim):
            row = k * np.uint64(width)
            for c in range(n):
                panel[row + c] = np.float32(np.float64(x[np.uint64(items[c]), k]) * factors[c])
            for c in range(n, np.uint64(width)):
                panel[row + c] = np.float32(0.0)


@jit
def tile_scores(
    qp: Any, n_rows: int, gp: Any, n_columns: int, dim: int, l2: bool, out: Any
) -> None:
    """All scores of packed rows and packed columns: ``out[row * n_columns + column]``."""
    tile = np.empty(ROWS * COLUMNS, np.float32)
    for r in range(0, n_rows, ROWS):
        for c in range(0, n_columns, COLUMNS):
            store(qp, r * dim, gp, c * dim, dim, l2, tile)
            for m in range(min(ROWS, n_rows - r)):
                for v in range(min(COLUMNS, n_columns - c)):
                    out[(r + m) * n_columns + c + v] = tile[m * COLUMNS + v]


@jit
def prepare(thresholds: Any, first: int, last: int, trees: Any) -> Any:
    """Plant trees of queries, up to whole tiles; their lowest thresholds (or inf) and levels."""
    padded = -(-(last - first) // ROWS) * ROWS
    lows, depths = np.full(padded, np.inf, np.float32), np.zeros(padded, np.int64)
    for i in range(last - first):
        t = thresholds.values[thresholds.offset[first + i] : thresholds.offset[first + i + 1]]
        if len(t):
            lows[i] = t[0]
            depths[i] = plant(t, trees[i])
    return lows, depths


@jit
def tally(s: Any, n: int, tree: Any, depth: int, counts: Any, steps: Any) -> None:
    """Add 1 to the counters of each score's number of thresholds reached."""
    reached(s, n, tree, depth, COPIES, steps)
    for j in range(np.uint64(n)):  # unsigned: numba checks signed indices for wrap-around
        counts[np.uint64(steps[j])] += np.uint32(1)


@jit
def add_up(thresholds: Any, query: int, counts: Any, out: Any) -> None:
    """Add to ``out`` how many scores reach each of a query's thresholds, from its counters."""
    a, above = thresholds.offset[query], np.int64(0)
    for k in range(thresholds.offset[query + 1] - a, 0, -1):
        for copy in range(COPIES):
            above += np.int64(counts[k * COPIES + copy])
        out[a + k - 1] += above


@jit
def append(
    tile: Any, n_columns: int, low: Any, fill: Any, row0: int, out: Any, tag: Any, tag0: int,
    current: int, ends: Any,
) -> None:  # fmt: skip
    """Do as ``keep``, from a stored tile: for the last panel, and without AVX-512.

    Where ``tag`` is not None, ``ends`` says where each moment's scores end, for any number of them.
    """
    for i in range(row0, row0 + ROWS):
        least, n, moment = low[i], fill[i], current
        for v in range(n_columns):
            if tag is not None:
                while moment < tag[tag0 + v]:
                    ends[i, moment] = n
                    moment += 1
            score = tile[(i - row0) * COLUMNS + v]
            out[i * CAPACITY + n] = score
            n += np.int64(score >= least)
        fill[i] = n


@jit
def count(
    queries: Any, items: Any, l2: bool, thresholds: Any, first: int, last: int, room: Any, out: Any
) -> None:
    """Add to ``out`` how many of the packed items score at least each threshold.

    Queries and items are ``Panels``; the thresholds are ``Ragged``, ascending for each query;
    ``first`` is a multiple of ``ROWS``. ``room`` has ``CAPACITY`` scores, a tree and ``COPIES *
    (most thresholds + 1)`` counters for each of the queries ``first`` ... ``last - 1``.
    """
    buffer, trees, counts = room
    qp, gp, dim = queries.values, items.values, items.dim
    lows, depths = prepare(thresholds, first, last, trees)
    fill = np.zeros(len(lows), np.int64)
    steps = np.empty(CAPACITY, np.int32)
    tile = np.empty(ROWS * COLUMNS, np.float32)
    for i in range(last - first):
        n = thresholds.offset[first + i + 1] - thresholds.offset[first + i]
        counts[i, : COPIES * (n + 1)] = 0
    for c in range(0, items.n, COLUMNS):
        here = min(COLUMNS, items.n - c)
        for r in range(0, len(lows), ROWS):
            prefetch(gp, c + COLUMNS, dim, r // ROWS, len(lows) // ROWS)
            q0 = (first + r) * dim
            if COMPRESS and here == COLUMNS:
                keep(qp, q0, gp, c * dim, dim, l2, lows, fill, r, buffer, None, None)
            else:
                store(qp, q0, gp, c * dim, dim, l2, tile)
                append(tile, here, lows, fill, r, buffer, None, 0, 0, None)
            for i in range(r, r + ROWS):
                if fill[i] > CAPACITY - 2 * COLUMNS:
                    tally(buffer[i * CAPACITY :], fill[i], trees[i], depths[i], counts[i], steps)
                    fill[i] = 0
    for i in range(last - first):
        if depths[i]:
            tally(buffer[i * CAPACITY :], fill[i], trees[i], depths[i], counts[i], steps)
            add_up(thresholds, first + i, counts[i], out)
