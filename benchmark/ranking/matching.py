"""Scores of the matches: the thresholds that exact ranking counts against (numba part)."""

from typing import Any

import numpy as np

from benchmark.ranking.kernels import COLUMNS, ROWS, fma, jit
from benchmark.ranking.tile_counts import pack, tile_scores, total

_ITEMS, _QUERIES = 4096, 96  # of one label, scored together


@jit
def left_out(by: Any, rules: Any, first: int, last: int, mask: Any, number: Any) -> None:
    """Mask of the items of its own label that each query leaves out: those of its id or its camera.

    ``mask`` lies as ``class_scores`` writes scores; ``number`` is how many each query leaves out.
    """
    for a in range(first, last):
        i, place, n = by.q_order[a], by.offset[a], np.int64(0)
        for b in range(by.start[a], by.stop[a]):
            j = by.g_order[b]
            out = len(rules.query_ids) > 0 and rules.query_ids[i] == rules.gallery_ids[j]
            if len(rules.query_cameras) and rules.query_cameras[i] == rules.gallery_cameras[j]:
                out = True
            mask[place] = out
            n += np.int64(out)
            place += 1
        number[a] = n


@jit
def class_scores(
    q: Any, q_rows: Any, q_scale: Any, g: Any, g_rows: Any, g_scale: Any, start: Any, stop: Any,
    l2: bool, offset: Any, scores: Any,
) -> None:  # fmt: skip
    """Scores of each query with the items of its label, in the items' order.

    The rows and scales of queries and items are ordered by label; ``start`` and ``stop`` bound each
    query's items.
    """
    dim = q.shape[1]
    a = 0
    while a < len(q_rows):
        z = a + 1
        while z < len(q_rows) and start[z] == start[a] and stop[z] == stop[a]:
            z += 1
        qp = np.empty(-(-(z - a) // ROWS) * ROWS * dim, np.float32)
        if start[a] < stop[a]:
            pack(q, q_rows[a:z], q_scale[a:z], ROWS, qp)
        for here in range(start[a], stop[a], _ITEMS):
            w = min(_ITEMS, stop[a] - here)
            gp = np.empty(-(-w // COLUMNS) * COLUMNS * dim, np.float32)
            pack(g, g_rows[here : here + w], g_scale[here : here + w], COLUMNS, gp)
            for r in range(0, z - a, _QUERIES):
                h = min(_QUERIES, z - a - r)
                block = np.empty(h * w, np.float32)
                tile_scores(qp[r * dim :], h, gp, w, dim, l2, block)
                for x in range(h):
                    place = offset[a + r + x] + here - start[a]
                    scores[place : place + w] = block[x * w : x * w + w]
        a = z


@jit
def pair_scores(
    q: Any, left: Any, q_scale: Any, g: Any, right: Any, g_scale: Any, l2: bool, out: Any
) -> None:
    """Scores of listed pairs, by the tiles' chain; the scales are in the pairs' order."""
    for p in range(len(left)):
        i, j, score = left[p], right[p], np.float32(0.0)
        for k in range(q.shape[1]):
            a = np.float32(np.float64(q[i, k]) * q_scale[p])
            b = np.float32(np.float64(g[j, k]) * g_scale[p])
            score = fma(np.float32(b - a), np.float32(a - b), score) if l2 else fma(a, b, score)
        out[p] = score


@jit
def take_away(
    thresholds: Any, matches: Any, left_out: Any, first: int, last: int, above: Any
) -> None:
    """Take a shard's own matches and left-out items away from its counts."""
    for i in range(first, last):
        scores = matches.values[matches.offset[i] : matches.offset[i + 1]]
        j = np.int64(0)
        for k in range(thresholds.offset[i], thresholds.offset[i + 1]):
            t = thresholds.values[k]
            while j < len(scores) and scores[j] < t:
                j += 1
            n = len(scores) - j
            for x in range(left_out.offset[i], left_out.offset[i + 1]):
                n += np.int64(left_out.values[x] >= t)
            above[k] -= n


@jit
def summarise(thresholds: Any, above: Any, first_rank: Any, ap: Any, inp: Any) -> None:
    """Ranks and average precisions from the non-matching items above each match."""
    offset = thresholds.offset
    terms = np.empty(len(thresholds.values), np.float64)
    for i in range(len(offset) - 1):
        a, b = offset[i], offset[i + 1]
        n = b - a
        if n == 0:
            first_rank[i], ap[i], inp[i] = 0, np.nan, np.nan
            continue
        reached = n
        for k in range(n):
            if k == 0 or thresholds.values[a + k] != thresholds.values[a + k - 1]:
                reached = n - k
            terms[k] = reached / (reached + above[a + k])
        first_rank[i] = 1 + above[b - 1]
        ap[i] = total(terms, n) / n
        inp[i] = n / (n + above[a])
