"""Counts above the matches in rankings made of two rows of scores, one query after the other.

For each match, a key (ascending, equal where places are) and how many other items stand at least as
high. ``matches`` and ``gone`` are ``Ragged`` columns of the rows: a query's relevant items, and
those that are left out for it.
"""

from typing import Any

import numpy as np

from benchmark.ranking.kernels import LANES, fetch, fma, jit
from benchmark.ranking.row_kernels import CHUNK, bent, high
from benchmark.ranking.score_scale import float_key, image, images, key_float
from benchmark.ranking.threshold_search import COPIES, plant, reached
from benchmark.ranking.tile_counts import tally

LEAST = np.float32(-3.4028235e38)


@jit
def forget(row: Any, columns: Any, first: int, last: int) -> None:
    """Let some columns count nowhere."""
    for x in range(first, last):
        row[columns[x]] = -np.inf


@jit
def bisect(ascending: Any, value: Any) -> Any:
    """How many of some numbers are at most a value."""
    low, n = 0, len(ascending)
    while n > 0:
        half = n >> 1
        if ascending[low + half] <= value:
            low += half + 1
            n -= half + 1
        else:
            n = half
    return low


@jit
def nodes(most: int) -> Any:
    """Room for a tree of so many thresholds."""
    size = 256
    while size <= 2 * most:
        size *= 2
    return np.empty(size, np.float32)


@jit
def count_high(row: Any, t: Any, counts: Any, out: Any) -> None:
    """Write how many scores of a row are at least each of the ascending thresholds ``t``."""
    if len(t) == 0:
        return
    places, room = np.empty(CHUNK + 16, np.int32), np.empty(CHUNK + 16, np.float32)
    steps, tree = np.empty(CHUNK + 16, np.int32), nodes(len(t))
    depth = plant(t, tree)
    counts[: COPIES * (len(t) + 1)] = 0
    for c in range(0, len(row), CHUNK):
        n = high(row, c, min(CHUNK, len(row) - c), t[0], places)
        for x in range(np.uint64(n)):
            room[x] = row[np.uint64(c) + np.uint64(places[x])]
        tally(room, n, tree, depth, counts, steps)
    upwards(counts, COPIES, len(t), out)


@jit
def upwards(counts: Any, copies: int, n: int, out: Any) -> None:
    """How many scores reach each of ``n`` thresholds, from ``copies`` of a counter each."""
    above = np.int64(0)
    for k in range(n, 0, -1):
        for copy in range(copies):
            above += np.int64(counts[k * copies + copy])
        out[k - 1] = above


@jit
def _nth_largest(x: Any, n: int) -> Any:
    """The ``n``-th largest of some finite scores, by halving: quicker than sorting parts."""
    low, high = float_key(x.min()), float_key(x.max())
    while low < high:
        middle = (low + high + 1) >> 1
        score, reach = key_float(middle), np.int32(0)
        for j in range(np.uint64(len(x))):  # in int32, of which a vector holds twice as many
            reach = np.int32(reach + np.int32(x[j] >= score))
        if reach >= n:
            low = middle
        else:
            high = middle - 1
    return key_float(low)


@jit
def window_of(row: Any, window: int, places: Any) -> Any:
    """The least score of the first ``window`` items of a row; of ties across its end none is in."""
    room = np.empty(2 * window + 2 * CHUNK, np.float32)
    least, n = LEAST, 0
    for c in range(0, len(row), CHUNK):
        if n > len(room) - CHUNK:
            least, kept = _nth_largest(room[:n], window), 0
            for x in range(np.uint64(n)):
                room[np.uint64(kept)] = room[x]
                kept += int(room[x] > least)
            room[kept:window] = least
            n = window
        some = high(row, c, min(CHUNK, len(row) - c), least, places)
        for x in range(np.uint64(some)):
            room[np.uint64(n) + x] = row[np.uint64(c) + np.uint64(places[x])]
        n += some
    if n < window:
        return LEAST
    least, reach = _nth_largest(room[:n], window), 0
    for c in range(0, len(row), CHUNK):
        reach += high(row, c, min(CHUNK, len(row) - c), least, places)
    return least if reach <= window else np.nextafter(least, np.float32(np.inf))


@jit
def _scores(query: Any, items: Any, columns: Any, l2: bool, room: Any, out: Any) -> None:
    """Scores of one query and some items by the tiles' chain; each a (vectors, rows, factors)."""
    q, row, factor = query
    g, rows, factors = items
    dim = q.shape[1]
    one, some = room[:dim], room[dim:]
    for k in range(np.uint64(dim)):
        one[k] = np.float64(q[row, k]) * factor
    for start in range(0, len(columns), LANES):
        n = min(LANES, len(columns) - start)
        for x in range(start + LANES, min(start + 2 * LANES, len(columns))):
            for k in range(0, dim, 16):  # the next ones are on their way meanwhile
                fetch(g, np.int64(rows[columns[x]]) * dim + k)
        for x in range(n):
            j = rows[columns[start + x]]
            line, own, by = some[x * dim : (x + 1) * dim], g[j], factors[j]
            for k in range(np.uint64(dim)):
                line[k] = np.float64(own[k]) * by
        last = out[start : start + LANES]
        last[:] = 0
        for x in range(0, n, 4):  # chains beside each other, as each step waits for the one before
            b0, b1, b2, b3 = (
                some[x * dim : (x + 1) * dim], some[(x + 1) * dim : (x + 2) * dim],
                some[(x + 2) * dim : (x + 3) * dim], some[(x + 3) * dim : (x + 4) * dim],
            )  # fmt: skip
            s0 = s1 = s2 = s3 = np.float32(0.0)
            for k in range(np.uint64(dim)):
                a = one[k]
                if l2:
                    s0 = fma(b0[k] - a, a - b0[k], s0)
                    s1 = fma(b1[k] - a, a - b1[k], s1)
                    s2 = fma(b2[k] - a, a - b2[k], s2)
                    s3 = fma(b3[k] - a, a - b3[k], s3)
                else:
                    s0, s1 = fma(a, b0[k], s0), fma(a, b1[k], s1)
                    s2, s3 = fma(a, b2[k], s2), fma(a, b3[k], s3)
            last[x], last[x + 1], last[x + 2], last[x + 3] = s0, s1, s2, s3


@jit
def _number(t: Any, key: float, keys: Any) -> None:
    """Keys above one given for ascending scores, equal ones of equal scores."""
    for k in range(len(t)):
        key += np.float64(k == 0 or t[k] != t[k - 1])
        keys[k] = key


@jit
def by_window(
    one: Any, two: Any, sides: Any, l2: bool, matches: Any, gone: Any, window: int, keys: Any,
    above: Any,
) -> None:  # fmt: skip
    """The first ``window`` of the first row by the second list, the others behind by the first.

    Scores of the second list are the rows ``two``; where that is None, ``sides`` has vectors, rows
    and factors of the queries and of the items in their columns, and the window alone is scored.
    """
    most = np.diff(matches.offset).max()
    counts, places = np.empty(COPIES * (most + 1), np.uint32), np.empty(CHUNK + 16, np.int32)
    behind, front = np.empty(most, np.float32), np.empty(most, np.float32)
    columns, found = np.empty(one.shape[1], np.int32), np.empty(one.shape[1] + 16, np.float32)
    room = np.empty(0, np.float32)
    if sides is not None:
        room = np.empty((LANES + 1) * sides[0][0].shape[1], np.float32)
    for i in range(len(one)):
        a = one[i]
        first, last = matches.offset[i], matches.offset[i + 1]
        if first == last:
            continue
        forget(a, gone.values, gone.offset[i], gone.offset[i + 1])
        least, n = window_of(a, window, places), 0
        n_behind, n_front = 0, 0
        for x in range(first, last):
            j = matches.values[x]
            if a[j] >= least:
                columns[n] = j
                n += 1
            else:
                behind[n_behind] = a[j]
                n_behind += 1
        n_front = n
        forget(a, matches.values, first, last)
        for c in range(0, len(a), CHUNK):
            for x in range(high(a, c, min(CHUNK, len(a) - c), least, places)):
                columns[n] = c + places[x]
                n += 1
        if sides is not None:  # numba leaves out what is None
            of_query = sides[0][0], sides[0][1][i], sides[0][2][i]
            _scores(of_query, sides[1], columns[:n], l2, room, found)
        if two is not None:
            for x in range(n):
                found[x] = two[i][columns[x]]
        front[:n_front] = found[:n_front]
        split = first + n_behind
        behind[:n_behind].sort()
        front[:n_front].sort()
        count_high(a, behind[:n_behind], counts, above[first:split])
        rest = found[n_front : n_front + -(-(n - n_front) // 16) * 16]
        rest[n - n_front :] = -np.inf
        count_high(rest, front[:n_front], counts, above[split:last])
        _number(behind[:n_behind], 0.0, keys[first:split])
        _number(front[:n_front], np.float64(n_behind), keys[split:last])


@jit
def by_mean(
    one: Any, two: Any, matches: Any, gone: Any, scale: Any, bins: Any, keys: Any, above: Any
) -> None:
    """The mean of both scores, the first one's after a scale; ``bins`` bound that from above."""
    most = np.diff(matches.offset).max()
    tree, counts = nodes(most), np.empty(COPIES * (most + 1), np.int64)
    places, steps = np.empty(CHUNK + 16, np.int32), np.empty(CHUNK + 16, np.int32)
    near, other = np.empty(CHUNK + 16, np.float32), np.empty(CHUNK + 16, np.float32)
    mean = np.empty(CHUNK + 16)
    for i in range(len(one)):
        a, b = one[i], two[i]
        first, last = matches.offset[i], matches.offset[i + 1]
        if first == last:
            continue
        forget(b, gone.values, gone.offset[i], gone.offset[i + 1])
        t = keys[first:last]
        for x in range(first, last):
            j = matches.values[x]
            t[x - first] = 0.5 * (image(a[j], scale) + np.float64(b[j]))
        t.sort()
        forget(b, matches.values, first, last)
        t_near = t.astype(np.float32)
        depth = plant(t_near, tree)
        counts[: len(t) + 1] = 0
        goal = 2 * t[0]
        least = np.float32(goal - 1e-6 * (abs(goal) + bins.size))
        for c in range(0, len(a), CHUNK):
            n = min(CHUNK, len(a) - c)
            n = bent(a, b, c, n, bins.first, bins.steps, bins.lines, least, places)
            for x in range(np.uint64(n)):
                j = np.uint64(c) + np.uint64(places[x])
                near[x], other[x] = a[j], b[j]
            images(near, n, scale, steps, mean)
            for x in range(np.uint64(n)):
                mean[x] = 0.5 * (mean[x] + np.float64(other[x]))
                near[x] = mean[x]
            reached(near, n, tree, depth, 1, steps)
            for x in range(np.uint64(n)):
                k = np.int64(steps[x])
                # Rounding keeps the order, but may make what differs equal.
                while k and t_near[k - 1] == near[x] and t[k - 1] > mean[x]:
                    k -= 1
                counts[k] += 1
        upwards(counts, 1, len(t), above[first:last])
