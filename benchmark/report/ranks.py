"""Ranks of methods by one score, and which of them cannot be told apart.

The rule, as :data:`RULE` states it for readers. Nothing here knows a page or a table.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from string import ascii_lowercase

from benchmark.records.record import Record
from benchmark.report import numbers, select
from benchmark.report.scores import Span, mean_score

RULE = (
    "The score is the cross-test: queries of the new model in the gallery as it stands on the day "
    "of the update, before anything is computed anew. It is the mean over the seeds that at least "
    "half of the other methods have; where no seed has so many, over those that most of them have.",
    "A method that lacks the score, or one of those seeds, has no rank. What is missing never "
    "counts in anybody's favour.",
    "Equal scores share a rank, and the next one is left out: 1, 2, 2, 4.",
    "Two methods can be told apart if the 95 % interval of their difference leaves out zero: over "
    "the seeds that both have (Student's t), or of one seed over the classes or identities of the "
    "same queries. Where a record has no results by query, their own intervals must not overlap. "
    "Methods that share a letter cannot be told apart.",
    "Bounds, the independent model and controls have no rank. Published numbers never do.",
    "A method with a record of an older schema, which has no seal, has none either: nothing shows "
    "whether it was edited.",
)
"""What a reader must know of the ranks, sentence by sentence."""

MEAN_RULE = (
    "The mean rank is over the protocols of one update in which any method can take part, without "
    "those that vary a setting; a method that has no rank in one of them has no mean rank."
)

Paired = Callable[[Record, Record, str, str], Span | None]
"""(left, right, case, metric) -> interval of the difference on the same queries, if known."""


@dataclass(frozen=True)
class Place:
    """Where a method stands."""

    method: str
    score: float | None  # mean over the seeds that count; None where one is missing
    rank: int | None  # from 1; None where there is no score
    letters: str  # ``a``, ``ab``: what shares one cannot be told apart


def places(
    records: Sequence[Record],
    metric: str,
    case: str,
    unranked: frozenset[str] = frozenset(),
    paired: Paired | None = None,
    groups: bool = True,
) -> dict[str, Place]:
    """Every method's place by one score, of records of one protocol, track and setting.

    Args:
        records: Of all methods and seeds.
        metric: Key.
        case: ``new/old``.
        unranked: Methods without a rank beside ``independent``.
        paired: Compares two records query by query, where it can.
        groups: Are the letters found, which compares every method with every other?

    Returns:
        Method -> place; best first, those without a rank last, by name.
    """
    rivals = _values(records, metric, case, unranked | {"independent"})
    count = Counter(seed for values in rivals.values() for seed in values)
    # Methods without any value, where all refuse a metric, say nothing about seeds.
    n = sum(map(bool, rivals.values()))
    scores = {
        m: score for m, values in rivals.items() if (score := _score(values, count, n)) is not None
    }
    sign = -1.0 if numbers.metric(metric).higher_is_better is False else 1.0
    known = sorted(scores, key=lambda m: (-sign * scores[m], m.partition(":")))
    by_seed = {m: {r.seed: r for r in records if r.method == m} for m in known}

    def apart(left: str, right: str) -> bool:
        shared = [s for s in rivals[left] if s in rivals[right]]
        if len(shared) > 1:
            mean = mean_score([rivals[left][s] - rivals[right][s] for s in shared])
            return mean.low is not None and mean.high is not None and not mean.low <= 0 <= mean.high
        return _apart(by_seed[left], by_seed[right], case, metric, paired)

    letters = letter_groups(known, apart) if groups else {}
    in_order = [scores[method] for method in known]
    ranked = {
        m: Place(m, scores[m], in_order.index(scores[m]) + 1, letters.get(m, "")) for m in known
    }
    rest = sorted(rivals.keys() - scores.keys(), key=lambda m: m.partition(":"))
    return ranked | {m: Place(m, None, None, "") for m in rest}


def _values(
    records: Sequence[Record], metric: str, case: str, unranked: frozenset[str]
) -> dict[str, dict[int, float]]:
    """Method -> seed -> score; none of methods with an unsealed record."""
    values: dict[str, dict[int, float]] = {}
    unsealed = select.unsealed(records)
    for record in records:
        if record.method not in unranked:
            by_seed = values.setdefault(record.method, {})
            counts = record.status == "done" and record.method not in unsealed
            value = record.scores.get(case, {}).get(metric) if counts else None
            if value is not None and math.isfinite(value):
                by_seed[record.seed] = value
    return values


def _score(values: Mapping[int, float], count: Mapping[int, int], n: int) -> float | None:
    """Mean over the seeds that count for a method; which these are, only the others decide.

    ``count`` says how many of the ``n`` methods have each seed, this one among them.
    """
    others = n - bool(values)
    have = {seed: total - (seed in values) for seed, total in count.items()}
    enough = min(others / 2, max(have.values(), default=0))
    seeds = {seed for seed, k in have.items() if k >= enough > 0} or set(values)
    if not seeds or not seeds <= values.keys():
        return None
    return math.fsum(values[s] for s in sorted(seeds)) / len(seeds)


def _apart(
    left: Mapping[int, Record],
    right: Mapping[int, Record],
    case: str,
    metric: str,
    paired: Paired | None,
) -> bool:
    """Whether two methods can be told apart that share one seed at most."""
    for seed in sorted(left.keys() & right.keys()):
        span = paired(left[seed], right[seed], case, metric) if paired is not None else None
        if span is not None:
            return not span[0] <= 0 <= span[1]
    spans = [r.intervals.get(case, {}).get(metric) for r in (*left.values(), *right.values())]
    known = [span for span in spans if span is not None]
    if len(spans) != 2 or len(known) != 2:  # unknown, or of more than two: that says nothing
        return False
    (a, b), (c, d) = known
    return b < c or d < a


def letter_groups(methods: Sequence[str], apart: Callable[[str, str], bool]) -> dict[str, str]:
    """Letters such that two methods share one if, and only if, they cannot be told apart.

    Methods stand best first; ``a`` is the best one's.

    Source:
        Piepho, An algorithm for a letter-based representation of all-pairwise comparisons, 2004
        (insert and absorb).

    Example:
        >>> letter_groups(["x", "y", "z"], lambda a, b: (a, b) == ("x", "z"))
        {'x': 'a', 'y': 'ab', 'z': 'b'}
    """
    groups = [(1 << len(methods)) - 1] if methods else []
    for i, j in combinations(range(len(methods)), 2):
        if not apart(methods[i], methods[j]):
            continue
        pair = 1 << i | 1 << j
        split = [g for g in groups if g & pair == pair]
        groups = [g for g in groups if g & pair != pair]
        for group in split:
            for part in (group & ~(1 << i), group & ~(1 << j)):
                if not any(part & other == part for other in groups):
                    groups = [g for g in groups if g & part != g] + [part]
    groups.sort(key=lambda g: [i for i in range(len(methods)) if g >> i & 1])
    # a to z, then a2 to z2, and so on
    turns = range(1, len(groups) // 26 + 2)
    letters = [f"{a}{turn if turn > 1 else ''}" for turn in turns for a in ascii_lowercase]
    return {
        method: "".join(letter for letter, g in zip(letters, groups, strict=False) if g >> i & 1)
        for i, method in enumerate(methods)
    }


def mean_ranks(
    ranks: Mapping[str, Mapping[str, int | None]], boards: Sequence[str]
) -> dict[str, float | None]:
    """Method -> mean of its ranks, by method and board, over some boards; none if one is missing.

    Example:
        >>> mean_ranks({"bct": {"x": 1, "y": 2}, "l2": {"x": 2}}, ["x", "y"])
        {'bct': 1.5, 'l2': None}
    """
    means: dict[str, float | None] = {}
    for method, by_board in ranks.items():
        known = [rank for board in boards if (rank := by_board.get(board)) is not None]
        complete = bool(boards) and len(known) == len(boards)
        means[method] = math.fsum(known) / len(known) if complete else None
    return means


def front(points: Mapping[str, tuple[float, float]], *, higher: bool = True) -> list[str]:
    """Methods that no other one beats in both tests, by rising self-test.

    Args:
        points: Method -> self-test, cross-test.
        higher: Is more better?

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
