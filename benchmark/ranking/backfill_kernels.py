"""Counts along a backfilling curve: old scores until an item's moment, new ones from it on.

The items come in the order in which they are filled, each tagged with the first point of the curve
at which it is filled. A histogram over (point, thresholds reached) then holds every point at once.
"""

from typing import Any

import numpy as np

from benchmark.ranking import kernels
from benchmark.ranking.kernels import CAPACITY, COLUMNS, COMPRESS, ROWS, jit, keep, prefetch, store
from benchmark.ranking.threshold_search import plant, reached
from benchmark.ranking.tile_counts import append, prepare, total


@jit
def two_by_two(old: Any, new: Any, first: int, last: int, out: Any) -> None:
    """Old and new scores of each query, one after the other."""
    for i in range(first, last):
        a, b = old.offset[i], old.offset[i + 1]
        out[2 * a : a + b] = old.values[a:b]
        out[a + b : 2 * b] = new.values[a:b]


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
        kernels.fetch(cells, place)
    reached(s, n, tree, depth, 1, steps)
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
def fill_cells(
    queries: Any, items: Any, tag: Any, l2: bool, change: int, thresholds: Any, first: int,
    last: int, room: Any, cells: Any,
) -> None:  # fmt: skip
    """Add packed items to the cells of queries ``first`` ... ``last - 1``.

    As ``tile_counts.count``; new scores come at their item's moment (``change`` is 1), old ones go
    (-1). The thresholds are the matches' old and new scores together. The items' moments ``tag``
    ascend, so a query's buffer holds one moment's scores after the other's.
    """
    buffer, trees, _ = room
    qp, gp, dim = queries.values, items.values, items.dim
    lows, depths = prepare(thresholds, first, last, trees)
    fill, split = np.zeros(len(lows), np.int64), np.zeros(len(lows), np.int64)
    since = np.full(len(lows), tag[0])
    ends = np.zeros((len(lows), cells.points), np.int32)
    steps = np.empty(CAPACITY, np.int32)
    tile = np.empty(ROWS * COLUMNS, np.float32)
    apart = np.zeros((4, cells.width), cells.changes.dtype)
    current = tag[0]
    for c in range(0, items.n, COLUMNS):
        here = min(COLUMNS, items.n - c)
        following = tag[c + here - 1]
        n_early = np.int64(0)
        while n_early < here and tag[c + n_early] == current:
            n_early += 1
        two = here == COLUMNS and (n_early == here or tag[c + n_early] == following)
        early = np.uint32((np.int64(1) << n_early) - 1)
        for r in range(0, len(lows), ROWS):
            prefetch(gp, c + COLUMNS, dim, r // ROWS, len(lows) // ROWS)
            q0 = (first + r) * dim
            if COMPRESS and two:  # at most two moments in the panel
                keep(qp, q0, gp, c * dim, dim, l2, lows, fill, r, buffer, early, split)
                for moment in range(current, following):
                    ends[r : r + ROWS, moment] = split[r : r + ROWS]
            else:
                store(qp, q0, gp, c * dim, dim, l2, tile)
                if following == current:
                    append(tile, here, lows, fill, r, buffer, None, 0, 0, None)
                else:
                    append(tile, here, lows, fill, r, buffer, tag, c, current, ends)
            for i in range(r, r + ROWS):
                if fill[i] > CAPACITY - 2 * COLUMNS or (c + here == items.n and fill[i]):
                    _tally(
                        buffer[i * CAPACITY :], fill[i], ends[i], since[i], following, trees[i],
                        depths[i], cells.width, change, cells.changes[first + i], steps, apart,
                    )  # fmt: skip
                    fill[i] = 0
                    since[i] = following
        current = following


@jit
def taken(cells: Any, first: int, last: int) -> None:
    """Sum up the scores that the unfilled gallery has: all that some queries' cells take away.

    To be called when old scores are in the cells and new ones are not yet.
    """
    for i in range(first, last):
        total, row = cells.totals[i], cells.changes[i]
        for p in range(np.uint64(cells.points)):
            place = p * np.uint64(cells.width)
            for k in range(np.uint64(cells.width)):
                total[k] -= row[place + k]


@jit
def _put(numbers: Any, occupied: Any, slot: int, number: int) -> Any:
    """Add matches to a slot, or take them away; returns by how much the slots with one change."""
    before = occupied[slot]
    numbers[slot] += number
    occupied[slot] = np.int64(numbers[slot] > 0)
    return occupied[slot] - before


@jit
def _above(slots: int, held: Any, occupied: Any, m: int, above: Any) -> None:
    """``above[1 + k]``: the items in the k-th of the matches' ``m`` slots or a higher one."""
    n = np.int32(0)
    for k in range(np.uint64(slots - 1), np.uint64(0), -1):
        n += held[k]
        above[np.uint64(m)] = n  # the next slot's overwrites it if no match is here
        m -= occupied[k]


@jit
def _terms(m: int, n: int, numbers: Any, above: Any, falling: Any, terms: Any) -> Any:
    """The precision at each of ``n`` matches in ``m`` slots; returns how many the best one has."""
    if m == n:  # no ties
        for k in range(np.uint64(n)):
            terms[k] = falling[k] / np.float64(above[k + np.uint64(1)])
        return np.int64(1)
    place, slot, best = np.int64(0), 0, np.int64(0)
    for k in range(m):
        slot += 1
        while numbers[slot] == 0:
            slot += 1
        term = np.float64(n - place) / np.float64(above[k + 1])
        best = np.int64(numbers[slot])
        terms[place : place + best] = term
        place += best
    return best


@jit
def change(row: Any, p: int, width: int, held: Any) -> None:
    """Make the changes of one point, and leave its cells clean for the next chunk."""
    first = np.uint64(p) * np.uint64(width)
    for k in range(np.uint64(width)):
        held[k] += row[first + k]
        row[first + k] = 0


@jit
def summarise(
    thresholds: Any, of_new: Any, matches: Any, left_out: Any, cells: Any, first: int, last: int,
    q_order: Any, rank: Any, ap: Any,
) -> None:  # fmt: skip
    """Ranks and average precisions of queries ``first`` ... at every point of the curve.

    Thresholds are those of old and of new scores, in one order; ``matches`` and ``left_out`` are
    old scores, new scores and moments, three ``Ragged``.
    """
    old, new, moment = matches
    left_old, left_new, left_moment = left_out
    width = cells.width
    most = (width - 1) // 2
    numbers, occupied = np.empty(width, np.int32), np.empty(width, np.int64)
    above, falling, terms = np.empty(width + 1, np.int32), np.empty(most), np.empty(most)
    tree = np.empty(max(256, 2 * width), np.float32)
    room = np.empty(most + 16, np.float32)  # look-ups work on whole vectors
    before, after = np.empty(most + 16, np.int32), np.empty(most + 16, np.int32)
    for i in range(first, last):
        t = thresholds.values[thresholds.offset[i] : thresholds.offset[i + 1]]
        t_new = of_new.values[thresholds.offset[i] : thresholds.offset[i + 1]]
        slots = len(t) + 1
        a, b = old.offset[i], old.offset[i + 1]
        n = b - a
        if n == 0:
            continue
        row, held, query = cells.changes[i], cells.totals[i], q_order[i]
        for x in range(left_old.offset[i], left_old.offset[i + 1]):
            place = left_moment.values[x] * width
            slot = np.searchsorted(t, left_old.values[x], "right")
            held[slot] -= 1
            row[place + slot] += 1
            row[place + np.searchsorted(t_new, left_new.values[x], "right")] -= 1
        numbers[:] = 0
        occupied[:] = 0
        following, m = a, np.int64(0)  # the next match to be filled; slots with a match
        for own, scores, slot in ((t, old.values, before), (t_new, new.values, after)):
            depth = plant(own, tree)
            room[:n] = scores[a:b]
            reached(room, n, tree, depth, 1, slot)
        for x in range(n):
            m += _put(numbers, occupied, before[x], 1)
            falling[x] = n - x
        for p in range(cells.points):
            while following < b and moment.values[following] == p:
                m += _put(numbers, occupied, before[following - a], -1)
                m += _put(numbers, occupied, after[following - a], 1)
                following += 1
            change(row, p, width, held)
            _above(slots, held, occupied, m, above)
            best = _terms(m, n, numbers, above, falling, terms)
            rank[query, p] = 1 + np.int64(above[m]) - best
            ap[query, p] = total(terms, n) / n


@jit
def peaks(scores: Any, moment: Any, subjects: Any, probes: Any, own: Any, other: Any) -> None:
    """The best score of each probe's own subject, and of the others, at each moment."""
    for r in range(len(probes)):
        for c in range(len(moment)):
            target = own if subjects[c] == probes[r] else other
            target[r, moment[c]] = max(target[r, moment[c]], scores[r, c])
