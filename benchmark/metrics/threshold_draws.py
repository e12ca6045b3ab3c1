"""TAR and TPIR in draws of identities, the threshold found anew in each.

Identities are drawn with replacement, those of genuine and of impostor scores alike. A threshold is
as uncertain as the impostors above it are few: with fewer than :data:`FEWEST` there are no draws.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics import intervals
from benchmark.metrics.identification import Search
from benchmark.metrics.verification import allowed
from benchmark.ranking import arrays
from benchmark.ranking.arrays import Ints, Values

FEWEST = 30
"""Impostors that a target must accept for its threshold to have an interval."""
_STEPS = 128  # thresholds that a draw may have, from a quarter to four times the impostors


@dataclass(frozen=True)
class Impostors:
    """Impostor scores, and whose they are; identities are numbers from 0 on."""

    scores: NDArray[Any]  # [m]
    # places of some scores [k] -> the identities of each, [1, k], or [2, k] of both sides of a pair
    people: Callable[[Ints], Ints]
    totals: Values  # scores of each identity, on either side, [n_people]


def threshold_draws(
    genuine: Any, who: Any, impostors: Impostors, target: float, *, n: int = intervals.DRAWS,
    seed: int = 0,
) -> Values | None:  # fmt: skip
    """The share of genuine scores accepted at a target rate, in ``n`` draws of identities, ``[n]``.

    A genuine score counts as often as its identity is drawn. An impostor of identities ``i`` and
    ``j`` counts ``1 + s (w_i + w_j - 2)`` times: such draws vary as the accepted impostors do by
    both identities, but count each pair's own luck twice, so ``s`` shrinks them to the variance
    clustered by both sides and not by the pair (Cameron, Gelbach and Miller 2011, eq. 2.11). With
    one identity a score, it counts ``w_i`` times. The threshold is where the weighted share of
    impostors reaches the target, on straight lines between some of the impostors' scores.

    Args:
        genuine: Scores, ``[g]``; -inf for one that is wrong at any threshold.
        who: The identity of each, a number below ``len(impostors.totals)``, ``[g]``.
        impostors: The impostors.
        target: FAR or FPIR, in (0, 1].
        n: Draws.
        seed: Of the draws; one seed draws the same identities for every method.

    Returns:
        ``None`` where the target accepts fewer than :data:`FEWEST` impostors.
    """
    good = np.asarray(genuine, dtype=np.float64)
    people = arrays.one_per_row("who", who, len(good)).astype(np.int64)
    m, size = len(impostors.scores), len(impostors.totals)
    k = allowed(target, m)
    if k < FEWEST:
        return None
    places, edges = _edges(impostors.scores, k)
    sides = impostors.people(places)
    steps = _slots(edges, impostors.scores[places])
    accepted = np.bincount(steps, minlength=len(edges))[: len(edges)].cumsum()
    by_person = sum(_table(side, steps, size, len(edges)) for side in sides)
    above = steps <= int(np.searchsorted(accepted, k, side="right")) - 1
    shrink = _shrinkage(sides[:, above], k / m, impostors.totals)
    hits = _table(people, _slots(edges, good), size, len(edges))
    counts = np.bincount(people, minlength=size)
    shares = []
    for w in intervals.weights(size, n, seed):
        more = shrink * (w - 1)
        rates = (accepted + more @ by_person) / (m + more @ impostors.totals)[:, None]
        # Draws of few identities may lack everyone with a genuine score.
        total = np.maximum(w @ counts, 1e-12)
        shares.append(
            _at(np.maximum.accumulate(rates, axis=1), (w @ hits) / total[:, None], target)
        )
    return np.concatenate(shares)


def identification_draws(
    result: Search, who: Any, n_people: int, target: float, *, n: int = intervals.DRAWS,
    seed: int = 0,
) -> Values | None:  # fmt: skip
    """TPIR at a target FPIR in draws of identities, as :func:`threshold_draws`.

    ``who`` is the identity of each probe, a number below ``n_people``, ``[n_probe]``; mated and
    non-mated probes of one identity are drawn together.
    """
    mated = result.mated
    people = arrays.one_per_row("who", who, len(mated)).astype(np.int64)
    outside = people[~mated]
    impostors = Impostors(
        result.best[~mated], lambda places: outside[None, places],
        np.bincount(outside, minlength=n_people).astype(np.float64),
    )  # fmt: skip
    own = np.where(result.rank[mated] == 1, result.own[mated], -np.inf)
    return threshold_draws(own, people[mated], impostors, target, n=n, seed=seed)


def _edges(scores: NDArray[Any], k: int) -> tuple[Ints, Values]:
    """Places of the highest scores, and thresholds among them, descending; accepted is above."""
    m = len(scores)
    n = min(m, 4 * k + 1)
    places = np.argpartition(scores, m - n)[m - n :] if n < m else np.arange(m)
    ordered = np.sort(scores[places].astype(np.float64))[::-1]
    ranks = np.rint(k * np.geomspace(0.25, 4, _STEPS + 1)).astype(np.int64)
    ranks = np.unique(np.concatenate([[0, k], ranks]))
    chosen = ordered[ranks[ranks < n]]
    if n == m:
        chosen = np.append(chosen, -np.inf)
    return places.astype(np.int64), np.unique(chosen)[::-1]


def _slots(edges: Values, scores: NDArray[Any]) -> Ints:
    """The first threshold that accepts each score; ``len(edges)`` where none does."""
    return np.searchsorted(-edges, -scores.astype(np.float64), side="right").astype(np.int64)


def _table(people: Ints, steps: Ints, size: int, n: int) -> Values:
    """Scores of each identity that each threshold accepts, ``[size, n]``."""
    flat = np.bincount(people * (n + 1) + steps, minlength=size * (n + 1))
    return flat.reshape(size, n + 1)[:, :n].cumsum(axis=1).astype(np.float64)


def _shrinkage(sides: Ints, rate: float, totals: Values) -> float:
    """By how much draws must be shrunk to vary as accepted pairs do, from 0.7 to 1."""
    if len(sides) == 1:
        return 1.0
    rest = sum(np.bincount(side, minlength=len(totals)) for side in sides) - rate * totals
    drawn = float((rest**2).sum())
    pairs = sides.min(axis=0) * len(totals) + sides.max(axis=0)
    alone = float((np.unique(pairs, return_counts=True)[1].astype(np.float64) ** 2).sum())
    return math.sqrt(min(1.0, max(drawn - alone, alone) / drawn)) if drawn > 0 else 1.0


def _at(rates: Values, shares: Values, target: float) -> Values:
    """Each draw's share where its rate, which ascends, reaches the target."""
    rows = np.arange(len(rates))
    left = (rates <= target * (1 + 1e-12)).sum(axis=1) - 1
    left = np.clip(left, 0, rates.shape[1] - 2)
    low, high = rates[rows, left], rates[rows, left + 1]
    part = np.clip((target - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)
    # A rate that only just is the target is at its threshold, not on the way to the next.
    share: Values = shares[rows, left]
    return share + part * (shares[rows, left + 1] - share)
