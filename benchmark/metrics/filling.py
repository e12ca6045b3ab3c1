"""Counts along a backfilling curve: old scores until an item's moment, new ones from it on.

The items come in the order in which they are filled, each tagged with the first point of the curve
at which it is filled. A histogram over (point, thresholds reached) then holds every point at once.
"""

# ruff: noqa: PLR0912 (numba takes no keyword-only arguments)

from __future__ import annotations

from typing import Any

import numpy as np

from benchmark.metrics.counting import CAPACITY, table, walk
from benchmark.metrics.kernels import (
    COLUMNS,
    COMPRESS,
    CUTS,
    ROWS,
    jit,
    keep_counted_dot,
    keep_counted_l2,
    slots_single,
    store_dot,
    store_l2,
)
from benchmark.metrics.matching import added, out_of_ranking

_ROWS, _COLUMNS, _COMPRESS, _CAPACITY = ROWS, COLUMNS, COMPRESS, CAPACITY
_CUTS = CUTS


@jit
def moments_of(
    q_order: Any, first: int, last: int, start: Any, stop: Any, g_order: Any, place: Any,
    moment: Any, qi: Any, gi: Any, qc: Any, gc: Any,
    offset: Any, out: Any, left_offset: Any, left: Any,
) -> None:  # fmt: skip
    """The moments of each query's matches and left-out items, in the order of their scores."""
    for a in range(first, last):
        i = q_order[a]
        u, v = offset[a], left_offset[a]
        for b in range(start[a], stop[a]):
            if out_of_ranking(i, g_order[b], qi, gi, qc, gc):
                left[v] = moment[place[b]]
                v += 1
            else:
                out[u] = moment[place[b]]
                u += 1


@jit
def two_by_two(offset: Any, old: Any, new: Any, first: int, last: int, out: Any) -> None:
    """Old and new scores of each query, one after the other."""
    for i in range(first, last):
        a, b = offset[i], offset[i + 1]
        out[2 * a : a + b] = old[a:b]
        out[a + b : 2 * b] = new[a:b]


@jit
def _reached(t: Any, score: Any) -> Any:
    """How many of the ascending thresholds are <= the score."""
    low, high = np.int64(0), np.int64(len(t))
    while low < high:
        middle = (low + high) // 2
        if t[middle] <= score:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _tally(
    s: Any, tags: Any, n: int, t: Any, low: Any, scale: Any, top: Any, edges: Any, base: Any,
    width: int, old: bool, cells: Any, totals: Any, steps: Any,
) -> None:  # fmt: skip
    """Add new scores to ``cells[tag, thresholds reached]``; take old ones away, and total them."""
    if _COMPRESS:
        slots_single(s, n, low, scale, top, edges, base, steps)
    else:
        for j in range(np.uint64(n)):
            b = np.uint64(np.int32(min(np.float32((s[j] - low) * scale), top)))
            steps[j] = base[b] + np.int32(s[j] >= edges[b])
            if edges[b] == np.float32(-np.inf):
                steps[j] = -1
    for j in range(np.uint64(n)):
        k = np.uint64(steps[j])
        if steps[j] < 0:
            k = walk(t, s[j], low, scale, top, base)
        cell = np.uint64(tags[j]) * np.uint64(width) + k
        if old:
            cells[cell] -= 1
            totals[k] += 1
        else:
            cells[cell] += 1


@jit
def _append(
    tile: Any, n_rows: int, n_columns: int, low: Any, fill: Any, row0: int, out: Any, tag: Any,
    tag0: int, out_tag: Any,
) -> None:  # fmt: skip
    for m in range(n_rows):
        least, n = low[row0 + m], fill[row0 + m]
        base = (row0 + m) * _CAPACITY
        for v in range(n_columns):
            score = tile[m * _COLUMNS + v]
            out[base + n] = score
            out_tag[base + n] = tag[tag0 + v]
            n += np.int64(score >= least)
        fill[row0 + m] = n


@jit
def _flush(
    n: int, first: int, offset: Any, width: int, moment: int, old: bool, counts: Any, cells: Any,
    totals: Any,
) -> None:  # fmt: skip
    """Add the counts of the lowest thresholds to the cells of one moment; keep the later items'."""
    for i in range(n):
        if offset[first + i + 1] - offset[first + i] > _CUTS:
            for j in range(_CUTS):
                here = counts[i, j] - counts[i, j + 1]
                if old:
                    cells[first + i, moment * width + j + 1] -= here
                    totals[first + i, j + 1] += here
                else:
                    cells[first + i, moment * width + j + 1] += here
        for j in range(_CUTS + 1):
            later = counts[i, _CUTS + 1 + j] - counts[i, j]
            counts[i, j] = counts[i, _CUTS + 1 + j] = later


@jit
def fill_cells(
    qp: Any, gp: Any, tag: Any, n_items: int, dim: int, l2: bool, old: bool,
    offset: Any, thresholds: Any, first: int, last: int, size: int, width: int,
    scratch: Any, buffer: Any, buffer_tag: Any, edges: Any, base: Any, cells: Any, totals: Any,
) -> None:  # fmt: skip
    """Add packed items to the cells of queries ``first`` ... ``last - 1``.

    As ``counting.count``; ``cells`` holds ``width`` changes for each point and query, ``totals``
    the counts before the first; the thresholds are the matches' old and new scores together. Most
    scores above the lowest threshold lie below the next few ones, so those are counted where the
    scores are computed, and only what lies higher is kept: in panels of at most two moments.
    """
    n = last - first
    padded = -(-n // _ROWS) * _ROWS
    lows = np.full(padded, np.inf, np.float32)
    scales = np.zeros(padded, np.float32)
    cuts = np.full((padded, _CUTS + 1), np.inf, np.float32)
    counts = np.zeros((padded, 2 * (_CUTS + 1)), np.int32)
    fill = np.zeros(padded, np.int64)
    steps = np.empty(_CAPACITY, np.int32)
    top = np.float32(size - 1)
    for i in range(n):
        a, b = offset[first + i], offset[first + i + 1]
        if b > a:
            lows[i], scales[i] = table(thresholds[a:b], b - a, size, edges[i], base[i])
            for j in range(_CUTS + 1):
                cuts[i, j] = thresholds[a + j if b - a > _CUTS else a]
    whole = n_items // _COLUMNS * _COLUMNS
    current = tag[0]
    for c in range(0, n_items + _COLUMNS, _COLUMNS):  # the last round empties the buffers
        early, n_early, uniform = np.uint32(0), np.int64(0), False
        if _COMPRESS and c < whole:
            if tag[c] != current:
                _flush(n, first, offset, width, current, old, counts, cells, totals)
                current = tag[c]
            while n_early < _COLUMNS and tag[c + n_early] == current:
                n_early += 1
            early = np.uint32((np.int64(1) << n_early) - 1)
            uniform = n_early == _COLUMNS or tag[c + n_early] == tag[c + _COLUMNS - 1]
        for r in range(0, padded, _ROWS):
            if c >= n_items:
                pass
            elif _COMPRESS and uniform:
                if l2:
                    keep_counted_l2(
                        qp, (first + r) * dim, gp, c * dim, dim, cuts, fill, r, buffer, _CAPACITY,
                        tag, c, buffer_tag, early, counts,
                    )  # fmt: skip
                else:
                    keep_counted_dot(
                        qp, (first + r) * dim, gp, c * dim, dim, cuts, fill, r, buffer, _CAPACITY,
                        tag, c, buffer_tag, early, counts,
                    )  # fmt: skip
            else:
                if l2:
                    store_l2(qp, (first + r) * dim, gp, c * dim, dim, scratch, 0, _COLUMNS)
                else:
                    store_dot(qp, (first + r) * dim, gp, c * dim, dim, scratch, 0, _COLUMNS)
                _append(
                    scratch, _ROWS, min(_COLUMNS, n_items - c), lows, fill, r, buffer, tag, c,
                    buffer_tag,
                )  # fmt: skip
            for i in range(r, r + _ROWS):
                if fill[i] > _CAPACITY - 2 * _COLUMNS or (c + _COLUMNS >= n_items and fill[i]):
                    _tally(
                        buffer[i * _CAPACITY :], buffer_tag[i * _CAPACITY :], fill[i],
                        thresholds[offset[first + i] : offset[first + i + 1]], lows[i], scales[i],
                        top, edges[i], base[i], width, old, cells[first + i],
                        totals[first + i], steps,
                    )  # fmt: skip
                    fill[i] = 0
        if uniform and n_early < _COLUMNS:
            _flush(n, first, offset, width, current, old, counts, cells, totals)
            current = tag[c + n_early]
    _flush(n, first, offset, width, current, old, counts, cells, totals)


@jit
def _terms(
    m: int, n: int, slot: Any, reached: Any, times: Any, above: Any, terms: Any
) -> None:  # fmt: skip
    """The precision at each of ``n`` matches, whose scores reach ``m`` slots."""
    if m == np.uint64(n):  # no ties
        for k in range(np.uint64(m)):
            terms[k] = reached[k] / above[slot[k]]
        return
    place = 0
    for k in range(np.uint64(m)):
        for _ in range(times[k]):
            terms[place] = reached[k] / above[slot[k]]
            place += 1


@jit
def summarise(
    offset: Any, thresholds: Any, own_offset: Any, old: Any, new: Any, moment: Any,
    left_offset: Any, left_old: Any, left_new: Any, left_moment: Any,
    first: int, last: int, points: int, width: int, cells: Any, totals: Any, rank: Any, ap: Any,
) -> None:  # fmt: skip
    """Ranks and average precisions of queries ``first`` ... at every point of the curve."""
    above = np.empty(width, np.int32)
    own = np.empty(width, np.int32)
    slot = np.empty(width, np.int32)
    reached = np.empty(width, np.int32)
    times = np.empty(width, np.int32)
    terms = np.empty((width - 1) // 2, np.float64)
    for i in range(first, last):
        t = thresholds[offset[i] : offset[i + 1]]
        slots = np.uint64(len(t) + 1)
        a, b = own_offset[i], own_offset[i + 1]
        n = b - a
        if n == 0:
            continue
        row = cells[i]
        for x in range(left_offset[i], left_offset[i + 1]):
            place = left_moment[x] * width
            totals[i, _reached(t, left_old[x])] -= 1
            row[place + _reached(t, left_old[x])] += 1
            row[place + _reached(t, left_new[x])] -= 1
        own[:] = 0
        for x in range(a, b):
            own[_reached(t, old[x])] += 1
        total = np.int32(0)
        for k in range(slots - np.uint64(1), np.uint64(0), -1):
            total += totals[i, k]
            above[k] = total
        following = a
        m = np.uint64(0)
        for p in range(points):
            stale = p == 0
            while following < b and moment[following] == p:
                own[_reached(t, old[following])] -= 1
                own[_reached(t, new[following])] += 1
                following += 1
                stale = True
            change = row[p * width : (p + 1) * width]
            total = np.int32(0)
            for k in range(slots - np.uint64(1), np.uint64(0), -1):
                total += change[k]
                above[k] += total
                change[k] = 0  # left clean for the next chunk
            change[0] = 0
            if stale:
                m, mine = np.uint64(0), np.int32(n)
                for k in range(slots):  # keeps the slots with a match, without a branch
                    slot[m], reached[m], times[m] = k, mine, own[k]
                    m += np.uint64(own[k] > 0)
                    mine -= own[k]
            _terms(m, n, slot, reached, times, above, terms)
            last_slot = m - np.uint64(1)
            rank[p, i] = 1 + above[slot[last_slot]] - reached[last_slot]
            ap[p, i] = added(terms, n) / n


@jit
def best_along(
    scores: Any, n_rows: int, moment: Any, subject: Any, probe: Any, points: int, old: bool,
    own: Any, other: Any,
) -> None:  # fmt: skip
    """Raise each probe's best own and other score at every point, by one tile row a probe.

    ``own`` and ``other`` are ``[probe, points + 1]``; the caller makes running maxima of them.
    """
    m = len(moment)
    for r in range(n_rows):
        for c in range(m):
            place = moment[c]
            target = own if subject[c] == probe[r] else other
            target[r, place] = max(target[r, place], scores[r * m + c])
    for r in range(n_rows):  # an old score counts before its moment, a new one from it on
        if old:
            for p in range(points - 1, -1, -1):
                own[r, p] = max(own[r, p], own[r, p + 1])
                other[r, p] = max(other[r, p], other[r, p + 1])
        else:
            for p in range(1, points):
                own[r, p] = max(own[r, p], own[r, p - 1])
                other[r, p] = max(other[r, p], other[r, p - 1])
