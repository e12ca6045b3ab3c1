"""Room that a metric has on a track: how far a model's own score lies above chance there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from benchmark.metrics.catalog import chance, describe
from benchmark.metrics.compatibility import AVERAGED
from benchmark.records.record import Record
from benchmark.report import select
from benchmark.report.claims.language import Number, Operation, Part, Value

LEAST_ROOM = 0.02
"""Between chance and the better of the two models: with less, no difference says anything."""
_OF_SCORES = ("score", "area", "curve", "chance")


def chance_of(record: Record, metric: str) -> float | None:
    """A metric's value for a random order of the gallery; None where it is not known."""
    return chance(metric, record.counts.get(select.self_case([record]), {}))


def room(records: Sequence[Record], metric: str) -> float | None:
    """What lies between chance and the better bound, mean over ``independent``'s records.

    None where a smaller value is better, or no record has the metric.
    """
    if metric == select.AVG:
        parts = [room(records, each) for each in AVERAGED]
        known = [part for part in parts if part is not None]
        return math.fsum(known) / len(known) if len(known) == len(parts) else None
    if describe(metric).higher_is_better is not True:
        return None
    found = []
    for record in records:
        cases = (select.lower_case([record]), select.self_case([record]))
        ends = [score for case in cases if (score := select.score(record, case, metric))]
        if ends:
            found.append(max(ends) - (chance_of(record, metric) or 0.0))
    return math.fsum(found) / len(found) if found else None


def needed(part: Part) -> float | None:
    """Room without which a part's rule says nothing: more than any number that it names.

    None of a rule on what is no score, or no share of an upgrade.
    """
    values = list(part.values())
    if any(value.value not in _OF_SCORES for value in values):
        return None
    named = [number for side in part.expressions for number in _numbers(side)]
    return max(LEAST_ROOM, part.by, part.within or 0.0, *named)


def _numbers(expression: object) -> Iterator[float]:
    if isinstance(expression, Number):
        yield expression.number
    elif isinstance(expression, Operation):
        for each in expression.parts[1]:
            yield from _numbers(each)


def metrics_of(value: Value, metric: str) -> tuple[str, ...]:
    """The metrics that a value is of."""
    own = value.metric or metric
    return (own,) if isinstance(own, str) else own
