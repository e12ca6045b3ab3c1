"""Ranks of methods by one score, and which of them cannot be told apart.

The rule, as :data:`RULE` states it for readers. Nothing here knows a page or a table.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from benchmark.records.record import Record
from benchmark.report import numbers
from benchmark.report.values import Span

RULE = (
    "The score is the cross-test: the new model asks in the gallery as it stands on the day of the "
    "update, before anything is computed anew. It is the mean over the seeds that at least half of "
    "the other methods have.",
    "A method that lacks the score, or one of those seeds, has no rank. What is missing never "
    "counts in anybody's favour.",
    "Equal scores share a rank, and the next one is left out: 1, 2, 2, 4.",
    "Two methods can be told apart if the 95 % interval of their difference leaves out zero: over "
    "the seeds that both have (Student's t), or of one seed over the same queries (paired "
    "bootstrap). Where a record has no results by query, their own intervals must not overlap. "
    "Methods that share a letter cannot be told apart.",
    "Bounds, the independent model and controls have no rank. Published numbers never do.",
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
    """Where a method stands.

    Attributes:
        score: Mean over the seeds that count; None where one is missing.
        rank: From 1; None where there is no score.
        letters: ``a``, ``ab``: what shares one cannot be told apart.
    """

    method: str
    score: float | None
    rank: int | None
    letters: str


def places(
    records: Sequence[Record],
    metric: str,
    case: str,
    unranked: frozenset[str] = frozenset(),
    paired: Paired | None = None,
    groups: bool = True,
) -> dict[str, Place]:
    """Every method's place by one score.

    Args:
        records: Of one protocol, track and setting.
        metric: Key.
        case: ``new/old``.
        unranked: Methods that have a score but no rank, as ``independent`` always is.
        paired: Compares two records query by query, where it can.
        groups: Shall it be found which methods cannot be told apart?

    Returns:
        Method -> place; best first, those without a rank last, by name.
    """
    values = _values(records, metric, case)
    rivals = [m for m in values if m not in unranked and m != "independent"]
    count = Counter(seed for m in rivals for seed in values[m])
    # Methods without any value, where all refuse a metric, say nothing about seeds.
    n = sum(bool(values[m]) for m in rivals)
    scores = {m: _score(values[m], count, n) for m in rivals}
    sign = -1.0 if numbers.metric(metric).higher_is_better is False else 1.0
    known = sorted(
        (m for m, score in scores.items() if score is not None),
        key=lambda m: (-sign * (scores[m] or 0.0), m.partition(":")),
    )
    by_seed = {m: {r.seed: r for r in records if r.method == m} for m in known}

    def apart(left: str, right: str) -> bool:
        differences = [
            x - y for s, x in values[left].items() if (y := values[right].get(s)) is not None
        ]
        if len(differences) > 1:
            return _leaves_out_zero(differences)
        return _apart(by_seed[left], by_seed[right], case, metric, paired)

    letters = letter_groups(known, apart) if groups else {}
    found: dict[str, Place] = {}
    for i, method in enumerate(known):
        before = found[known[i - 1]] if i else None
        tied = before is not None and before.score == scores[method]
        rank = before.rank if before is not None and tied else i + 1
        found[method] = Place(method, scores[method], rank, letters.get(method, ""))
    rest = sorted(set(rivals) - set(known), key=lambda m: m.partition(":"))
    return found | {m: Place(m, None, None, "") for m in rest}


def _values(records: Sequence[Record], metric: str, case: str) -> dict[str, dict[int, float]]:
    """Method -> seed -> score."""
    found: dict[str, dict[int, float]] = {}
    for record in records:
        mine = found.setdefault(record.method, {})
        value = record.scores.get(case, {}).get(metric) if record.status == "done" else None
        if value is not None and math.isfinite(value):
            mine[record.seed] = value
    return found


def _score(mine: Mapping[int, float], count: Mapping[int, int], n: int) -> float | None:
    """Mean over the seeds that count for a method; what it has itself has no say in these.

    Args:
        mine: Seed -> its score.
        count: Seed -> how many of the ``n`` methods have it, this one among them.
        n: Methods that have a score.
    """
    others = n - bool(mine)
    seeds = {seed for seed, have in count.items() if 2 * (have - (seed in mine)) >= others > 0}
    seeds = seeds or set(mine)
    if not seeds or not seeds <= mine.keys():
        return None
    return math.fsum(mine[s] for s in sorted(seeds)) / len(seeds)


def _apart(
    left: Mapping[int, Record],
    right: Mapping[int, Record],
    case: str,
    metric: str,
    paired: Paired | None,
) -> bool:
    """Does the interval of the difference leave out zero, where one seed at most is shared?"""
    pairs = [(left[s], right[s]) for s in sorted(left.keys() & right.keys())]
    for a, b in pairs:
        span = paired(a, b, case, metric) if paired is not None else None
        if span is not None:
            return not span[0] <= 0.0 <= span[1]
    return _disjoint([_span(r, case, metric) for r in (*left.values(), *right.values())])


def _leaves_out_zero(differences: Sequence[float]) -> bool:
    """Does Student's t interval of the mean?"""
    from benchmark.metrics.statistics import t_factor

    # Plain numbers: a few seeds, and thousands of pairs.
    mean = math.fsum(differences) / len(differences)
    spread = math.fsum((d - mean) ** 2 for d in differences) / (len(differences) - 1)
    return abs(mean) > t_factor(len(differences)) * math.sqrt(spread)


def _span(record: Record, case: str, metric: str) -> Span | None:
    found = record.intervals.get(case, {}).get(metric)
    return None if found is None else (float(found[0]), float(found[1]))


def _disjoint(spans: Sequence[Span | None]) -> bool:
    """Do two intervals not overlap? Unknown or more than two say nothing."""
    known = [span for span in spans if span is not None]
    if len(spans) != 2 or len(known) != 2:
        return False
    (a, b), (c, d) = known
    return b < c or d < a


def letter_groups(methods: Sequence[str], apart: Callable[[str, str], bool]) -> dict[str, str]:
    """Letters such that two methods share one if, and only if, they cannot be told apart.

    Args:
        methods: Best first; ``a`` is the best one's.
        apart: Can these two be told apart?

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
    return {
        method: "".join(_letter(k) for k, g in enumerate(groups) if g >> i & 1)
        for i, method in enumerate(methods)
    }


def _letter(number: int) -> str:
    """``a`` to ``z``, then ``a2`` to ``z2``, and so on."""
    turn, place = divmod(number, 26)
    return chr(ord("a") + place) + (str(turn + 1) if turn else "")


def mean_ranks(
    ranks: Mapping[str, Mapping[str, int | None]], boards: Sequence[str]
) -> dict[str, float | None]:
    """Method -> mean of its ranks over boards; none where one is missing.

    Args:
        ranks: Method -> board -> rank.
        boards: All that count.

    Example:
        >>> mean_ranks({"bct": {"x": 1, "y": 2}, "l2": {"x": 2}}, ["x", "y"])
        {'bct': 1.5, 'l2': None}
    """
    found: dict[str, float | None] = {}
    for method, mine in ranks.items():
        known = [rank for board in boards if (rank := mine.get(board)) is not None]
        complete = bool(boards) and len(known) == len(boards)
        found[method] = math.fsum(known) / len(known) if complete else None
    return found
