"""Counts along a backfilling curve: old scores until an item's moment, new ones from it on.

The items come in the order in which they are filled, each tagged with the first point of the curve
at which it is filled. A histogram over (point, thresholds reached) then holds every point at once.
"""

# ruff: noqa: PLR0912 (numba takes no keyword-only arguments)

from __future__ import annotations

from typing import Any

import numpy as np

from benchmark.ranking.kernels import (
    COLUMNS,
    COMPRESS,
    ROWS,
    fetch,
    fetch_part,
    jit,
    keep_split_dot,
    keep_split_l2,
    store_dot,
    store_l2,
)
from benchmark.ranking.matching import added, out_of_ranking
from benchmark.ranking.threshold_search import plant, reached
from benchmark.ranking.tile_counts import CAPACITY

_ROWS, _COLUMNS, _COMPRESS, _CAPACITY = ROWS, COLUMNS, COMPRESS, CAPACITY


@jit
def moments_of(
    q_order: Any, first: int, last: int, start: Any, stop: Any, g_order: Any, when: Any,
    qi: Any, gi: Any, qc: Any, gc: Any,
    offset: Any, out: Any, left_offset: Any, left: Any,
) -> None:  # fmt: skip
    """The moments of each query's matches and left-out items, in the order of their scores."""
    for a in range(first, last):
        i = q_order[a]
        u, v = offset[a], left_offset[a]
        if len(qi) == 0 and len(qc) == 0:
            out[u : offset[a + 1]] = when[start[a] : stop[a]]
            continue
        for b in range(start[a], stop[a]):
            if out_of_ranking(i, g_order[b], qi, gi, qc, gc):
                left[v] = when[b]
                v += 1
            else:
                out[u] = when[b]
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
    s: Any, n: int, ends: Any, since: int, until: int, tree: Any, depth: int, width: int,
    change: int, cells: Any, steps: Any, apart: Any,
) -> None:  # fmt: skip
    """Add ``change`` to ``cells[moment, thresholds reached]`` for each score.

    The scores come moment by moment, ``since`` ... ``until``; ``ends`` says where each one's end.
    Most scores reach few thresholds: many of a moment are counted in the rows of ``apart`` in turn,
    so that a count need not wait for the one before it in the same cell.
    """
    for place in range(since * width, (until + 1) * width, 32):  # on their way during the look-ups
        fetch(cells, place)
    reached(s, n, tree, depth, steps)
    begin = np.uint64(0)
    for moment in range(since, until + 1):
        end = np.uint64(n if moment == until else ends[moment])
        row = cells[moment * width : (moment + 1) * width]
        if end - begin < np.uint64(width) // np.uint64(2):
            for j in range(begin, end):
                row[np.uint64(steps[j])] += change
        else:
            for j in range(begin, end):
                apart[j & np.uint64(3), np.uint64(steps[j])] += change
            for k in range(np.uint64(width)):
                row[k] += apart[0, k] + apart[1, k] + apart[2, k] + apart[3, k]
            apart[:] = 0
        begin = end


@jit
def _append(
    tile: Any, n_columns: int, low: Any, fill: Any, row0: int, out: Any, tag: Any, tag0: int,
    current: int, ends: Any,
) -> None:  # fmt: skip
    """What ``keep_split`` does, from a stored tile and for any number of moments."""
    for i in range(row0, row0 + _ROWS):
        least, n, moment = low[i], fill[i], current
        base = i * _CAPACITY
        for v in range(n_columns):
            while moment < tag[tag0 + v]:
                ends[i, moment] = n
                moment += 1
            score = tile[(i - row0) * _COLUMNS + v]
            out[base + n] = score
            n += np.int64(score >= least)
        fill[i] = n


@jit
def fill_cells(
    qp: Any, gp: Any, tag: Any, n_items: int, dim: int, l2: bool, old: bool,
    offset: Any, thresholds: Any, first: int, last: int, width: int, points: int,
    scratch: Any, buffer: Any, trees: Any, cells: Any,
) -> None:  # fmt: skip
    """Add packed items to the cells of queries ``first`` ... ``last - 1``.

    As ``counting.count``; ``cells`` holds ``width`` changes for each point and query; new scores
    come at their item's moment, old ones go. The thresholds are the matches' old and new scores
    together. The items' moments ``tag`` ascend, so a query's buffer holds one moment's scores after
    the other's.
    """
    n = last - first
    padded = -(-n // _ROWS) * _ROWS
    lows = np.full(padded, np.inf, np.float32)
    depths = np.zeros(padded, np.int64)
    fill, split = np.zeros(padded, np.int64), np.zeros(padded, np.int64)
    since = np.full(padded, tag[0])
    ends = np.zeros((padded, points), np.int32)
    steps = np.empty(_CAPACITY, np.int32)
    apart = np.zeros((4, width), cells.dtype)
    for i in range(n):
        a, b = offset[first + i], offset[first + i + 1]
        if b > a:
            lows[i] = thresholds[a]
            depths[i] = plant(thresholds[a:b], trees[i])
    current = tag[0]
    for c in range(0, n_items, _COLUMNS):
        here = min(_COLUMNS, n_items - c)
        following = tag[c + here - 1]
        n_early = np.int64(0)
        while n_early < here and tag[c + n_early] == current:
            n_early += 1
        two = here == _COLUMNS and (n_early == here or tag[c + n_early] == following)
        early = np.uint32((np.int64(1) << n_early) - 1)
        for r in range(0, padded, _ROWS):
            fetch_part(gp, c + _COLUMNS, dim, r // _ROWS, padded // _ROWS)
            if _COMPRESS and two:  # at most two moments in the panel
                if l2:
                    keep_split_l2(
                        qp, (first + r) * dim, gp, c * dim, dim, lows, fill, r, buffer, _CAPACITY,
                        early, split,
                    )  # fmt: skip
                else:
                    keep_split_dot(
                        qp, (first + r) * dim, gp, c * dim, dim, lows, fill, r, buffer, _CAPACITY,
                        early, split,
                    )  # fmt: skip
                for moment in range(current, following):
                    ends[r : r + _ROWS, moment] = split[r : r + _ROWS]
            else:
                if l2:
                    store_l2(qp, (first + r) * dim, gp, c * dim, dim, scratch, 0, _COLUMNS)
                else:
                    store_dot(qp, (first + r) * dim, gp, c * dim, dim, scratch, 0, _COLUMNS)
                _append(scratch, here, lows, fill, r, buffer, tag, c, current, ends)
            for i in range(r, r + _ROWS):
                if fill[i] > _CAPACITY - 2 * _COLUMNS or (c + here == n_items and fill[i]):
                    _tally(
                        buffer[i * _CAPACITY :], fill[i], ends[i], since[i], following, trees[i],
                        depths[i], width, -1 if old else 1, cells[first + i], steps, apart,
                    )  # fmt: skip
                    fill[i] = 0
                    since[i] = following
        current = following


@jit
def taken(cells: Any, first: int, last: int, points: int, width: int, totals: Any) -> None:
    """The scores that the unfilled gallery has: all that the cells of some queries take away.

    To be called when old scores are in the cells and new ones are not yet.
    """
    for i in range(first, last):
        total, row = totals[i], cells[i]
        for p in range(np.uint64(points)):
            place = p * np.uint64(width)
            for k in range(np.uint64(width)):
                total[k] -= row[place + k]


@jit
def _put(own: Any, is_own: Any, slot: int, number: int) -> Any:
    """Add matches to a slot, or take them away; returns by how much the slots with one change."""
    before = is_own[slot]
    own[slot] += number
    is_own[slot] = np.int64(own[slot] > 0)
    return is_own[slot] - before


@jit
def _above(slots: int, held: Any, is_own: Any, m: int, above: Any) -> None:
    """``above[1 + k]``: the items in the k-th of the matches' ``m`` slots or a higher one."""
    total = np.int32(0)
    for k in range(np.uint64(slots - 1), np.uint64(0), -1):
        total += held[k]
        above[np.uint64(m)] = total  # the next slot's overwrites it if no match is here
        m -= is_own[k]


@jit
def _terms(m: int, n: int, own: Any, above: Any, falling: Any, terms: Any) -> Any:
    """The precision at each of ``n`` matches in ``m`` slots; returns how many the best one has."""
    if m == n:  # no ties
        for k in range(np.uint64(n)):
            terms[k] = falling[k] / np.float64(above[k + np.uint64(1)])
        return np.int64(1)
    place, slot, best = np.int64(0), 0, np.int64(0)
    for k in range(m):
        slot += 1
        while own[slot] == 0:
            slot += 1
        term = np.float64(n - place) / np.float64(above[k + 1])
        best = np.int64(own[slot])
        terms[place : place + best] = term
        place += best
    return best


@jit
def _change(row: Any, p: int, width: int, held: Any) -> None:
    """Make the changes of one point, and leave its cells clean for the next chunk."""
    first = np.uint64(p) * np.uint64(width)
    for k in range(np.uint64(width)):
        held[k] += row[first + k]
        row[first + k] = 0


@jit
def summarise(
    offset: Any, thresholds: Any, own_offset: Any, old: Any, new: Any, moment: Any,
    left_offset: Any, left_old: Any, left_new: Any, left_moment: Any,
    first: int, last: int, points: int, width: int, nodes: int, cells: Any, totals: Any,
    q_order: Any, rank: Any, ap: Any,
) -> None:  # fmt: skip
    """Ranks and average precisions of queries ``first`` ... at every point of the curve."""
    most = (width - 1) // 2
    own, is_own = np.empty(width, np.int32), np.empty(width, np.int64)
    above, falling, terms = np.empty(width + 1, np.int32), np.empty(most), np.empty(most)
    tree = np.empty(nodes, np.float32)
    room = np.empty(most + 16, np.float32)  # look-ups work on whole vectors
    before, after = np.empty(most + 16, np.int32), np.empty(most + 16, np.int32)
    for i in range(first, last):
        t = thresholds[offset[i] : offset[i + 1]]
        slots = len(t) + 1
        a, b = own_offset[i], own_offset[i + 1]
        n = b - a
        if n == 0:
            continue
        row, held, query = cells[i], totals[i], q_order[i]
        for x in range(left_offset[i], left_offset[i + 1]):
            place, slot = left_moment[x] * width, _reached(t, left_old[x])
            held[slot] -= 1
            row[place + slot] += 1
            row[place + _reached(t, left_new[x])] -= 1
        own[:] = 0
        is_own[:] = 0
        following, m = a, np.int64(0)  # the next match to be filled; slots with a match
        depth = plant(t, tree)
        for scores, slot in ((old, before), (new, after)):
            room[:n] = scores[a:b]
            reached(room, n, tree, depth, slot)
        for x in range(n):
            m += _put(own, is_own, before[x], 1)
            falling[x] = n - x
        for p in range(points):
            while following < b and moment[following] == p:
                m += _put(own, is_own, before[following - a], -1)
                m += _put(own, is_own, after[following - a], 1)
                following += 1
            _change(row, p, width, held)
            _above(slots, held, is_own, m, above)
            best = _terms(m, n, own, above, falling, terms)
            rank[query, p] = 1 + np.int64(above[m]) - best
            ap[query, p] = added(terms, n) / n


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
