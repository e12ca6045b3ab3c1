"""Backfilling curves of two lists that are merged by rank: an item has its place in its own list.

As in :mod:`benchmark.ranking.backfill_engine`, but with a histogram for each list, of thresholds
that are the scores of the matches there.
"""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import engine
from benchmark.ranking.arrays import Ints
from benchmark.ranking.backfill_engine import Run
from benchmark.ranking.backfill_kernels import change
from benchmark.ranking.grouping import Grouped, Ragged
from benchmark.ranking.kernels import jit
from benchmark.ranking.tile_counts import total

_NONE = 1 << 62  # the rank of no group


class RunByRank(Run):
    """A backfilling evaluation where equal ranks of the two lists are equal.

    In a list the items that score alike stand one after the other, the relevant ones last.
    """

    def _chunk(self, by: Grouped, rank: Ints, ap: NDArray[np.float64]) -> Ints:
        """Fill in rank and average precision ``[query, point]`` of some; returns their matches."""
        n = len(by.q_order)
        matches, left_out = self._scores(by)
        both = [Ragged(side.offset, side.values.copy()) for side in matches[:2]]

        def sort(first: int, last: int) -> None:
            for side in both:
                engine.sort(side, first, last)

        engine.share(sort, engine.spans(n, 1024), self.threads)
        width = int(both[0].sizes.max(initial=0)) + 1
        cells = [self._cells(n, width, of) for of in range(2)]

        def summarise(first: int, last: int) -> None:
            sides = tuple(both), matches, left_out, tuple(cells)
            by_rank(*sides, self.filled, first, last, by.q_order, rank, ap)

        room, pieces = self._room(n, width)
        lists = zip(self.scorers, both, cells, strict=True)
        counting = (self._count(s, by.q_order, t, room, c) for s, t, c in lists)
        stages = itertools.chain(*counting, [summarise])
        self._carry_out(stages if width > 1 else [], pieces)
        return both[0].sizes


@jit
def _groups(held: Any, numbers: Any, slots: int, rank: Any, size: Any) -> Any:
    """Ranks, from the best on, and numbers of matches that score alike; returns how many groups."""
    n, groups = np.int32(0), np.uint64(0)
    for k in range(np.uint64(slots - 1), np.uint64(0), -1):
        n += held[k]
        rank[groups], size[groups] = n, numbers[k]  # the next group overwrites it if none is here
        groups += np.uint64(numbers[k] > 0)
    rank[groups], size[groups] = _NONE, 0
    return groups


@jit
def _before(r: Any, rank: Any, size: Any) -> Any:
    """Matches of the next group on the first ``r`` places: of equal scores they come last."""
    return min(max(r - (rank - size), np.int64(0)), size)


@jit
def _slots(thresholds: Any, scores: Any, i: int, out: Any) -> None:
    """How many thresholds of its own list each match of a query reaches."""
    a, b = scores.offset[i], scores.offset[i + 1]
    for x in range(a, b):
        out[x - a] = np.searchsorted(thresholds.values[a:b], scores.values[x], "right")


@jit
def by_rank(
    thresholds: Any, matches: Any, left_out: Any, cells: Any, filled: Any, first: int, last: int,
    q_order: Any, rank: Any, ap: Any,
) -> None:  # fmt: skip
    """Ranks and average precisions of queries ``first`` ... at every point of the curve.

    Thresholds are those of the old and of the new list, cells likewise; ``filled`` has the items
    that are filled at each point. See ``backfill_kernels.summarise`` for the others.
    """
    old, new, moment = matches
    left_old, left_new, left_moment = left_out
    leaving, coming = cells
    width = leaving.width
    slots = np.empty((2, width), np.int64)
    numbers, held = np.zeros((2, width), np.int32), np.zeros((2, width), np.int32)
    ranks, sizes = np.empty((2, width + 1), np.int64), np.empty((2, width + 1), np.int64)
    terms, gone = np.empty(width), np.zeros(leaving.points, np.int64)
    for i in range(first, last):
        a, b = old.offset[i], old.offset[i + 1]
        n = b - a
        if n == 0:
            continue
        _slots(thresholds[0], old, i, slots[0])
        _slots(thresholds[1], new, i, slots[1])
        rows, query = (leaving.changes[i], coming.changes[i]), q_order[i]
        held[:] = 0
        n_old, n_new = filled[-1] - (left_old.offset[i + 1] - left_old.offset[i]), np.int64(0)
        for k in range(leaving.points):  # the old list as it is before anything is filled
            for s in range(width):
                held[0, s] -= rows[0][k * width + s]
        for x in range(left_old.offset[i], left_old.offset[i + 1]):
            start = left_moment.values[x] * width
            s = np.searchsorted(thresholds[0].values[a:b], left_old.values[x], "right")
            held[0, s] -= 1
            rows[0][start + s] += 1
            s = np.searchsorted(thresholds[1].values[a:b], left_new.values[x], "right")
            rows[1][start + s] -= 1
            gone[left_moment.values[x]] += 1
        numbers[:] = 0
        for x in range(n):
            numbers[0, slots[0, x]] += 1
        following = a
        for p in range(leaving.points):
            while following < b and moment.values[following] == p:
                numbers[0, slots[0, following - a]] -= 1
                numbers[1, slots[1, following - a]] += 1
                following += 1
            # Of items that score below all matches the histograms know nothing.
            moved = filled[p] - (filled[p - 1] if p else 0) - gone[p]
            gone[p] = 0
            n_old -= moved
            n_new += moved
            for side in range(2):
                change(rows[side], p, width, held[side])
                _groups(held[side], numbers[side], n + 1, ranks[side], sizes[side])
            best = _merge(ranks[0], sizes[0], n_old, ranks[1], sizes[1], n_new, n, terms)
            rank[query, p], ap[query, p] = best, total(terms, n) / n


@jit
def _merge(
    left: Any, left_size: Any, n_left: int, right: Any, right_size: Any, n_right: int, n: int,
    terms: Any,
) -> Any:  # fmt: skip
    """Precision at each match, worst first, of two lists' groups; returns the best one's rank."""
    i, j = np.uint64(0), np.uint64(0)
    before_left, before_right = np.int64(0), np.int64(0)
    done, best = np.int64(0), np.int64(0)
    while done < n:
        r = min(left[i], right[j])
        above = min(r, n_left) - before_left - _before(r, left[i], left_size[i])
        above += min(r, n_right) - before_right - _before(r, right[j], right_size[j])
        here = np.int64(0)
        if left[i] == r:
            here += left_size[i]
            before_left += left_size[i]
            i += np.uint64(1)
        if right[j] == r:
            here += right_size[j]
            before_right += right_size[j]
            j += np.uint64(1)
        if done == 0:
            best = 1 + above
        term = np.float64(done + here) / np.float64(done + here + above)
        for x in range(n - done - here, n - done):
            terms[np.uint64(x)] = term
        done += here
    return best
