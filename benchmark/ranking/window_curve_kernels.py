"""Backfilling curves of a window of one list that the other ranks anew, from two rows of scores.

The rows' columns are in the order in which items are filled. From the last point of a curve to the
first one items become unfilled, and what leaves the window never comes back: a heap holds it.
"""

from typing import Any

import numpy as np

from benchmark.ranking.kernels import LANES, jit
from benchmark.ranking.row_kernels import CHUNK, high
from benchmark.ranking.threshold_search import COPIES, plant, reached
from benchmark.ranking.tile_counts import total
from benchmark.ranking.whole_list_kernels import LEAST, bisect, count_high, forget, nodes


@jit
def _push(heap: Any, who: Any, n: int, score: Any, name: int) -> None:
    """Add an item to ``n`` in a heap, the lowest score first."""
    k = n
    while k > 0 and heap[(k - 1) >> 1] > score:
        up = (k - 1) >> 1
        heap[k], who[k] = heap[up], who[up]
        k = up
    heap[k], who[k] = score, name


@jit
def _pop(heap: Any, who: Any, n: int) -> None:
    """Take the lowest of ``n`` items away."""
    score, name, k = heap[n - 1], who[n - 1], 0
    while 2 * k + 1 < n - 1:
        low = 2 * k + 1
        if low + 1 < n - 1 and heap[low + 1] < heap[low]:
            low += 1
        if heap[low] >= score:
            break
        heap[k], who[k] = heap[low], who[low]
        k = low
    heap[k], who[k] = score, name


@jit
def _mark(name: int, change: int, counts: Any, in_window: Any) -> None:
    """Count an item of the window: a match by its own number below 0, another by its slot."""
    if name >= 0:
        counts[name] += change
    else:
        in_window[-1 - name] = change > 0


@jit
def _enter(
    heap: Any, who: Any, held: int, item: Any, least: Any, counts: Any, in_window: Any
) -> Any:
    """Let an item into the window, of which all that are alike leave where it is too long.

    Returns how many it holds, and the least score that enters.
    """
    if not item[0] >= least:
        return held, least
    _mark(item[1], 1, counts, in_window)
    _push(heap, who, held, item[0], item[1])
    held += 1
    if held < len(heap):
        return held, least
    low = heap[0]
    while held and heap[0] == low:
        _mark(who[0], -1, counts, in_window)
        _pop(heap, who, held)
        held -= 1
    return held, np.nextafter(low, np.float32(np.inf))


@jit
def _moments(filled: Any, columns: Any, moment: Any, numbers: Any) -> None:
    """The point at which each of some columns is filled, and how many are at each."""
    for x in range(len(columns)):
        moment[x] = bisect(filled, columns[x])
        numbers[moment[x]] += 1


@jit
def _some(row: Any, first: int, last: int, least: Any, places: Any) -> Any:
    """Where scores of some columns are at least ``least``, counted from ``first``; how many."""
    n = high(row, first, -(-(last - first) // LANES) * LANES, least, places)
    while n and places[n - 1] >= last - first:
        n -= 1
    return n


@jit
def _tally(row: Any, first: int, last: int, t: Any, tree: Any, depth: int, room: Any, counts: Any,
           places: Any, steps: Any) -> None:  # fmt: skip
    """Count some columns by how many thresholds their scores reach, where they reach any."""
    n = _some(row, first, last, t[0], places)
    for x in range(np.uint64(n)):
        room[x] = row[np.uint64(first) + np.uint64(places[x])]
    reached(room, n, tree, depth, 1, steps)
    for x in range(np.uint64(n)):
        counts[np.uint64(steps[x])] += 1


@jit
def _suffixes(counts: Any, out: Any) -> None:
    """Sums of each of three rows of counts from every place on."""
    for row in range(3):
        n = np.int64(0)
        for k in range(len(counts[row]) - 1, -1, -1):
            n += counts[row][k]
            out[row, k] = n


@jit
def _slots(t: Any, scores: Any, out: Any) -> None:
    for x in range(len(scores)):
        out[x] = bisect(t, scores[x])


@jit
def _above(front: Any, slots: Any, new: Any, sums: Any, filled: int, above: Any) -> None:
    """Other items that stand at least as high as each match.

    ``new`` are those with as high a new score; ``sums`` the unfilled ones by old and by new score,
    and those in the window by new score; ``filled`` all that are filled.
    """
    for x in range(len(front)):
        k, m = slots[0][x], slots[1][x]
        before = new[m - 1] - sums[1, m] + sums[2, m]
        above[x] = before if front[x] else filled + sums[0, k]


@jit
def _groups(order: Any, scores: Any, here: Any, above: Any, done: int, terms: Any) -> Any:
    """Precisions at the matches that are ``here``, best first, after ``done`` better ones.

    ``above`` is of each match. Returns how many are done, and what stands above the first one.
    """
    n, k, best = len(order), 0, np.int64(-1)
    while k < n:
        x = order[k]
        if not here[x]:
            k += 1
            continue
        end, alike = k, 0
        while end < n and scores[order[end]] == scores[x]:
            alike += int(here[order[end]])
            end += 1
        if best < 0:
            best = above[x]
        term = np.float64(done + alike) / np.float64(done + alike + above[x])
        for place in range(n - done - alike, n - done):
            terms[place] = term
        done += alike
        k = end
    return done, best


@jit
def by_window(
    one: Any, two: Any, filled: Any, matches: Any, gone: Any, window: int, rank: Any, ap: Any
) -> None:
    """Ranks and average precisions ``[row, point]``; ``filled`` columns are at each point."""
    points, n_items = len(filled), filled[-1]
    most = max(1, np.diff(matches.offset).max())
    counts, tree_old, tree_new = np.empty(COPIES * (most + 1), np.uint32), nodes(most), nodes(most)
    places, steps = np.empty(CHUNK + 16, np.int32), np.empty(CHUNK + 16, np.int32)
    room = np.empty(CHUNK + 16, np.float32)
    heap, who = np.empty(window + 1, np.float32), np.empty(window + 1, np.int64)
    for i in range(len(one)):
        a, b = one[i], two[i]
        columns = matches.values[matches.offset[i] : matches.offset[i + 1]]
        n = len(columns)
        if n == 0:
            continue
        left_out = gone.values[gone.offset[i] : gone.offset[i + 1]]
        old, new = a[columns], b[columns]
        for row in (a, b):
            forget(row, left_out, 0, len(left_out))
            forget(row, columns, 0, n)
        t_old, t_new = np.sort(old), np.sort(new)
        depth_old, depth_new = plant(t_old, tree_old), plant(t_new, tree_new)
        all_new = np.empty(n, np.int64)
        count_high(b, t_new, counts, all_new)
        slot_old, slot_new = np.empty(n, np.int64), np.empty(n, np.int64)
        special, moment = np.zeros(points + 1, np.int64), np.empty(n, np.int64)
        _moments(filled, left_out, np.empty(len(left_out), np.int64), special)
        _moments(filled, columns, moment, special)
        _slots(t_old, old, slot_old)
        _slots(t_new, new, slot_new)
        by_old, by_new = np.argsort(-old), np.argsort(-new)
        c_old, c_new = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        c_window, sums = np.zeros(n + 1, np.int64), np.empty((3, n + 1), np.int64)
        in_window, front = np.zeros(n, np.bool_), np.empty(n, np.bool_)
        above, terms = np.empty(n, np.int64), np.empty(n)
        n_others = n_items - len(left_out) - n
        unfilled, held, least = np.int64(0), 0, LEAST
        for p in range(points - 1, -1, -1):
            start, stop = filled[p], filled[p + 1] if p + 1 < points else n_items
            unfilled += stop - start - special[p + 1]
            for first in range(start, stop, CHUNK):
                last = min(first + CHUNK, stop)
                _tally(a, first, last, t_old, tree_old, depth_old, room, c_old, places, steps)
                _tally(b, first, last, t_new, tree_new, depth_new, room, c_new, places, steps)
                for x in range(_some(a, first, last, least, places)):
                    j = first + places[x]
                    item = a[j], bisect(t_new, b[j])
                    held, least = _enter(heap, who, held, item, least, c_window, in_window)
            for x in range(n):
                if moment[x] == p + 1:
                    item = old[x], -1 - x
                    held, least = _enter(heap, who, held, item, least, c_window, in_window)
            _suffixes((c_old, c_new, c_window), sums)
            for x in range(n):
                front[x] = in_window[x] or moment[x] <= p
            _above(front, (slot_old, slot_new), all_new, sums, n_others - unfilled, above)
            done, best = _groups(by_new, new, front, above, 0, terms)
            _, other = _groups(by_old, old, ~front, above, done, terms)
            rank[i, p], ap[i, p] = 1 + (best if done else other), total(terms, n) / n
