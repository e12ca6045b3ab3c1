"""Backfilling curves of two lists that are merged by rank: an item has its place in its own list.

As in :mod:`benchmark.ranking.backfill_engine`, but with a histogram for each list, of thresholds
that are the scores of the matches there and those that several items have.
"""

import itertools
import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import engine, kernels, row_kernels
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.ranking.backfill_engine import CELLS, Run
from benchmark.ranking.backfill_kernels import change
from benchmark.ranking.engine import Scorer
from benchmark.ranking.grouping import Grouped, Ragged, offsets
from benchmark.ranking.kernels import jit
from benchmark.ranking.tie_kernels import ties
from benchmark.ranking.tile_counts import total

_NONE = 1 << 62  # the rank of no group
_ROWS = 8 << 20  # bytes of rows of scores that are sorted at a time


class _Thresholds(NamedTuple):
    """Ascending scores of a list for each query, none twice."""

    scores: Ragged
    tied: Mask  # whether the items from a score to the next one have it all

    @property
    def width(self) -> int:
        """1 + the most of a query."""
        return 1 + int(self.scores.sizes.max(initial=0))


class _Room(threading.local):
    """Room for some rows of scores and what ties in them, in each thread its own."""

    def __init__(self, rows: int, stride: int) -> None:
        self.scores, self.row = engine.aligned(rows * stride), np.empty(stride, np.float32)
        most = rows * stride // 2
        self.query, self.tied = np.empty(most, np.int64), np.empty(most, np.float32)


class RunByRank(Run):
    """A backfilling evaluation where equal ranks of the two lists are equal.

    Items of a list that score alike have the worse rank, relevant or not.
    """

    def _chunk(self, by: Grouped, rank: Ints, ap: NDArray[np.float64]) -> Ints:
        """Fill in rank and average precision ``[query, point]`` of some; returns their matches."""
        n = len(by.q_order)
        matches, left_out = self._scores(by)
        if not matches[0].offset[-1]:
            return matches[0].sizes
        pairs = zip(self.scorers, matches[:2], strict=True)
        both = [_thresholds(own, *self._tied(scorer, by.q_order)) for scorer, own in pairs]
        width = max(each.width for each in both)
        if n > 1 and n * width * self.points * self.cells[0].itemsize > CELLS:  # ties are many
            halves = [by.some(slice(0, n // 2)), by.some(slice(n // 2, n))]
            return np.concatenate([self._chunk(half, rank, ap) for half in halves])
        cells = [self._cells(n, width, of) for of in range(2)]

        def summarise(first: int, last: int) -> None:
            sides = tuple(both), matches, left_out, tuple(cells)
            by_rank(*sides, self.filled, first, last, by.q_order, rank, ap)

        room, pieces = self._room(n, width)
        lists = zip(self.scorers, both, cells, strict=True)
        counting = (self._count(s, by.q_order, t.scores, room, c) for s, t, c in lists)
        self._carry_out(itertools.chain(*counting, [summarise]), pieces)
        return matches[0].sizes

    def _tied(self, scorer: Scorer, rows: Ints) -> tuple[Ints, Floats]:
        """Scores that several items have, each once: the places of queries, and the scores."""
        m = len(self.order)
        stride = -(-m // kernels.COLUMNS) * kernels.COLUMNS
        items, found = scorer.items(np.arange(m)), dict[int, tuple[Ints, Floats]]()
        step = max(1, _ROWS // (4 * stride * kernels.ROWS)) * kernels.ROWS
        room = _Room(step, stride)

        def look(first: int, last: int) -> None:
            queries = scorer.query.packed(rows[first:last], kernels.ROWS, 1)
            row_kernels.score_rows(queries, items, scorer.l2, room.scores, stride)
            scores = room.scores[: (last - first) * stride].reshape(-1, stride)
            number = ties(scores, m, room.row, room.query, room.tied)
            found[first] = room.query[:number] + first, room.tied[:number].copy()

        engine.share(look, engine.even(len(rows), step, kernels.ROWS, self.threads), self.threads)
        parts = [found[first] for first in sorted(found)]
        return np.concatenate([q for q, _ in parts]), np.concatenate([s for _, s in parts])


def _thresholds(matches: Ragged, query: Ints, scores: Floats) -> _Thresholds:
    """Those of matches and of ties, which lie by themselves: the next number is one as well."""
    following = np.nextafter(scores, np.float32(np.inf))
    owner = np.concatenate([matches.owner, query, query])
    values = np.concatenate([matches.values, scores, following])
    tied = np.zeros(len(owner), bool)
    tied[len(matches.values) : len(matches.values) + len(query)] = True
    order = np.lexsort((~tied, values, owner))
    owner, values, tied = owner[order], values[order], tied[order]
    new = np.append(True, (owner[1:] != owner[:-1]) | (values[1:] != values[:-1]))
    sizes = np.bincount(owner[new], minlength=len(matches.sizes))
    return _Thresholds(Ragged(offsets(sizes), values[new]), tied[new])


@jit
def _groups(
    held: Any, numbers: Any, tied: Any, slots: int, start: Any, end: Any, size: Any
) -> None:
    """Items before and with each match, or score that several have, from the best on.

    ``size`` is the number of matches among them.
    """
    n, groups = np.int32(0), np.uint64(0)
    for k in range(np.uint64(slots - 1), np.uint64(0), -1):
        before = n
        n += held[k]
        if numbers[k] > 0 or (tied[k - np.uint64(1)] and held[k] > 1):
            start[groups] = before if tied[k - np.uint64(1)] else n - np.int32(1)
            end[groups], size[groups] = n, numbers[k]
            groups += np.uint64(1)
    start[groups], end[groups], size[groups] = _NONE, _NONE, 0


@jit
def _next(end: Any, size: Any, k: Any) -> Any:
    """The rank of the next group with a match."""
    while size[k] == 0 and end[k] != _NONE:
        k += np.uint64(1)
    return end[k]


@jit
def _slots(thresholds: Any, scores: Any, i: int, out: Any) -> None:
    """How many thresholds of its own list each match of a query reaches."""
    a, b = thresholds.offset[i], thresholds.offset[i + 1]
    first = scores.offset[i]
    for x in range(first, scores.offset[i + 1]):
        out[x - first] = np.searchsorted(thresholds.values[a:b], scores.values[x], "right")


@jit
def by_rank(
    both: Any, matches: Any, left_out: Any, cells: Any, filled: Any, first: int, last: int,
    q_order: Any, rank: Any, ap: Any,
) -> None:  # fmt: skip
    """Ranks and average precisions of queries ``first`` ... at every point of the curve.

    Thresholds are those of the old and of the new list, cells likewise; ``filled`` has the items
    that are filled at each point. See ``backfill_kernels.summarise`` for the others.
    """
    old, new, moment = matches
    left_old, left_new, left_moment = left_out
    leaving, coming = cells
    width, most = leaving.width, np.int64(0)
    for i in range(first, last):
        most = max(most, old.offset[i + 1] - old.offset[i])
    slots, terms = np.empty((2, most), np.int64), np.empty(most)
    numbers, held = np.zeros((2, width), np.int32), np.zeros((2, width), np.int32)
    start, end = np.empty((2, width + 1), np.int64), np.empty((2, width + 1), np.int64)
    size, gone = np.empty((2, width + 1), np.int64), np.zeros(leaving.points, np.int64)
    for i in range(first, last):
        a, b = old.offset[i], old.offset[i + 1]
        n = b - a
        if n == 0:
            continue
        _slots(both[0].scores, old, i, slots[0])
        _slots(both[1].scores, new, i, slots[1])
        t_old = both[0].scores.values[both[0].scores.offset[i] : both[0].scores.offset[i + 1]]
        t_new = both[1].scores.values[both[1].scores.offset[i] : both[1].scores.offset[i + 1]]
        rows, query = (leaving.changes[i], coming.changes[i]), q_order[i]
        held[:] = 0
        n_old, n_new = filled[-1] - (left_old.offset[i + 1] - left_old.offset[i]), np.int64(0)
        for k in range(leaving.points):  # the old list as it is before anything is filled
            for s in range(width):
                held[0, s] -= rows[0][k * width + s]
        for x in range(left_old.offset[i], left_old.offset[i + 1]):
            place = left_moment.values[x] * width
            s = np.searchsorted(t_old, left_old.values[x], "right")
            held[0, s] -= 1
            rows[0][place + s] += 1
            s = np.searchsorted(t_new, left_new.values[x], "right")
            rows[1][place + s] -= 1
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
                tied = both[side].tied[both[side].scores.offset[i] :]
                n_slots = len(t_new) + 1 if side else len(t_old) + 1
                _groups(
                    held[side], numbers[side], tied, n_slots, start[side], end[side], size[side]
                )
            best = _merge(start, end, size, (n_old, n_new), n, terms)
            rank[query, p], ap[query, p] = best, total(terms, n) / n


@jit
def _merge(start: Any, end: Any, size: Any, items: Any, n: int, terms: Any) -> Any:
    """Precision at each match, worst first, of two lists' groups; returns the best one's rank."""
    place, before = np.zeros(2, np.uint64), np.zeros(2, np.int64)
    done, best = np.int64(0), np.int64(0)
    while done < n:
        r = min(_next(end[0], size[0], place[0]), _next(end[1], size[1], place[1]))
        above, here = np.int64(0), np.int64(0)
        for side in range(2):
            k = place[side]
            while end[side, k] <= r:
                here += size[side, k]
                before[side] += size[side, k]
                k += np.uint64(1)
            place[side] = k
            # Of items that score alike, and of which some are beyond, none has this rank.
            above += min(r, items[side], start[side, k]) - before[side]
        if done == 0:
            best = 1 + above
        term = np.float64(done + here) / np.float64(done + here + above)
        for x in range(n - done - here, n - done):
            terms[np.uint64(x)] = term
        done += here
    return best
