"""Agreement of two orders: tau-b, weighted tau, their draws, and what seeds alone allow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
_AT_ONCE = 1 << 18
"""Pairs that are compared at once: what a processor keeps near."""


def same_order(first: float, second: float) -> bool:
    """Compare the signs of two methods' differences in two places; a tie has none.

    Example:
        >>> same_order(0.1, 0.02), same_order(0.1, -0.2), same_order(-0.1, 0.0)
        (True, False, False)
    """
    return (first > 0 and second > 0) or (first < 0 and second < 0)


def taus(left: Floats, right: Floats, *, weighted: bool = False) -> Floats:
    """Kendall's tau-b of many pairs of scores at once, ``[draws, n]`` each; NaN where constant.

    scipy takes one pair a call, which thousands of draws would feel; a test holds this to it.
    With ``weighted`` as ``scipy.stats.weightedtau``: the larger scores count more, hyperbolically,
    mean over the ranks by either side (Vigna, 2015).
    """
    some = max(1, _AT_ONCE // left.shape[1] ** 2)
    parts = [_sums(left[i : i + some], right[i : i + some]) for i in range(0, len(left), some)]
    over, xx, yy = np.concatenate(parts, axis=1)
    if not weighted:
        return _tau(over, xx, yy, np.ones_like(left))
    sides = ((left, right), (right, left))
    one, other = (_tau(over, xx, yy, 1 / (1 + _ranks(*side))) for side in sides)
    mean: Floats = (one + other) / 2
    return mean


def _sums(left: Floats, right: Floats) -> Ints:
    """Whole-number signs of items with all others: both sides, left, right ``[3, draws, n]``."""
    x, y = _signs(left), _signs(right)
    pairs = ((x, y), (x, x), (y, y))
    return np.stack([np.einsum("dij,dij->di", a, b, dtype=np.int32) for a, b in pairs])


def _signs(scores: Floats) -> NDArray[np.int8]:
    """1 where an item is above another one, -1 below, 0 if alike: ``[draws, n, n]``."""
    above = scores[:, :, None] > scores[:, None, :]
    signs: NDArray[np.int8] = above.view(np.int8) - above.swapaxes(1, 2).view(np.int8)
    return signs


def _tau(over: Ints, xx: Ints, yy: Ints, weights: Floats) -> Floats:
    """Of sums by item; a pair weighs what its two items do together."""
    weighed = [(weights * each).sum(axis=1) for each in (over, xx, yy)]
    with np.errstate(invalid="ignore", divide="ignore"):
        tau: Floats = weighed[0] / np.sqrt(weighed[1] * weighed[2])
    return tau


def _ranks(x: Floats, y: Floats) -> Floats:
    """From 0 for the largest by ``x``; of equal ones the larger by ``y``, then the later."""
    later = np.broadcast_to(np.arange(x.shape[1]), x.shape)
    order = np.lexsort((later, y, x), axis=1)[:, ::-1]
    ranks = np.empty(x.shape)
    np.put_along_axis(ranks, order, np.arange(x.shape[1], dtype=np.float64)[None], axis=1)
    return ranks


def drawn_scores(
    scores: Floats, n: int, rng: np.random.Generator, *, widened: bool = False
) -> Floats:
    """Means over seeds drawn again, ``[n, methods]`` of ``[methods, seeds]``.

    ``widened`` gives deviations their unbiased size, which draws of few seeds understate.
    """
    k = scores.shape[1]
    seeds = rng.integers(0, k, (n, k))
    mean = scores.mean(axis=1)
    drawn: Floats = scores[:, seeds].mean(axis=2).T
    return mean + (drawn - mean) * math.sqrt(k / (k - 1)) if widened and k > 1 else drawn


def mean_places(boards: Sequence[Floats]) -> Floats:
    """Places of methods, mean over boards of ``[n, methods]``: higher is better, 0 the middle."""
    places: Floats = np.mean([_signs(b).sum(axis=2, dtype=np.int32) / 2 for b in boards], axis=0)
    return places


def tau_draws(
    left: Sequence[Floats], right: Sequence[Floats], n: int, rng: np.random.Generator, *,
    weighted: bool = False,
) -> Floats:  # fmt: skip
    """Tau with seeds of each board and methods of all drawn again; without what has none.

    Several boards of a side order methods by their mean place.
    """
    methods = rng.integers(0, len(left[0]), (n, len(left[0])))
    sides = []
    for boards in (left, right):
        drawn = [drawn_scores(board, n, rng) for board in boards]
        every = drawn[0] if len(drawn) == 1 else mean_places(drawn)
        sides.append(np.take_along_axis(every, methods, 1))
    found = taus(*sides, weighted=weighted)
    return found[np.isfinite(found)]


def ceiling(scores: Floats, n: int, rng: np.random.Generator) -> float | None:
    """Mean tau of two repetitions of one board with other seeds; None of a single seed."""
    if scores.shape[1] < 2:
        return None
    x, y = (drawn_scores(scores, n, rng, widened=True) for _ in range(2))
    found = taus(x, y)
    known = found[np.isfinite(found)]
    return float(known.mean()) if len(known) else None
