"""Uses of a block of scores: listed pairs, all pairs, the best (numba part)."""

from typing import Any

import numpy as np

from benchmark.ranking.kernels import jit


@jit
def by_row(rows: Any, n: int) -> Any:
    """Pairs ordered by row, and where each row's pairs begin."""
    start = np.zeros(n + 1, np.int64)
    for row in rows:
        start[row + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    place = start.copy()
    order = np.empty(len(rows), np.int32)
    for p in range(len(rows)):
        order[place[rows[p]]] = p
        place[rows[p]] += 1
    return start, order


@jit
def pick(
    scores: Any, first: int, last: int, start: Any, order: Any, columns: Any, out: Any
) -> None:
    """The scores of the pairs of rows ``first`` ... ``last - 1``."""
    for i in range(first, last):
        for p in range(start[i], start[i + 1]):
            out[order[p]] = scores[i - first, columns[order[p]]]


@jit
def search(scores: Any, probe: Any, subject: Any, rank: Any, own: Any, best: Any) -> None:
    """Rank of each probe's own subject, where it has one, its score and the best score."""
    for i in range(len(probe)):
        top = top_own = np.float32(-np.inf)
        for j in range(len(subject)):
            top = max(top, scores[i, j])
            if subject[j] == probe[i]:
                top_own = max(top_own, scores[i, j])
        best[i] = top
        if top_own > -np.inf:
            own[i] = top_own
            above = np.int64(0)
            for j in range(len(subject)):
                above += np.int64(scores[i, j] >= top_own and subject[j] != probe[i])
            rank[i] = 1 + above


@jit
def templates(
    x: Any, y: Any, weight: Any, order: Any, media: Any, start: Any, first: int,
    last: int, out: Any,
) -> None:  # fmt: skip
    """Templates ``first`` ... ``last - 1``: means of media, summed and normalised."""
    dim = x.shape[1]
    total, mean = np.empty(dim), np.empty(dim)
    for t in range(first, last):
        total[:] = 0.0
        a = start[t]
        while a < start[t + 1]:
            b = a
            mean[:] = 0.0
            while b < start[t + 1] and media[order[b]] == media[order[a]]:
                i = order[b]
                for k in range(dim):
                    value = np.float64(x[i, k])
                    if len(y):
                        value += np.float64(y[i, k])
                    mean[k] += value * weight[i]
                b += 1
            total += mean / (b - a)
            a = b
        length = 0.0
        for k in range(dim):
            length += total[k] * total[k]
        length = np.sqrt(length)
        for k in range(dim):
            out[t, k] = np.float32(total[k] / length) if length > 0 else np.float32(0.0)
