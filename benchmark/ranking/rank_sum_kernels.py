"""Rankings by the sum of reciprocal ranks in two rows of scores, without sorting either.

A row's scores fall into many narrow buckets; how many lie above a bucket bounds the rank of an item
in it from both sides. Nearly always both bounds of its sum reach as many matches. Of the others the
buckets are looked into.
"""

from typing import Any

import numpy as np

from benchmark.ranking.kernels import jit
from benchmark.ranking.row_kernels import CHUNK, high
from benchmark.ranking.threshold_search import COPIES, plant, reached
from benchmark.ranking.whole_list_kernels import bisect, count_high, forget, nodes, upwards

_BUCKETS = 2048
_SAMPLE = 512


@jit
def _fill(row: Any, absent: int, bucket: Any, above: Any, edges: Any) -> None:
    """Sort scores into buckets: each one's number, and how many lie above each bucket.

    ``above`` has one place more than there are buckets, for all items; ``absent`` of the scores are
    infinite. ``edges`` gets the least score of a bucket 0 and the width of all.
    """
    total, squares, n = 0.0, 0.0, 0
    for j in range(0, len(row), max(1, len(row) // _SAMPLE)):
        if row[j] > -np.inf:
            total += np.float64(row[j])
            squares += np.float64(row[j]) * np.float64(row[j])
            n += 1
    mean = total / max(n, 1)
    spread = np.sqrt(max(squares / max(n, 1) - mean * mean, 0.0))
    width = max(10 * spread / _BUCKETS, abs(mean) * 1e-6, 1e-30)
    low = np.float32(mean - 4.5 * spread)
    factor, last = np.float32(1 / width), np.float32(_BUCKETS - 1)
    for j in range(np.uint64(len(row))):
        bucket[j] = np.int32(min(max((row[j] - low) * factor, np.float32(0.0)), last))
    counts = np.zeros((4, _BUCKETS), np.int32)
    for j in range(0, len(row), 4):  # a count need not wait for the one before it
        for c in range(np.uint64(4)):
            counts[c, np.uint64(bucket[np.uint64(j) + c])] += 1
    counts[0, 0] -= absent
    n = 0
    for k in range(_BUCKETS - 1, -1, -1):
        above[k + 1] = n
        n += counts[0, k] + counts[1, k] + counts[2, k] + counts[3, k]
    above[0] = n
    edges[0], edges[1] = low, width


@jit
def _least(above: Any, edges: Any, rank: int) -> Any:
    """A score that all items of a rank up to ``rank`` have at least."""
    k = _BUCKETS - 1
    while k > 0 and above[k] < rank:
        k -= 1
    # Scores are put in buckets in float32: one bucket more takes in what that rounds.
    return np.float32(edges[0] + (k - 1) * edges[1]) if k > 1 else np.float32(-3.4028235e38)


@jit
def _worst(share: Any, least: Any) -> Any:
    """The last rank of at least a share."""
    low, high = 0, len(share) - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if share[middle] >= least:
            low = middle
        else:
            high = middle - 1
    return low


@jit
def _look_into(row: Any, bucket: Any, above: Any, some: Any, rank: Any) -> None:
    """The ranks of some items: what lies above their buckets, and what is as high in them."""
    start = np.full(_BUCKETS, -1, np.int32)
    n = 0
    for x in range(len(some)):
        k = bucket[some[x]]
        if start[k] < 0:
            start[k] = n
            n += above[k] - above[k + 1]
    fill, scores = start.copy(), np.empty(n, np.float32)
    for j in range(np.uint64(len(row))):
        k = np.uint64(bucket[j])
        if start[k] >= 0 and row[j] > -np.inf:
            scores[np.uint64(fill[k])] = row[j]
            fill[k] += 1
    for x in range(len(some)):
        k, score = bucket[some[x]], row[some[x]]
        n = above[k + 1]
        for y in range(np.uint64(start[k]), np.uint64(fill[k])):
            n += np.int32(scores[y] >= score)
        rank[x] = n


@jit
def _own(row: Any, columns: Any, share: Any, counts: Any, sums: Any) -> None:
    """Add the shares of the matches' ranks in one row to their sums."""
    scores = row[columns]
    t = np.sort(scores)
    rank = np.empty(len(t), np.int64)
    count_high(row, t, counts, rank)
    for x in range(len(t)):
        sums[x] += share[rank[bisect(t, scores[x]) - 1]]


@jit
def _count_clear(
    rows: Any, least: Any, buckets: Any, over: Any, share: Any, sums: Any, tree: Any, own: Any,
    open_ones: Any,
) -> Any:  # fmt: skip
    """Count the items of which both bounds reach as many sums; the others are listed, how many."""
    places, size = np.empty(CHUNK + 16, np.int32), len(rows[0])
    most, least_share = np.empty((2, _BUCKETS)), np.empty((2, _BUCKETS))
    bounds, slots = np.empty((2, CHUNK + 16), np.float32), np.empty((2, CHUNK + 16), np.int32)
    n_open = 0
    for s in range(2):
        for k in range(_BUCKETS):
            most[s, k], least_share[s, k] = share[over[s, k + 1] + 1], share[over[s, k]]
    nearly = sums.astype(np.float32)
    depth = plant(nearly, tree)
    left, right = buckets[0], buckets[1]
    for s in range(2):
        for c in range(0, size, CHUNK):
            n = high(rows[s], c, min(CHUNK, size - c), least[s], places)
            for x in range(np.uint64(n)):
                j = np.uint64(c) + np.uint64(places[x])
                a, b = np.uint64(left[j]), np.uint64(right[j])
                bounds[0, x] = most[0, a] + most[1, b]
                low = np.float32(least_share[0, a] + least_share[1, b])
                bounds[1, x] = low - low * np.float32(2e-7)  # below what rounds to it
            reached(bounds[0], n, tree, depth, 1, slots[0])
            reached(bounds[1], n, tree, depth, 1, slots[1])
            for x in range(np.uint64(n)):
                j = np.uint64(c) + np.uint64(places[x])
                new = s == 0 or rows[0][j] < least[0]  # else it was counted before
                same = slots[0, x] == slots[1, x]
                own[np.uint64(slots[0, x])] += np.int64(new and same)
                open_ones[n_open] = j
                n_open += int(new and not same)
    return n_open


@jit
def by_ranks(
    one: Any, two: Any, n_items: int, matches: Any, gone: Any, share: Any, keys: Any, above: Any
) -> None:
    """The sum of ``share[rank]`` in both rows; ``share`` falls."""
    size = one.shape[1]
    counts = np.empty(COPIES * (np.diff(matches.offset).max() + 1), np.uint32)
    buckets = np.empty((2, size), np.int32)
    over, edges = np.empty((2, _BUCKETS + 1), np.int32), np.empty((2, 2))
    open_ones, least = np.empty(size + 1, np.int32), np.empty(2, np.float32)
    tree = nodes(len(counts) // COPIES)
    for i in range(len(one)):
        rows = one[i], two[i]
        first, last = matches.offset[i], matches.offset[i + 1]
        if first == last:
            continue
        columns, sums = matches.values[first:last], keys[first:last]
        sums[:] = 0
        absent = size - n_items + gone.offset[i + 1] - gone.offset[i]
        for s in range(2):
            row = rows[s]
            forget(row, gone.values, gone.offset[i], gone.offset[i + 1])
            _own(row, columns, share, counts, sums)
            _fill(row, absent, buckets[s], over[s], edges[s])
        sums.sort()
        rank = 1 + _worst(share, 0.5 * sums[0])  # halves are exact
        for s in range(2):
            least[s] = _least(over[s], edges[s], rank)
        own = np.zeros(len(sums) + 1, np.int64)
        n_open = _count_clear(rows, least, buckets, over, share, sums, tree, own, open_ones)
        some = open_ones[:n_open]
        ranks = np.empty((2, n_open), np.int32)
        for s in range(2):
            _look_into(rows[s], buckets[s], over[s], some, ranks[s])
        for x in range(n_open):
            own[bisect(sums, share[ranks[0, x]] + share[ranks[1, x]])] += 1
        for x in range(len(sums)):  # the matches themselves are among the items
            own[bisect(sums, sums[x])] -= 1
        upwards(own, 1, len(sums), above[first:last])
