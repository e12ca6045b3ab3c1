"""Backfilling curves of two lists that are merged by places, from rows of scores of both.

Each row's items are sorted once. Along the curve items move from list to list, and only matches are
placed: items before one are counted by blocks.
"""

from typing import Any

import numpy as np

from benchmark.ranking.kernels import jit
from benchmark.ranking.tile_counts import total

_BLOCK = 64


@jit
def _sort(order: Any, scores: Any, out: Any, items: Any, ends: Any, where: Any) -> Any:
    """Set a list's items that are not left out, best first, and where their equal scores end.

    Returns how many, and whether any scores are equal.
    """
    n, tied, where[:] = 0, False, -1
    for x in order:
        if not out[x]:
            items[n], where[x] = x, n
            n += 1
    for k in range(n - 1, -1, -1):
        last = k + 1 == n or scores[items[k]] != scores[items[k + 1]]
        ends[k] = k if last else ends[k + 1]
        tied |= not last
    return n, tied


@jit
def _set(there: Any, count: Any, k: Any, value: Any) -> None:
    """Put the item at ``k`` of a list there, or take it away."""
    count[k // _BLOCK] += value - there[k]
    there[k] = value


@jit
def _before(count: Any, before: Any) -> Any:
    """Set the items that are there before each block; their number in all."""
    n = 0
    for b in range(len(count)):
        before[b] = n
        n += count[b]
    return n


@jit
def _item(there: Any, before: Any, place: Any) -> Any:
    """Position of the ``place``-th item of a list that is there; one must be there."""
    b = np.searchsorted(before, place) - 1  # the last block with fewer before it
    left, k = place - before[b], b * _BLOCK - 1
    while left > 0:
        k += 1
        left -= there[k]
    return k


@jit
def _start(ends: Any, k: Any) -> Any:
    """First position of the items whose scores equal that at ``k``."""
    while k > 0 and ends[k - 1] >= k:
        k -= 1
    return k


@jit
def _places(there: Any, before: Any, ends: Any, matches: Any, first: int, places: Any) -> Any:
    """Set the places of matches from ``first`` on that are there; how many.

    Equal scores have the worse place.
    """
    n, at, place = 0, -1, 0
    for k in matches:
        if k < first or not there[k]:
            continue
        end = ends[k]
        if end // _BLOCK > at // _BLOCK or at < 0:
            at = end // _BLOCK * _BLOCK - 1
            place = before[end // _BLOCK]
        for x in range(at + 1, end + 1):
            place += there[x]
        at = end
        places[n] = place
        n += 1
    return n


@jit
def _up_to(there: Any, before: Any, n: Any, ends: Any, tied: Any, place: Any) -> Any:
    """The number of a list's ``n`` items that have this place or a better one."""
    if place >= n or not tied:
        return min(place, n)
    k = _item(there, before, place)
    start, end, inside = _start(ends, k), ends[k], 0
    for x in range(k + 1, end + 1):
        inside += there[x]
    if not inside:
        return place
    for x in range(start, k + 1):
        place -= there[x]
    return place


@jit
def _precisions(
    places: Any, found: Any, there: Any, before: Any, sizes: Any, ends: Any, tied: Any, apart: Any,
    terms: Any,
) -> Any:  # fmt: skip
    """Set the precisions at all matches, worst first, from their places in both lists.

    Lists that are ``apart`` share no place: a place is the number of items up to it.
    Returns the rank of the best match.
    """
    n, best, done, at = found[0] + found[1], 0, 0, np.zeros(2, np.int64)
    while done < n:
        place = np.iinfo(np.int64).max
        for s in range(2):
            if at[s] < found[s]:
                place = min(place, places[s, at[s]])
        here, items = done, 0
        for s in range(2):
            known = at[s]
            while at[s] < found[s] and places[s, at[s]] == place:
                at[s] += 1
            here += at[s] - known
            if at[s] > known:
                items += place
            elif not apart:
                items += _up_to(there[s], before[s], sizes[s], ends[s], tied[s], place)
        best = best if done else 1 + items - here
        terms[n - here : n - done] = np.float64(here) / np.float64(items)
        done = here
    return best


@jit
def _rank_anew(there: Any, count: Any, start: int, items: Any, where: Any, value: int) -> Any:
    """Set items of the first list before ``start`` there in the second, or away; how many."""
    n = 0
    for k in range(start):
        if there[0, k]:
            _set(there[1], count[1], where[items[k]], value)
            n += 1
    return n


@jit
def _points(
    n: int, kept: int, window: int, moment: Any, by_moment: Any, items: Any, ends: Any, where: Any,
    matches: Any, tied: Any, rank: Any, ap: Any,
) -> None:  # fmt: skip
    """Rank and average precision at each point of one query with ``n`` matches."""
    m = len(moment)
    there, count = np.zeros((2, m), np.int8), np.zeros((2, m // _BLOCK + 1), np.int64)
    before, places, terms = np.empty_like(count), np.empty((2, n), np.int64), np.empty(n)
    sizes, found, filled = np.empty(2, np.int64), np.empty(2, np.int64), 0
    for k in range(kept):
        _set(there[0], count[0], k, 1)
    for p in range(len(rank)):
        while filled < m and moment[by_moment[filled]] <= p:
            x = by_moment[filled]
            if where[0, x] >= 0:
                _set(there[0], count[0], where[0, x], 0)
                _set(there[1], count[1], where[1, x], 1)
            filled += 1
        sizes[0], start = _before(count[0], before[0]), 0
        if window > 0:
            start = kept
            if sizes[0] > window:
                start = _start(ends[0], _item(there[0], before[0], window + 1))
        anew = _rank_anew(there, count, start, items[0], where[1], 1)
        sizes[1] = _before(count[1], before[1])
        found[0] = _places(there[0], before[0], ends[0], matches[0], start, places[0])
        found[1] = _places(there[1], before[1], ends[1], matches[1], 0, places[1])
        if window > 0:  # behind the second list, without what it has ranked anew
            places[0, : found[0]] += sizes[1] - anew
        rank[p] = _precisions(places, found, there, before, sizes, ends, tied, window > 0, terms)
        ap[p] = total(terms, n) / n
        _rank_anew(there, count, start, items[0], where[1], 0)


@jit
def _rows(
    first: Any, second: Any, order: Any, other: Any, match: Any, out: Any, moment: Any, window: int,
    rank: Any, ap: Any,
) -> None:  # fmt: skip
    m, by_moment = first.shape[1], np.argsort(moment)
    items, tied = np.empty((2, m), np.int64), np.empty(2, np.bool_)
    ends, where = np.empty_like(items), np.empty_like(items)
    for i in range(len(first)):
        n = match[i].sum()
        if n == 0:
            continue
        kept, tied[0] = _sort(order[i], first[i], out[i], items[0], ends[0], where[0])
        _, tied[1] = _sort(other[i], second[i], out[i], items[1], ends[1], where[1])
        matches = np.empty((2, n), np.int64)
        for s in range(2):
            matches[s] = np.sort(where[s][match[i]])
        _points(
            n, kept, window, moment, by_moment, items, ends, where, matches, tied, rank[i], ap[i]
        )


def curves(
    first: Any, second: Any, match: Any, out: Any, moment: Any, window: int, rank: Any, ap: Any
) -> None:
    """Set ranks and average precisions ``[row, point]`` of rows of scores ``[row, item]``.

    An item is filled from the point ``moment`` on. Without a window the first list has the unfilled
    items, the second one the filled ones. With one, the second list also ranks the first ``window``
    unfilled items anew; the others come behind it in the order of the first.
    """
    orders = (np.argsort(-scores, axis=1) for scores in (first, second))
    _rows(first, second, *orders, match, out, moment, window, rank, ap)
