"""Scores that several items of a row have, found without sorting the row.

A score sets a bit by its hash. Where a bit is set already, the row may hold a score twice: only
scores of such bits are sorted, which are few where scores are real numbers.
"""

from typing import Any

import numpy as np

from benchmark.ranking.kernels import jit

_BITS_AN_ITEM = 64  # of so many bits a row of n items sets a bit twice about n / 128 times
_MIX = np.uint64(2654435761)  # 2^32 over the golden ratio (Knuth, 6.4)
_LOW = np.uint64(0xFFFFFFFF)
_MINUS_ZERO = np.uint32(0x80000000)


@jit
def _hash(score: Any, shift: Any) -> Any:
    """Of the number's bits; both zeros have those of one."""
    if score == _MINUS_ZERO:
        return np.uint64(0)
    return ((np.uint64(score) * _MIX) & _LOW) >> shift  # products are of 64 bits


@jit
def ties(rows: Any, n: int, out: Any, query: Any, scores: Any) -> Any:
    """Write the scores that come more than once among the first ``n`` of each row, ascending.

    Args:
        rows: Scores, float32 ``[k, stride]``.
        n: Items of a row.
        out: Room for ``n`` scores.
        query: Row of each score that is written; room for ``k * n // 2``.
        scores: The scores, likewise.

    Returns:
        How many are written.
    """
    width, shift = np.int64(64), np.uint64(26)
    while width < n * _BITS_AN_ITEM and shift > np.uint64(6):
        width, shift = width * 2, shift - np.uint64(1)
    seen, twice = np.zeros(width // 32, np.uint32), np.zeros(width // 32, np.uint32)
    one, five, low = np.uint32(1), np.uint64(5), np.uint64(31)
    written = np.int64(0)
    for i in range(len(rows)):
        row, bits = rows[i], rows[i].view(np.uint32)
        seen[:] = 0
        collided = False
        for j in range(np.uint64(n)):
            h = _hash(bits[j], shift)
            word, bit = h >> five, one << np.uint32(h & low)
            if seen[word] & bit:
                twice[word] |= bit
                collided = True
            seen[word] |= bit
        if not collided:
            continue
        found = np.int64(0)
        for j in range(np.uint64(n)):
            h = _hash(bits[j], shift)
            if twice[h >> five] & (one << np.uint32(h & low)):
                out[found] = row[j]
                found += 1
        twice[:] = 0
        some = out[:found]
        some.sort()
        for j in range(1, found):
            if some[j] == some[j - 1] and (j == 1 or some[j - 1] != some[j - 2]):
                query[written], scores[written] = i, some[j]
                written += 1
    return written
