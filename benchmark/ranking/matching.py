"""Scores of the matches: the thresholds that exact ranking counts against (numba part)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmark.ranking.kernels import COLUMNS, ROWS, jit
from benchmark.ranking.tile_counts import chain, pack, tile_scores

_ROWS, _COLUMNS = ROWS, COLUMNS


@jit
def out_of_ranking(i: int, j: int, qi: Any, gi: Any, qc: Any, gc: Any) -> bool:
    """Is item ``j`` of the query's label left out: its own id, or its camera?"""
    if len(qi) and qi[i] == gi[j]:
        return True
    return bool(len(qc)) and qc[i] == gc[j]


@jit
def left_out(
    q_order: Any,
    first: int,
    last: int,
    start: Any,
    stop: Any,
    g_order: Any,
    qi: Any,
    gi: Any,
    qc: Any,
    gc: Any,
    out: Any,
) -> None:
    """How many items of its own label each query leaves out."""
    for a in range(first, last):
        i = q_order[a]
        n = np.int64(0)
        for b in range(start[a], stop[a]):
            n += np.int64(out_of_ranking(i, g_order[b], qi, gi, qc, gc))
        out[a] = n


@jit
def class_scores(
    q: Any,
    q_scale: Any,
    q_order: Any,
    g: Any,
    g_scale: Any,
    g_order: Any,
    start: Any,
    stop: Any,
    qi: Any,
    gi: Any,
    qc: Any,
    gc: Any,
    l2: bool,
    offset: Any,
    scores: Any,
    out_offset: Any,
    out_scores: Any,
) -> None:
    """Scores of the matches and of the items left out, in the items' order.

    The queries are ordered by label, and so are the items in ``g_order``; ``start`` and ``stop``
    bound each query's items there. Both scales are in the order of ``q_order`` and ``g_order``.
    """
    last = len(q_order)
    dim = q.shape[1]
    scratch = np.empty(_ROWS * _COLUMNS, np.float32)
    plain = len(qi) == 0 and len(qc) == 0
    a = 0
    while a < last:
        z = a + 1
        while z < last and start[z] == start[a] and stop[z] == stop[a]:
            z += 1
        n, m = z - a, stop[a] - start[a]
        if m == 0:
            a = z
            continue
        qp = np.empty(-(-n // _ROWS) * _ROWS * dim, np.float32)
        pack(q, q_order[a:z], q_scale[a:z], _ROWS, qp)
        step = 4096
        filled = np.zeros(n, np.int64)
        dropped = np.zeros(n, np.int64)
        for c in range(0, m, step):
            w = min(step, m - c)
            gp = np.empty(-(-w // _COLUMNS) * _COLUMNS * dim, np.float32)
            here = start[a] + c
            items = g_order[here : here + w]
            pack(g, items, g_scale[here : here + w], _COLUMNS, gp)
            for r in range(0, n, 96):
                h = min(96, n - r)
                block = np.empty(h * w, np.float32)
                tile_scores(qp[r * dim :], h, gp, w, dim, l2, scratch, block)
                for x in range(h):
                    i = q_order[a + r + x]
                    into, away = offset[a + r + x], out_offset[a + r + x]
                    u, v = filled[r + x], dropped[r + x]
                    if plain:
                        scores[into + u : into + u + w] = block[x * w : x * w + w]
                        filled[r + x] += w
                        continue
                    for y in range(w):
                        if out_of_ranking(i, items[y], qi, gi, qc, gc):
                            out_scores[away + v] = block[x * w + y]
                            v += 1
                        else:
                            scores[into + u] = block[x * w + y]
                            u += 1
                    filled[r + x], dropped[r + x] = u, v
        a = z


@jit
def sort_rows(offset: Any, first: int, last: int, scores: Any) -> None:
    """Sort each query's scores."""
    for x in range(first, last):
        scores[offset[x] : offset[x + 1]].sort()


@jit
def pair_scores(
    q: Any, q_scale: Any, left: Any, g: Any, g_scale: Any, right: Any, l2: bool, out: Any
) -> None:
    """Scores of listed pairs; the scales are in the pairs' order."""
    for p in range(len(left)):
        out[p] = chain(q, left[p], q_scale[p], g, right[p], g_scale[p], l2)


@jit
def take_away(
    offset: Any,
    thresholds: Any,
    own_offset: Any,
    own: Any,
    out_offset: Any,
    left: Any,
    first: int,
    last: int,
    above: Any,
) -> None:
    """Take a shard's own matches and left-out items away from its counts."""
    for i in range(first, last):
        n_own = own_offset[i + 1] - own_offset[i]
        j = 0
        for k in range(offset[i], offset[i + 1]):
            t = thresholds[k]
            while j < n_own and own[own_offset[i] + j] < t:
                j += 1
            n = n_own - j
            for x in range(out_offset[i], out_offset[i + 1]):
                n += np.int64(left[x] >= t)
            above[k] -= n


@jit
def added(terms: Any, n: int) -> Any:
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
def summarise(offset: Any, thresholds: Any, above: Any, first_rank: Any, ap: Any, inp: Any) -> None:
    """Ranks and average precisions from the non-matching items above each match."""
    most = np.int64(0)
    for i in range(len(offset) - 1):
        most = max(most, offset[i + 1] - offset[i])
    terms = np.empty(most, np.float64)
    for i in range(len(offset) - 1):
        a, b = offset[i], offset[i + 1]
        n = b - a
        if n == 0:
            first_rank[i], ap[i], inp[i] = 0, np.nan, np.nan
            continue
        reached = n
        for k in range(n):
            if k == 0 or thresholds[a + k] != thresholds[a + k - 1]:
                reached = n - k
            terms[k] = reached / (reached + above[a + k])
        first_rank[i] = 1 + above[b - 1]
        ap[i] = added(terms, n) / n
        inp[i] = n / (n + above[a])
