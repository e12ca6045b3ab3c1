"""Rankings by the sum of reciprocal ranks in two rows of scores, without sorting either.

A row's scores fall into many narrow buckets; how many lie above a bucket bounds the rank of an item
in it from both sides. Nearly always both bounds of its sum reach as many matches. Of the others,
and of the matches, the ranks are counted in their buckets: for that the scores that can matter are
put beside those of their bucket. A rank far down is counted in the whole row, for some at a time.
"""

from typing import Any, NamedTuple

import numpy as np

from benchmark.ranking.kernels import COLUMNS, bits_of, fetch, jit
from benchmark.ranking.row_kernels import CHUNK, either_high
from benchmark.ranking.threshold_search import COPIES
from benchmark.ranking.whole_list_kernels import LEAST, bisect, forget, upwards

_BUCKETS = 2048
_UNDER, _OVER = -2.0, 4.0  # standard deviations they span; ranks far below hardly differ in share
_SAMPLE = 256
_LINE = 16  # scores in a line of the cache
_CELLS = 4096  # that sums fall into, to look up how many matches they reach
_ROUNDED = 4e-7  # more than float32 rounds off a sum of shares, its bounds and what they reach
_DEEPER = 1.1  # so many times the ranks that can matter have their scores by bucket


class _Items(NamedTuple):
    """Some items in one list."""

    scores: Any  # float32 [size]
    buckets: Any  # int32 [size]


@jit
def _bucket(score: Any, low: Any, factor: Any) -> Any:
    place = (score - low) * factor
    return np.int32(min(max(place, np.float32(0.0)), np.float32(_BUCKETS - 1)))


@jit
def _buckets(scores: Any, first: int, last: int, low: Any, width: float, out: Any) -> None:
    """Write the buckets of ``scores[first:last]``; k begins about ``width * k`` above ``low``."""
    factor, start = np.float32(1 / width), np.uint64(first)
    for x in range(np.uint64(last - first)):
        out[x] = _bucket(scores[start + x], low, factor)


@jit
def _spread(row: Any) -> Any:
    """The mean and the standard deviation of some of the finite scores."""
    total, squares, n = 0.0, 0.0, 0
    for j in range(0, len(row), max(1, len(row) // _SAMPLE)):
        if row[j] > -np.inf:
            total += np.float64(row[j])
            squares += np.float64(row[j]) * np.float64(row[j])
            n += 1
    mean = total / max(n, 1)
    return mean, np.sqrt(max(squares / max(n, 1) - mean * mean, 0.0))


@jit
def _fill(row: Any, absent: int, above: Any, room: Any) -> Any:
    """Count a row's scores by bucket: how many lie above each, and behind them how many there are.

    ``absent`` of the scores are infinite. Returns where the buckets begin and how wide they are.
    """
    mean, spread = _spread(row)
    width = max((_OVER - _UNDER) * spread / _BUCKETS, abs(mean) * 1e-6, 1e-30)
    low = np.float32(mean + _UNDER * spread)
    counts = np.zeros((2, _BUCKETS), np.int32)
    for c in range(0, len(row), CHUNK):
        n = min(CHUNK, len(row) - c)
        _buckets(row, c, c + n, low, width, room)
        for x in range(0, n, COLUMNS):  # rows are in whole tiles
            for y in range(x, x + COLUMNS, _LINE):  # many at once would wait for each other
                fetch(row, c + CHUNK + y)
            for y in range(x, x + COLUMNS, 2):  # a count need not wait for the one before it
                for k in range(np.uint64(2)):
                    counts[k, np.uint64(room[np.uint64(y) + k])] += 1
    n = 0
    for k in range(_BUCKETS - 1, -1, -1):
        above[k + 1] = n
        n += counts[0, k] + counts[1, k]
    above[0] = n - absent
    return low, width


@jit
def _take(row: Any, columns: Any, first: int, last: int, scores: Any) -> None:
    """Write the scores of some columns, and have none gather them."""
    for x in range(first, last):
        scores[x - first] = row[columns[x]]
    forget(row, columns, first, last)


@jit
def _give_back(row: Any, columns: Any, first: int, last: int, scores: Any) -> None:
    """Put back the scores of some columns."""
    for x in range(first, last):
        row[columns[x]] = scores[x - first]


@jit
def _holding(above: Any, rank: int) -> Any:
    """The bucket of an item of some rank, or the lowest one."""
    k = _BUCKETS - 1
    while k > 0 and above[k] < rank:
        k -= 1
    return k


@jit
def _edge(low: Any, width: float, k: int) -> Any:
    """A score that none in bucket k or above is below."""
    # Scores are put in buckets in float32: one bucket more takes in what that rounds.
    return np.float32(low + (k - 1) * width) if k > 1 else LEAST


@jit
def _arrange(some: Any, n: int, lowest: int, above: Any, at: Any, ordered: Any) -> None:
    """Put scores beside those of their bucket: those of k from ``above[k + 1]`` on.

    Those of buckets below ``lowest`` follow and overwrite each other: nothing looks for them.
    """
    for b in range(_BUCKETS):
        at[b] = above[max(b, lowest - 1) + 1]
    for x in range(np.uint64(n)):
        k = np.uint64(some.buckets[x])
        place = at[k]
        ordered[np.uint64(place)] = some.scores[x]
        at[k] = place + 1


@jit
def _share(rank: Any, k: float) -> Any:
    return 1.0 / (k + max(rank, 1))


@jit
def _at_least(x: Any, first: int, last: int, score: Any) -> Any:
    """How many of some scores are at least another."""
    n = np.int32(0)
    for j in range(np.uint64(first), np.uint64(last)):  # in int32: a vector holds twice as many
        n = np.int32(n + np.int32(x[j] >= score))
    return n


@jit
def _count_in_row(row: Any, scores: Any, n: int, out: Any) -> None:
    """How many scores of a whole row are at least each of ``n`` others, four or two at a time."""
    scores[n : n + 3] = np.inf
    for x in range(0, n, 4):
        a, b, c, d = scores[x], scores[x + 1], scores[x + 2], scores[x + 3]
        i = j = k = m = np.int32(0)
        if n - x > 2:
            for y in range(np.uint64(len(row))):
                score = row[y]
                i, j = np.int32(i + np.int32(score >= a)), np.int32(j + np.int32(score >= b))
                k, m = np.int32(k + np.int32(score >= c)), np.int32(m + np.int32(score >= d))
        else:
            for y in range(np.uint64(len(row))):
                score = row[y]
                i, j = np.int32(i + np.int32(score >= a)), np.int32(j + np.int32(score >= b))
        out[x], out[x + 1], out[x + 2], out[x + 3] = i, j, k, m


@jit
def _sums(
    rows: Any, room: Any, lowest: Any, some: Any, n: int, k: float, exact: int, least: Any,
    most: Any,
) -> None:  # fmt: skip
    """Write the sums of the shares of ``n`` items, or bounds of them.

    Scores in buckets below ``lowest`` are not ordered: their shares are bounded, or where they must
    be ``exact`` all scores are looked at.
    """
    deep, scores, ranks = room.deep
    for x in range(n):
        least[x] = most[x] = 0.0
    for s in range(2):
        waiting = 0
        for x in range(n):
            score, b = some[s].scores[x], some[s].buckets[x]
            best, worst = np.int64(room.above[s][b + 1]) + 1, np.int64(room.above[s][b])
            if b >= lowest[s]:
                worst = best - 1 + _at_least(room.ordered[s], best - 1, worst, score)
                best = worst
            elif exact:
                deep[waiting], scores[waiting] = x, score
                waiting += 1
                continue
            least[x] += _share(worst, k)
            most[x] += _share(best, k)
        _count_in_row(rows[s], scores, waiting, ranks)
        for y in range(waiting):
            share = _share(np.int64(ranks[y]), k)
            least[deep[y]] += share
            most[deep[y]] += share


@jit
def _worst(k: float, least: Any, most: int) -> Any:
    """The last rank up to ``most`` whose share is at least ``least``."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) >> 1
        if _share(middle, k) >= least:
            low = middle
        else:
            high = middle - 1
    return low


@jit
def _shares(above: Any, k: float, shares: Any) -> None:
    """Bound the shares in each bucket: those in b are above ``shares[b]``, up to that of b + 1."""
    for b in range(np.uint64(_BUCKETS + 1)):
        shares[b] = 1 / (k + 1.0 + np.float64(above[b]))


@jit
def _cells(sums: Any, most: float, reached: Any) -> Any:
    """How many of the ascending sums lie in cells below each; the bits' shift and first cell.

    A cell has the float32 values up to ``most`` whose bits agree after a shift: one that is not
    negative has the greater bits the greater it is.
    """
    first, last, shift = bits_of(np.float32(sums[0])), bits_of(np.float32(most)), 0
    while (last >> shift) - (first >> shift) > _CELLS - 3:
        shift += 1
    base, c = np.int64(first >> shift), 0
    for k in range(len(sums)):
        end = np.int64(bits_of(np.float32(sums[k])) >> shift) - base
        while c <= end:
            reached[c] = k
            c += 1
    while c < _CELLS:
        reached[c] = len(sums)
        c += 1
    return shift, base


@jit
def _deepest(room: Any, n_own: int, k: float, n_items: int) -> Any:
    """A rank that any item has in one list at least that may stand above the lowest match."""
    (a, b), (left, right), worst = room.above, room.own, np.inf
    for x in range(n_own):
        worst = min(
            worst,
            _share(np.int64(a[left.buckets[x]]), k) + _share(np.int64(b[right.buckets[x]]), k),
        )
    return 1 + _worst(k, 0.5 * worst, n_items + 1)  # halves are exact


@jit
def _count_clear(room: Any, n: int, k: float, sums: Any, counts: Any) -> Any:
    """Count the items of which both bounds reach as many sums; the others are listed, how many."""
    left, right, others = room.near[0].buckets, room.near[1].buckets, room.others
    (one, two), (low, end, reached) = room.shares, room.cells
    shift, base = _cells(sums, 2 * _share(np.int64(1), k) * (1 + 4 * _ROUNDED), reached)
    first, found, zero = np.int32(base), 0, np.int32(0)
    less, more = np.float32(1 - _ROUNDED), np.float32(1 + _ROUNDED)
    for c in range(0, n, CHUNK):
        size = np.uint64(min(CHUNK, n - c))
        for x in range(size):  # in parts, of which the compiler makes vector instructions
            p, q = np.uint64(left[np.uint64(c) + x]), np.uint64(right[np.uint64(c) + x])
            low[x] = np.int32(bits_of((one[p] + two[q]) * less) >> shift)
            p, q = p + np.uint64(1), q + np.uint64(1)
            end[x] = np.int32(bits_of((one[p] + two[q]) * more) >> shift)
        for x in range(size):
            low[x] = max(np.int32(low[x] - first), zero)
            end[x] = max(np.int32(end[x] - first), np.int32(-1))
        for x in range(size):
            slot = np.uint64(reached[np.uint64(low[x])])
            if slot == np.uint64(reached[np.uint64(end[x] + 1)]):
                counts[slot * np.uint64(COPIES) + (x & np.uint64(COPIES - 1))] += 1
            else:
                others[np.uint64(found)] = np.uint64(c) + x
                found += 1
    return found


@jit
def _pick(some: Any, places: Any, n: int) -> None:
    """Keep the items of some ascending places alone, in front."""
    for s in range(2):
        for x in range(n):
            some[s].scores[x] = some[s].scores[places[x]]
            some[s].buckets[x] = some[s].buckets[places[x]]


class _Room(NamedTuple):
    """Arrays to work in; pairs have one for each list."""

    above: Any  # int32 [buckets + 1]
    shares: Any  # bounds of those of the buckets' items, float32 [buckets + 1]
    own: Any  # the matches
    near: Any  # what stands high in either list
    ordered: Any  # scores by bucket, those of k from ``above[k + 1]`` on
    sums: Any  # bounds of them, float64
    others: Any  # places of items, int32
    at: Any  # int32
    cells: Any
    deep: Any  # places, scores and ranks of items whose ranks take a whole row


def _room(size: int, most: int) -> _Room:
    """Arrays for so many items and matches."""
    whole, part = np.float32, np.int32

    def pair(n: int, kind: Any) -> Any:
        return np.empty(n, kind), np.empty(n, kind)

    def items(n: int) -> Any:
        return tuple(_Items(np.empty(n + 16, whole), np.empty(n, part)) for _ in range(2))

    return _Room(
        pair(_BUCKETS + 1, part), pair(_BUCKETS + 1, whole), items(most),
        items(size), pair(size, whole), pair(size, np.float64), np.empty(size + 1, part),
        np.empty(max(_BUCKETS, CHUNK), part),
        (np.empty(CHUNK, part), np.empty(CHUNK, part), np.empty(_CELLS, part)),
        (np.empty(size, part), np.empty(size + 3, whole), np.empty(size + 3, part)),
    )  # fmt: skip


def by_ranks(
    one: Any, two: Any, n_items: int, matches: Any, gone: Any, k: float, keys: Any, above: Any
) -> None:
    """The sum of 1 / (k + rank) in both rows."""
    room = _room(one.shape[1], int(matches.sizes.max()))
    _by_ranks(one, two, n_items, matches, gone, k, room, keys, above)


@jit
def _by_ranks(
    one: Any, two: Any, n_items: int, matches: Any, gone: Any, k: float, room: Any, keys: Any,
    above: Any,
) -> None:  # fmt: skip
    lows, widths, lowest = np.empty(2, np.float32), np.empty(2), np.empty(2, np.int64)
    # A literal among arguments would have numba compile a function once more.
    start = np.int64(0)
    edges, (least, most), others = np.empty(2, np.float32), room.sums, room.others
    for i in range(len(one)):
        first, last = matches.offset[i], matches.offset[i + 1]
        if first == last:
            continue
        rows, n_own = (one[i], two[i]), last - first
        sums, counts = keys[first:last], np.zeros(COPIES * (n_own + 1), np.int64)
        absent = one.shape[1] - n_items + gone.offset[i + 1] - gone.offset[i]
        for s in range(2):
            forget(rows[s], gone.values, gone.offset[i], gone.offset[i + 1])
            lows[s], widths[s] = _fill(rows[s], absent, room.above[s], room.at)
            _take(rows[s], matches.values, first, last, room.own[s].scores)
            _buckets(room.own[s].scores, start, n_own, lows[s], widths[s], room.own[s].buckets)
            _shares(room.above[s], k, room.shares[s])
        rank = int(_DEEPER * _deepest(room, n_own, k, n_items))
        for s in range(2):
            lowest[s] = _holding(room.above[s], rank)
            edges[s] = _edge(lows[s], widths[s], lowest[s])
        n = either_high(*rows, edges[0], edges[1], room.near[0].scores, room.near[1].scores)
        every = n + n_own  # matches have places among the ordered scores, but are not counted
        for s in range(2):
            _give_back(rows[s], matches.values, first, last, room.own[s].scores)
            room.near[s].scores[n:every] = room.own[s].scores[:n_own]
            _buckets(room.near[s].scores, start, every, lows[s], widths[s], room.near[s].buckets)
            _arrange(room.near[s], every, lowest[s], room.above[s], room.at, room.ordered[s])
        _sums(rows, room, lowest, room.own, n_own, k, np.int64(1), least, most)
        for x in range(n_own):
            sums[x] = most[x]
        sums.sort()
        n = _count_clear(room, n, k, sums, counts)
        for exact in range(2):
            _pick(room.near, others, n)
            _sums(rows, room, lowest, room.near, n, k, exact, least, most)
            some, n = n, 0
            for x in range(some):
                slot = bisect(sums, most[x])
                clear = slot == 0 or sums[slot - 1] <= least[x]
                counts[COPIES * slot] += int(clear)
                others[n] = x
                n += int(not clear)
        upwards(counts, COPIES, n_own, above[first:last])
