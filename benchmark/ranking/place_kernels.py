"""Backfilling curves of two lists that are merged by places, from rows of scores of both.

Each row's items are sorted once; along the curve a place is counted from there.
"""

from typing import Any

import numpy as np

from benchmark.ranking.kernels import jit
from benchmark.ranking.tile_counts import total


@jit
def _sorted(scores: Any, out: Any, items: Any, ends: Any) -> Any:
    """The items that are not left out, best first, and where equal scores end; how many."""
    order, n = np.argsort(-scores), 0
    for k in range(len(order)):
        if not out[order[k]]:
            items[n] = order[k]
            n += 1
    for k in range(n):
        ends[k] = k + 1 == n or scores[items[k]] != scores[items[k + 1]]
    return n


@jit
def _count(match: Any, there: Any, ends: Any, n: int, good: Any, bad: Any) -> None:
    """Add the items of a list that are there to their places; equal scores have the worse one."""
    place = right = wrong = 0
    for k in range(n):
        right += there[k] and match[k]
        wrong += there[k] and not match[k]
        if ends[k]:
            place += right + wrong
            good[place] += right
            bad[place] += wrong
            right = wrong = 0


@jit
def _in_window(there: Any, ends: Any, n: int, window: int, items: Any, new: Any) -> None:
    """Move the first items of a list that are there to ``new``: all that are alike, or none."""
    place, start = 0, 0
    for k in range(n):
        place += there[k]
        if ends[k]:
            if place > window:
                return
            for x in range(start, k + 1):
                new[items[x]] |= there[x]
                there[x] = False
            start = k + 1


@jit
def _precisions(good: Any, bad: Any, n: int, terms: Any) -> Any:
    """Precisions at ``n`` matches, worst first, from matches and others at each place.

    Returns the rank of the best match.
    """
    best, done, above = 0, 0, 0
    for r in range(len(good)):
        above += bad[r]
        if good[r]:
            best = best if done else 1 + above
            here = done + good[r]
            terms[n - here : n - done] = np.float64(here) / np.float64(here + above)
            done = here
            if done == n:
                break
    return best


@jit
def curves(
    first: Any, second: Any, match: Any, out: Any, moment: Any, window: int, rank: Any, ap: Any
) -> None:
    """Ranks and average precisions ``[row, point]`` of rows of scores ``[row, item]``.

    An item is filled from the point ``moment`` on. Without a window the first list has the unfilled
    items, the second one the filled ones. With one, the second list also ranks the first ``window``
    unfilled items anew; the others come behind it in the order of the first.
    """
    m, sides = first.shape[1], (first, second)
    good, bad = np.empty(2 * m + 1, np.int64), np.empty(2 * m + 1, np.int64)
    items, ends = np.empty((2, m), np.int64), np.empty((2, m), np.bool_)
    own, there, new = np.empty((2, m), np.bool_), np.empty((2, m), np.bool_), np.empty(m, np.bool_)
    at, terms = np.empty((2, m), np.int64), np.empty(m)
    for i in range(len(first)):
        n, kept = match[i].sum(), 0
        if n == 0:
            continue
        for s in range(2):
            kept = _sorted(sides[s][i], out[i], items[s], ends[s])
            for k in range(kept):
                own[s, k], at[s, k] = match[i, items[s, k]], moment[items[s, k]]
        for p in range(rank.shape[1]):
            good[:], bad[:] = 0, 0
            for k in range(kept):
                there[0, k], there[1, k] = at[0, k] > p, at[1, k] <= p
            behind = 0
            if window > 0:
                new[:], behind = False, m
                _in_window(there[0], ends[0], kept, window, items[0], new)
                for k in range(kept):
                    there[1, k] |= new[items[1, k]]
            _count(own[0], there[0], ends[0], kept, good[behind:], bad[behind:])
            _count(own[1], there[1], ends[1], kept, good, bad)
            rank[i, p] = _precisions(good, bad, n, terms)
            ap[i, p] = total(terms, n) / n
