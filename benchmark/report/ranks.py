"""Ranks of methods by one score, and how many of them cannot be told apart.

The rule, as :data:`RULE` states it for readers. Nothing here knows a page or a table.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from benchmark.metrics.statistics import mean_score

LEAST_MODELS = 3
"""A method measured on fewer old models than this has no rank."""

ROUNDING = 1e-6
"""Difference of a method to doing without any that float32 scores of one list make: converted and
back, a few items of nearly equal scores change places."""

RULE = (
    "A board ranks by what its protocol asks: while a gallery is backfilled, by the area under the "
    "curve; in a chain of updates, by queries of the last model in the gallery of the first; of "
    "templates compared one to one, by the true accept rate; otherwise by queries of the new model "
    "in the gallery as it stands on the day of the update. The score is the mean over the seeds "
    "that at least half of the other methods have; where no seed has so many, over those that most "
    "of them have.",
    "A seed is a pair of an old and a new model. With fewer than three there is no rank, no "
    "interval and no verdict: another old model may turn the order round.",
    "A method that lacks the score, or one of those seeds, has no rank. What is missing never "
    "counts in anybody's favour.",
    "A method that does not beat doing without any is not ranked either: keeping the old model, "
    "and where the gallery is backfilled, the new model alone and items in random order.",
    "Equal scores share a rank, and the next one is left out: 1, 2, 2, 4.",
    "Two methods are tied if the 95 % interval of their difference over the seeds that count "
    "(Student's t) does not leave out zero. The interval of a rank goes from one more than the "
    "number of methods above it beyond that interval to the place above all that are below it so.",
    "Bounds, the independent model and controls have no rank. Published numbers never do. Nor has "
    "a method with a record whose old model is not that of the others of its seed, by the hash of "
    "its weights: a difference would hold that of two old models, too.",
    "Classes that the new model saw in training and classes that it never saw have boards of their "
    "own; no rank, mean or recommendation mixes them.",
)
"""The rule of the ranks for readers, sentence by sentence."""

Values = Mapping[str, Mapping[int, float]]
"""Method -> seed -> score."""


@dataclass(frozen=True)
class RankPlace:
    """A method's place by one score."""

    method: str
    score: float | None  # mean over the seeds that count; None where one is missing
    rank: int | None  # from 1; None where there is none
    tied: int = 0  # how many other ranked methods cannot be told apart from it
    # first and last rank that these leave open; None without a rank
    span: tuple[int, int] | None = None
    seeds: frozenset[int] = frozenset()  # those that count; the score and the rank are over them


def places(
    values: Values, *, higher: bool = True, reference: Mapping[int, float] | None = None
) -> dict[str, RankPlace]:
    """Every method's place by one score, of records of one protocol, track and setting.

    Values are of those that may have a rank, a method may have none; who is no better than the
    ``reference``, seed -> score without any method, has no rank. Ranked ones come first, best
    first, then those with a score alone, then the others.
    """
    count = Counter(seed for mine in values.values() for seed in mine)
    # Methods without any value, where all refuse a metric, say nothing about seeds.
    n = sum(map(bool, values.values()))
    seeds = {method: _seeds(mine, count, n) for method, mine in values.items()}
    # Scores that are equal but for rounding share a rank.
    scores = {m: round(_mean(values[m], of), 12) for m, of in seeds.items() if of}
    sign = 1.0 if higher else -1.0

    def may(method: str) -> bool:
        known = [s for s in seeds[method] if reference is not None and s in reference]
        low = _mean(reference, frozenset(known)) if reference is not None and known else None
        mine = _mean(values[method], frozenset(known)) if known else None
        better = low is None or mine is None or sign * (mine - low) > ROUNDING
        return len(seeds[method]) >= LEAST_MODELS and better

    in_order = sorted(scores, key=lambda m: (-sign * scores[m], m.partition(":")))
    ranked = [method for method in in_order if may(method)]
    counted = {m: {s: sign * values[m][s] for s in of} for m, of in seeds.items()}
    sides = {pair: _side(*(counted[m] for m in pair)) for pair in combinations(ranked, 2)}
    above = [pair[::side] for pair, side in sides.items() if side]
    found = {}
    for method in ranked:
        rank = 1 + sum(sign * scores[other] > sign * scores[method] for other in ranked)
        better = sum(other == method for _, other in above)
        worse = sum(other == method for other, _ in above)
        # The seeds that count for two methods may differ by those of one of them.
        span = min(rank, 1 + better), max(rank, len(ranked) - worse)
        tied = len(ranked) - 1 - better - worse
        found[method] = RankPlace(method, scores[method], rank, tied, span, seeds[method])
    found |= {m: RankPlace(m, scores[m], None, seeds=seeds[m]) for m in in_order if m not in found}
    rest = sorted(values.keys() - scores.keys(), key=lambda m: m.partition(":"))
    return found | {m: RankPlace(m, None, None) for m in rest}


def _seeds(values: Mapping[int, float], count: Mapping[int, int], n: int) -> frozenset[int]:
    """Seeds that count for a method; which these are, only the others decide. None if it lacks one.

    ``count`` says how many of the ``n`` methods have each seed, this one among them.
    """
    others = n - bool(values)
    have = {seed: total - (seed in values) for seed, total in count.items()}
    enough = min(others / 2, max(have.values(), default=0))
    seeds = {seed for seed, k in have.items() if k >= enough > 0} or set(values)
    return frozenset(seeds) if seeds <= values.keys() else frozenset()


def _mean(values: Mapping[int, float], seeds: frozenset[int]) -> float:
    return math.fsum(values[s] for s in sorted(seeds)) / len(seeds)


def apart(left: Mapping[int, float], right: Mapping[int, float]) -> bool:
    """Tell two methods apart: the interval of their difference over shared seeds leaves out zero.

    Example:
        >>> apart({0: 0.5, 1: 0.6, 2: 0.7}, {0: 0.4, 1: 0.5, 2: 0.601})
        True
        >>> apart({0: 0.5}, {0: 0.1})
        False
    """
    return _side(left, right) != 0


def _side(left: Mapping[int, float], right: Mapping[int, float]) -> Literal[-1, 0, 1]:
    """1 where the left method is above the right one, -1 where it is below, 0 if none can tell."""
    mean = mean_score([round(left[seed] - right[seed], 12) for seed in left if seed in right])
    if mean.low is None or mean.high is None or mean.low <= 0 <= mean.high:
        return 0
    return 1 if mean.low > 0 else -1


def front(points: Mapping[str, tuple[float, float]], *, higher: bool = True) -> list[str]:
    """Methods that no other one beats in both tests, self-test and cross-test, by rising self-test.

    Example:
        >>> front({"a": (1, 3), "b": (2, 2), "c": (1, 1)})
        ['a', 'b']
    """
    sign = 1 if higher else -1

    def beaten(x: float, y: float) -> bool:
        others = (at for at in points.values() if at != (x, y))
        return any(sign * u >= sign * x and sign * v >= sign * y for u, v in others)

    kept = [method for method, at in points.items() if not beaten(*at)]
    return sorted(kept, key=lambda method: (*points[method], method))
