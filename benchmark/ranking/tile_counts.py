"""The CPU engine of exact ranking: counts of scores against thresholds, no matrix of scores.

A tile of scores is compared with each query's lowest threshold while it is in registers; what
passes is appended to the query's buffer. A full buffer is counted: a search tree says how many
thresholds each score reaches, for 16 scores at a time. Only counts stay.
"""

# ruff: noqa: PLR0912 (numba takes no keyword-only arguments)

from __future__ import annotations

from typing import Any

import numpy as np

from benchmark.ranking.kernels import (
    COLUMNS,
    COMPRESS,
    ROWS,
    fetch_part,
    fma,
    jit,
    keep_dot,
    keep_l2,
    store_dot,
    store_l2,
)
from benchmark.ranking.threshold_search import COPIES, copied, plant

CAPACITY = 1024  # scores in a query's buffer
_ROWS, _COLUMNS, _COMPRESS, _CAPACITY, _COPIES = ROWS, COLUMNS, COMPRESS, CAPACITY, COPIES


@jit
def norms(x: Any, rows: Any, out: Any) -> None:
    """Lengths of some rows in float64; NaN or infinite where a value is."""
    dim = x.shape[1]
    for r in range(len(rows)):
        i = np.uint64(rows[r])
        a = b = c = e = 0.0
        k = 0
        while k + 4 <= dim:
            a += np.float64(x[i, k]) * np.float64(x[i, k])
            b += np.float64(x[i, k + 1]) * np.float64(x[i, k + 1])
            c += np.float64(x[i, k + 2]) * np.float64(x[i, k + 2])
            e += np.float64(x[i, k + 3]) * np.float64(x[i, k + 3])
            k += 4
        while k < dim:
            a += np.float64(x[i, k]) * np.float64(x[i, k])
            k += 1
        out[r] = np.sqrt((a + b) + (c + e))


@jit
def pack(x: Any, rows: Any, scale: Any, width: int, out: Any) -> None:
    """Some rows, each times its scale, as panels of ``width``; zeros fill up.

    Panel p lies at ``out[p * d * width]``.
    """
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
def chain(q: Any, i: int, q_scale: float, g: Any, j: int, g_scale: float, l2: bool) -> Any:
    """One score, by the same chain as the tiles."""
    score = np.float32(0.0)
    for k in range(q.shape[1]):
        a = np.float32(np.float64(q[i, k]) * q_scale)
        b = np.float32(np.float64(g[j, k]) * g_scale)
        score = fma(np.float32(b - a), np.float32(a - b), score) if l2 else fma(a, b, score)
    return score


@jit
def tile_scores(
    qp: Any, n_rows: int, gp: Any, n_columns: int, dim: int, l2: bool, scratch: Any, out: Any
) -> None:
    """All scores of packed rows and packed columns: ``out[row * n_columns + column]``."""
    for r in range(0, n_rows, _ROWS):
        for c in range(0, n_columns, _COLUMNS):
            if l2:
                store_l2(qp, r * dim, gp, c * dim, dim, scratch, 0, _COLUMNS)
            else:
                store_dot(qp, r * dim, gp, c * dim, dim, scratch, 0, _COLUMNS)
            for m in range(min(_ROWS, n_rows - r)):
                for v in range(min(_COLUMNS, n_columns - c)):
                    out[(r + m) * n_columns + c + v] = scratch[m * _COLUMNS + v]


@jit
def tally(s: Any, n: int, tree: Any, depth: int, counts: Any, steps: Any) -> None:
    """Add 1 to the counters of each score's number of thresholds reached."""
    copied(s, n, tree, depth, steps)
    for j in range(np.uint64(n)):  # unsigned: numba checks signed indices for wrap-around
        counts[np.uint64(steps[j])] += np.uint32(1)


@jit
def _append(
    tile: Any, n_rows: int, n_columns: int, low: Any, fill: Any, row0: int, out: Any, stride: int
) -> None:
    """What ``keep`` does, from a stored tile: for the last panel, and without AVX-512."""
    for m in range(n_rows):
        least, n = low[row0 + m], fill[row0 + m]
        base = (row0 + m) * stride
        for v in range(n_columns):
            score = tile[m * _COLUMNS + v]
            out[base + n] = score
            n += np.int64(score >= least)
        fill[row0 + m] = n


@jit
def count(
    qp: Any,
    gp: Any,
    n_items: int,
    dim: int,
    l2: bool,
    offset: Any,
    thresholds: Any,
    first: int,
    last: int,
    scratch: Any,
    buffer: Any,
    trees: Any,
    counts: Any,
    out: Any,
) -> None:
    """Add to ``out`` how many of the packed items score at least each threshold.

    Args:
        qp: Packed queries.
        gp: Packed items.
        n_items: Items.
        dim: Dimension.
        l2: Negative squared distances instead of products.
        offset: Where each query's thresholds begin, ``[n + 1]``.
        thresholds: Ascending for each query.
        first: First query, a multiple of ``ROWS``.
        last: One past the last.
        scratch: Room for a tile.
        buffer: ``CAPACITY`` scores a query.
        trees: Room for each query's tree of thresholds.
        counts: ``COPIES * (most thresholds + 1)`` a query.
        out: As ``thresholds``.
    """
    n = last - first
    padded = -(-n // _ROWS) * _ROWS
    lows = np.full(padded, np.inf, np.float32)
    depths = np.zeros(padded, np.int64)
    fill = np.zeros(padded, np.int64)
    steps = np.empty(_CAPACITY, np.int32)
    for i in range(n):
        a, b = offset[first + i], offset[first + i + 1]
        if b > a:
            lows[i] = thresholds[a]
            depths[i] = plant(thresholds[a:b], trees[i])
            counts[i, : _COPIES * (b - a + 1)] = 0
    whole = n_items // _COLUMNS * _COLUMNS
    for c in range(0, n_items, _COLUMNS):
        for r in range(0, padded, _ROWS):
            fetch_part(gp, c + _COLUMNS, dim, r // _ROWS, padded // _ROWS)
            if _COMPRESS and c < whole:
                if l2:
                    keep_l2(
                        qp, (first + r) * dim, gp, c * dim, dim, lows, fill, r, buffer, _CAPACITY
                    )
                else:
                    keep_dot(
                        qp, (first + r) * dim, gp, c * dim, dim, lows, fill, r, buffer, _CAPACITY
                    )
            else:
                if l2:
                    store_l2(qp, (first + r) * dim, gp, c * dim, dim, scratch, 0, _COLUMNS)
                else:
                    store_dot(qp, (first + r) * dim, gp, c * dim, dim, scratch, 0, _COLUMNS)
                _append(
                    scratch, _ROWS, min(_COLUMNS, n_items - c), lows, fill, r, buffer, _CAPACITY
                )
            for i in range(r, r + _ROWS):
                if fill[i] > _CAPACITY - 2 * _COLUMNS:
                    tally(buffer[i * _CAPACITY :], fill[i], trees[i], depths[i], counts[i], steps)
                    fill[i] = 0
    for i in range(n):
        a, b = offset[first + i], offset[first + i + 1]
        if b == a:
            continue
        tally(buffer[i * _CAPACITY :], fill[i], trees[i], depths[i], counts[i], steps)
        above = np.int64(0)
        for k in range(b - a, 0, -1):
            for copy in range(_COPIES):
                above += np.int64(counts[i, k * _COPIES + copy])
            out[a + k - 1] += above
