"""Rankings by the sum of reciprocal ranks in two rows of scores, without sorting either.

A row's scores fall into many narrow buckets; how many lie above a bucket bounds the rank of an item
in it from both sides. Nearly always both bounds of its sum reach as many matches. Of the others,
and of the matches, the ranks are counted in their buckets: for that the scores that can matter are
put beside those of their bucket.
"""

from typing import Any, NamedTuple

import numpy as np

from benchmark.ranking.kernels import bits_of, jit
from benchmark.ranking.row_kernels import CHUNK, high
from benchmark.ranking.whole_list_kernels import LEAST, bisect, forget, upwards

_BUCKETS = 2048
_SAMPLE = 512
_CELLS = 4096  # that sums fall into, to look up how many matches they reach
_ROUNDED = 2e-7  # more than float32 rounds off a share
_DEEPER = 1.25  # so many times the ranks that can matter have their scores by bucket


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
    width = max(10 * spread / _BUCKETS, abs(mean) * 1e-6, 1e-30)
    low = np.float32(mean - 4.5 * spread)
    counts = np.zeros((4, _BUCKETS), np.int32)
    for c in range(0, len(row), CHUNK):
        n = min(CHUNK, len(row) - c)
        _buckets(row, c, c + n, low, width, room)
        for x in range(0, n, 4):  # a count need not wait for the one before it
            for k in range(np.uint64(4)):
                counts[k, np.uint64(room[np.uint64(x) + k])] += 1
    n = 0
    for k in range(_BUCKETS - 1, -1, -1):
        above[k + 1] = n
        n += counts[0, k] + counts[1, k] + counts[2, k] + counts[3, k]
    above[0] = n - absent
    return low, width


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
def _gather(rows: Any, edges: Any, near: Any, places: Any, over: Any) -> Any:
    """Write both scores of what reaches its edge in either row; returns how many."""
    (a, b), n = rows, 0
    for c in range(0, len(a), CHUNK):
        size = min(CHUNK, len(a) - c)
        for x in range(np.uint64(size)):
            j = np.uint64(c) + x
            over[x] = max(a[j] - edges[0], b[j] - edges[1])
        some = high(over, 0, size, np.float32(0.0), places)
        for x in range(np.uint64(some)):
            j = np.uint64(c) + np.uint64(places[x])
            near[0].scores[np.uint64(n) + x] = a[j]
            near[1].scores[np.uint64(n) + x] = b[j]
        n += some
    return n


@jit
def _arrange(some: Any, n: int, above: Any, at: Any, ordered: Any) -> None:
    """Put scores beside those of their bucket: those of k from ``above[k + 1]`` on."""
    for b in range(_BUCKETS):
        at[b] = above[b + 1]
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
def _sums(
    rows: Any, room: Any, lowest: Any, some: Any, n: int, k: float, exact: int, least: Any,
    most: Any,
) -> None:  # fmt: skip
    """Write the sums of the shares of ``n`` items, or bounds of them.

    Scores in buckets below ``lowest`` are not ordered: their shares are bounded, or where they must
    be ``exact`` all scores are looked at.
    """
    for x in range(n):
        least[x] = most[x] = 0.0
    for s in range(2):
        for x in range(n):
            score, b = some[s].scores[x], some[s].buckets[x]
            first, last = np.int64(room.above[s][b + 1]), np.int64(room.above[s][b])
            if b >= lowest[s]:
                worst = first + _at_least(room.ordered[s], first, last, score)
                best = worst
            elif exact:
                worst = _at_least(rows[s], np.int64(0), len(rows[s]), score)
                best = worst
            else:
                worst, best = last, first + 1
            least[x] += _share(worst, k)
            most[x] += _share(best, k)


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
def _bounds(above: Any, k: float, most: Any, least: Any) -> None:
    """The largest and the least share of the items in each bucket, float32."""
    for b in range(np.uint64(_BUCKETS)):
        better = np.float64(above[b + np.uint64(1)]) + 1.0
        most[b] = (1 + _ROUNDED) / (k + better)
        least[b] = (1 - _ROUNDED) / (k + max(np.float64(above[b]), 1.0))


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
    (most_a, most_b), (least_a, least_b), (low, end, reached) = room.most, room.least, room.cells
    shift, base = _cells(sums, 2 * _share(np.int64(1), k) * (1 + 4 * _ROUNDED), reached)
    first, found, zero = np.int32(base), 0, np.int32(0)
    for c in range(0, n, CHUNK):
        size = np.uint64(min(CHUNK, n - c))
        for x in range(size):  # in parts, of which the compiler makes vector instructions
            p, q = np.uint64(left[np.uint64(c) + x]), np.uint64(right[np.uint64(c) + x])
            low[x] = np.int32(bits_of(least_a[p] + least_b[q]) >> shift)
            end[x] = np.int32(bits_of(most_a[p] + most_b[q]) >> shift)
        for x in range(size):
            low[x] = max(np.int32(low[x] - first), zero)
            end[x] = max(np.int32(end[x] - first), np.int32(-1))
        for x in range(size):
            slot = reached[np.uint64(low[x])]
            same = slot == reached[np.uint64(end[x] + 1)]
            counts[np.uint64(slot)] += np.int64(same)
            others[np.uint64(found)] = np.uint64(c) + x
            found += int(not same)
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
    most: Any  # the largest share of an item in each bucket, float32
    least: Any
    own: Any  # the matches
    near: Any  # what stands high in either list
    ordered: Any  # scores by bucket, those of k from ``above[k + 1]`` on
    sums: Any  # bounds of them, float64
    others: Any  # places of items, int32
    places: Any  # of a chunk, int32
    at: Any
    over: Any
    cells: Any


def _room(size: int, most: int) -> _Room:
    """Arrays for so many items and matches."""

    def pair(n: int, kind: Any) -> Any:
        return np.empty(n, kind), np.empty(n, kind)

    def items(n: int) -> Any:
        return tuple(_Items(np.empty(n, np.float32), np.empty(n, np.int32)) for _ in range(2))

    whole, part = np.float32, np.int32
    return _Room(
        pair(_BUCKETS + 1, part), pair(_BUCKETS, whole), pair(_BUCKETS, whole), items(most),
        items(size), pair(size, whole), pair(size, np.float64), np.empty(size + 1, part),
        np.empty(CHUNK + 16, part), np.empty(max(_BUCKETS, CHUNK), part), np.empty(CHUNK, whole),
        (np.empty(CHUNK, part), np.empty(CHUNK, part), np.empty(_CELLS, part)),
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
        sums, counts = keys[first:last], np.zeros(n_own + 1, np.int64)
        absent = one.shape[1] - n_items + gone.offset[i + 1] - gone.offset[i]
        for s in range(2):
            forget(rows[s], gone.values, gone.offset[i], gone.offset[i + 1])
            lows[s], widths[s] = _fill(rows[s], absent, room.above[s], room.at)
            for x in range(n_own):
                room.own[s].scores[x] = rows[s][matches.values[first + x]]
            _buckets(room.own[s].scores, start, n_own, lows[s], widths[s], room.own[s].buckets)
            _bounds(room.above[s], k, room.most[s], room.least[s])
        rank = int(_DEEPER * _deepest(room, n_own, k, n_items))
        for s in range(2):
            lowest[s] = _holding(room.above[s], rank)
            edges[s] = _edge(lows[s], widths[s], lowest[s])
        n = _gather(rows, edges, room.near, room.places, room.over)
        for s in range(2):
            _buckets(room.near[s].scores, start, n, lows[s], widths[s], room.near[s].buckets)
            _arrange(room.near[s], n, room.above[s], room.at, room.ordered[s])
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
                clear = slot == bisect(sums, least[x])
                counts[slot] += int(clear)
                others[n] = x
                n += int(not clear)
        for x in range(n_own):  # the matches themselves are among the items
            counts[bisect(sums, sums[x])] -= 1
        upwards(counts, 1, n_own, above[first:last])
