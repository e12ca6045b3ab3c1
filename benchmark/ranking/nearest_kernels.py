"""Counts of scores against thresholds, and the nearest items, from one pass over tiles of scores.

As :mod:`benchmark.ranking.tile_counts`, but scores keep their columns: what may be among a query's
nearest items is kept as a key, of which only the largest stay when its room is full.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking.arrays import Floats, Ints
from benchmark.ranking.kernels import CAPACITY, COLUMNS, ROWS, jit, prefetch, store
from benchmark.ranking.score_scale import float_key, key_float
from benchmark.ranking.threshold_search import COPIES
from benchmark.ranking.tile_counts import add_up, prepare, tally

Keys = NDArray[np.uint64]
SPARE = 256  # keys of a query beyond those that are asked for
_LOW = np.uint64(2**32 - 1)  # the half of a key that has the row
_ZERO = 1 << 31  # the other half of a key, of a score of 0


class Best(NamedTuple):
    """The nearest items of each query so far, as keys that ascend with the score.

    Of equal scores the smaller row has the larger key.
    """

    top: int
    keys: Keys  # ``[n, top + SPARE]``, in no order
    held: Ints  # how many of them each query has, ``[n]``; a key of 0 is none
    least: Floats  # a score below it is not among the nearest any more, ``[n]``

    @classmethod
    def none(cls, n: int, top: int) -> "Best":
        """Room for ``top`` items of each of ``n`` queries."""
        keys = np.empty((n, top + SPARE if top else 0), np.uint64)
        return cls(top, keys, np.zeros(n, np.int64), np.full(n, -np.inf, np.float32))

    def shortened(self) -> "Best":
        """The same without room for more."""
        return self._of(self._sorted())

    def added(self, other: "Best") -> "Best":
        """The nearest items of two galleries whose rows differ."""
        keys = np.concatenate([self._sorted(), other._sorted()], axis=1)
        keys = np.sort(keys, axis=1)[:, keys.shape[1] - self.top :]
        return self._of(keys)

    def _of(self, keys: Keys) -> "Best":
        return Best(self.top, keys, np.full(len(keys), self.top), self.least)

    def found(self) -> tuple[Ints, Floats]:
        """Rows and scores, the nearest first, ``[n, top]``; -1 and NaN where there are fewer."""
        keys = self._sorted()[:, ::-1]
        none = keys == 0
        rows = np.where(none, -1, (_LOW - (keys & _LOW)).astype(np.int64))
        place = (keys >> np.uint64(32)).astype(np.int64) - _ZERO  # as ``float_key`` has it
        scores = np.where(place < 0, _ZERO - place, place).astype(np.uint32).view(np.float32)
        return rows, np.where(none, np.float32(np.nan), scores)

    def _sorted(self) -> Keys:
        """The largest ``top`` keys, ascending, ``[n, top]``; 0 where there are fewer."""
        known = np.arange(self.keys.shape[1]) < self.held[:, None]
        keys = np.sort(np.where(known, self.keys, np.uint64(0)), axis=1)
        return keys[:, keys.shape[1] - self.top :]


@jit
def _append(
    tile: Any, n_columns: int, column: int, lows: Any, fill: Any, row: int, scores: Any,
    columns: Any,
) -> None:  # fmt: skip
    """Append scores of a tile that reach what their query looks for, and their columns."""
    for m in range(ROWS):
        low, n = lows[row + m], fill[row + m]
        reached = False
        for v in range(COLUMNS):
            reached |= tile[m * COLUMNS + v] >= low
        if not reached:
            continue
        for v in range(n_columns):
            score = tile[m * COLUMNS + v]
            scores[row + m, n] = score
            columns[row + m, n] = np.int32(column + v)
            n += np.int64(score >= low)
        fill[row + m] = n


@jit
def _is_in(values: Any, first: int, last: int, wanted: int) -> bool:
    """Tell whether one of some ascending values is the wanted one."""
    end = last
    while first < last:
        middle = (first + last) // 2
        if values[middle] < wanted:
            first = middle + 1
        else:
            last = middle
    return first < end and values[first] == wanted


@jit
def _find(
    scores: Any, columns: Any, n: int, rows: Any, left_out: Any, query: int, best: Any
) -> None:
    """Keep those of ``n`` scores that are among the query's nearest."""
    a, b = left_out.offset[query], left_out.offset[query + 1]
    for j in range(n):
        if scores[j] < best.least[query] or _is_in(left_out.values, a, b, columns[j]):
            continue
        high = np.uint64(float_key(scores[j]) + _ZERO)
        key = (high << np.uint64(32)) | (_LOW - np.uint64(rows[columns[j]]))
        held = best.held[query]
        best.keys[query, held] = key
        held += 1
        if held == best.keys.shape[1]:
            # Sorted, not partitioned, which takes long to compile and saves little: it is rare.
            some = np.sort(best.keys[query])
            for place in range(best.top):
                best.keys[query, place] = some[held - best.top + place]
            held = best.top
            high = some[len(some) - best.top] >> np.uint64(32)
            best.least[query] = key_float(np.int64(high) - _ZERO)
        best.held[query] = held


@jit
def count_and_find(
    queries: Any, items: Any, l2: bool, thresholds: Any, first: int, last: int, room: Any,
    out: Any, rows: Any, left_out: Any, best: Any,
) -> None:  # fmt: skip
    """Do as ``tile_counts.count``, and keep the nearest items of each query in ``best``.

    ``rows`` are the items' numbers in the gallery, ascending; ``left_out`` is ragged, each query's
    ascending items that are not among its nearest.
    """
    trees, counts = room
    qp, gp, dim = queries.values, items.values, items.dim
    least, depths = prepare(thresholds, first, last, trees)
    n_queries = last - first
    lows = np.full(len(least), np.inf, np.float32)
    fill = np.zeros(len(least), np.int64)
    scores = np.empty((len(least), CAPACITY), np.float32)
    columns = np.empty((len(least), CAPACITY), np.int32)
    steps = np.empty(CAPACITY, np.int32)
    tile = np.zeros(ROWS * COLUMNS, np.float32)
    for i in range(n_queries):
        n = thresholds.offset[first + i + 1] - thresholds.offset[first + i]
        counts[i, : COPIES * (n + 1)] = 0
        lows[i] = min(least[i], best.least[first + i])
    for c in range(0, items.n, COLUMNS):
        here = min(COLUMNS, items.n - c)
        for r in range(0, len(lows), ROWS):
            prefetch(gp, c + COLUMNS, dim, r // ROWS, len(lows) // ROWS)
            store(qp, (first + r) * dim, gp, c * dim, dim, l2, tile)
            _append(tile, here, c, lows, fill, r, scores, columns)
            for i in range(r, min(r + ROWS, n_queries)):
                if fill[i] > CAPACITY - 2 * COLUMNS:
                    if depths[i]:
                        tally(scores[i], fill[i], trees[i], depths[i], counts[i], steps)
                    _find(scores[i], columns[i], fill[i], rows, left_out, first + i, best)
                    fill[i], lows[i] = 0, min(least[i], best.least[first + i])
    for i in range(n_queries):
        _find(scores[i], columns[i], fill[i], rows, left_out, first + i, best)
        if depths[i]:
            tally(scores[i], fill[i], trees[i], depths[i], counts[i], steps)
            add_up(thresholds, first + i, counts[i], out)
