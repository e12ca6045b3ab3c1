"""Values of expressions over records, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.config.grouping import grouped
from benchmark.metrics.catalog import chance, describe
from benchmark.metrics.compatibility import AVERAGED
from benchmark.records.record import Record
from benchmark.report import select
from benchmark.report.comparable import comparable
from benchmark.report.costs import added_parameters
from benchmark.report.outcome import unpaid
from benchmark.report.tables import backfilling
from benchmark.studies.claims.language import (
    EACH,
    ClaimPart,
    ClaimValue,
    Constant,
    Operation,
    leaves,
)

BySeed = Mapping[int, float]
LEAST_ROOM = 0.02
"""Between chance and the better of the two models: with less, no difference says anything."""
_OF_SCORES = ("score", "area", "curve", "chance")


@dataclass(frozen=True)
class ClaimPlace:
    """The place at which a part is looked at."""

    protocol: str
    track: str
    metric: str
    method: str = ""  # what ``*`` stands for


class MissingValueError(Exception):
    """No record has a value; the message says which, in a few words."""


class Values:
    """Numbers of comparable records, by protocol, track, method and the run's changes.

    Where training does not beat the raw features of a frozen backbone nothing is looked at, as
    such a track is no board either.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        found = grouped(((record.protocol, record.track), record) for record in records)
        self._records: dict[tuple[str, str, str, str], list[Record]] = {}
        for (protocol, track), here in found.items():
            if unpaid([r for r in here if not r.changed]):
                continue
            for r in comparable(here):
                key = (protocol, track, r.method, _changes(r.changed))
                self._records.setdefault(key, []).append(r)

    def tracks(self, protocols: Iterable[str]) -> list[str]:
        """Tracks with records of any of some protocols."""
        wanted = set(protocols)
        return sorted({track for protocol, track, *_ in self._records if protocol in wanted})

    def of(self, expression: Any, place: ClaimPlace) -> BySeed | float:
        """Seed -> value, on the seeds that all values have, or a constant; else an error."""
        if isinstance(expression, Constant):
            return expression.number
        if isinstance(expression, ClaimValue):
            return self._value(expression, place)
        assert isinstance(expression, Operation)
        name, parts = expression.parts
        operation = _OPERATIONS[name]
        return _combined([self.of(part, place) for part in parts], operation)

    def room(self, value: ClaimValue, place: ClaimPlace, *, below: bool = False) -> float | None:
        """Room of the metrics that a value is of, where it is looked at; None where unknown.

        ``below`` the value only, where it is of the old model.
        """
        key = (value.protocol or place.protocol, value.track or place.track, "independent")
        alone = self._records.get((*key, _changes({})), [])
        old = below and bool(alone) and value.case == select.lower_case(alone)
        found = [room(alone, metric, old=old) for metric in metrics_of(value, place.metric)]
        return min((each for each in found if each is not None), default=None)

    def difference(self, left: Any, right: Any, place: ClaimPlace) -> BySeed:
        """Seed -> the left value less the right one."""
        values = _combined([self.of(left, place), self.of(right, place)], _OPERATIONS["minus"])
        if not isinstance(values, Mapping):  # two constants
            raise MissingValueError("no value of a record")
        return values

    def _value(self, value: ClaimValue, place: ClaimPlace) -> BySeed:
        method = place.method if value.method == EACH else value.method
        protocol, track = value.protocol or place.protocol, value.track or place.track
        records = self._records.get((protocol, track, method, _changes(value.changed)), [])
        done = [r for r in records if r.status == "done" and not r.diverged]
        where = f"{method} on {protocol}, {track}"
        if value.changed:
            where += ", " + ", ".join(f"{k}={v}" for k, v in value.changed.items())
        if not done:
            why = "a training diverged" if any(r.diverged for r in records) else "not applicable"
            raise MissingValueError(f"{where}: {why}" if records else f"no record of {where}")
        alone = {
            r.seed: r for r in self._records.get((protocol, track, "independent", _changes({})), [])
        }
        keys = metrics_of(value, place.metric)
        found = {}
        for record in done:
            numbers = [_number(value, record, key, alone.get(record.seed)) for key in keys]
            known = [number for number in numbers if number is not None]
            if len(known) == len(keys):
                found[record.seed] = math.fsum(known) / len(known)
        if not found:
            raise MissingValueError(f"{where}: no {_words(value)} in {' or '.join(keys)}")
        return found


def _changes(changed: Mapping[str, Any]) -> str:
    return repr(sorted(changed.items()))


_OPERATIONS: Mapping[str, Any] = {
    "minus": lambda values: values[0] - values[1], "largest": max, "smallest": min,
    "mean": lambda values: math.fsum(values) / len(values),
    "spread": lambda values: max(values) - min(values),
}  # fmt: skip


def _combined(values: Sequence[BySeed | float], operation: Any) -> BySeed | float:
    known = [set(v) for v in values if isinstance(v, Mapping)]
    if not known:
        return float(operation([v for v in values if not isinstance(v, Mapping)]))
    seeds = sorted(set.intersection(*known))
    if not seeds:
        raise MissingValueError("no seed that all have")
    return {
        seed: operation([v[seed] if isinstance(v, Mapping) else v for v in values])
        for seed in seeds
    }


def _words(value: ClaimValue) -> str:
    given = (value.case, value.order, value.oracle, value.generation)
    named = " ".join(word for word in given if word)
    return named if value.value == "score" else f"{value.value.replace('_', ' ')} {named}".strip()


def _number(value: ClaimValue, record: Record, metric: str, alone: Record | None) -> float | None:
    """A record's number; None where it has none."""
    if value.value == "score":
        return select.score(record, value.case or "", metric)
    if value.value == "added_parameters":
        added = added_parameters(record, alone)
        return None if added is None else float(added)
    if value.value in ("chance", "training_cost"):
        return chance_of(record, metric) if value.value == "chance" else record.run.training_cost
    if value.value in ("cka", "side_score"):
        side = None if record.side is None else record.side.generations.get(value.generation or "")
        if side is None:
            return None
        return side.cka if value.value == "cka" else side.scores.get(metric)
    return _of_order(value, record, metric)


def _of_order(value: ClaimValue, record: Record, metric: str) -> float | None:
    own = value.order == "own"
    order = backfilling.order(record) if own else record.orders.get(value.order or "")
    if order is None:
        return None
    if value.value == "area":
        return order.area.get(metric)
    if value.value == "tau":
        return order.tau.get(value.oracle or "")
    curve = {
        "curve": order.curves.get(metric, ()), "group_gap": order.groups.gap,
        "positive_flips": order.flips.positive, "negative_flips": order.flips.negative,
    }[value.value]  # fmt: skip
    # The point that is nearest to a share of the gallery.
    return curve[round((value.at or 0.0) * (len(curve) - 1))] if curve else None


def chance_of(record: Record, metric: str) -> float | None:
    """A metric's value for a random order of the gallery; None where it is not known."""
    return chance(metric, record.counts.get(select.self_case([record]), {}))


def room(records: Sequence[Record], metric: str, *, old: bool = False) -> float | None:
    """The distance from chance to the better bound, or to the ``old`` model's, of ``independent``.

    The mean over its records; None where a smaller value is better, or no record has the metric.
    """
    if metric == select.AVG:
        parts = [room(records, each, old=old) for each in AVERAGED]
        known = [part for part in parts if part is not None]
        return math.fsum(known) / len(known) if len(known) == len(parts) else None
    if describe(metric).higher_is_better is not True:
        return None
    found = []
    for record in records:
        cases = [select.lower_case([record]), *([] if old else [select.self_case([record])])]
        scores = [select.score(record, case, metric) for case in cases]
        ends = [score for score in scores if score is not None]
        if ends:
            found.append(max(ends) - (chance_of(record, metric) or 0.0))
    return math.fsum(found) / len(found) if found else None


def needed(part: ClaimPart) -> float | None:
    """Room without which a part's rule says nothing: more than any number that it names.

    None of a rule on what is no score, or no share of an upgrade.
    """
    values = list(part.values())
    if any(value.value not in _OF_SCORES for value in values):
        return None
    found = (leaf for side in part.expressions for leaf in leaves(side))
    named = (leaf.number for leaf in found if isinstance(leaf, Constant))
    return max(LEAST_ROOM, part.by, part.within or 0.0, *named)


def metrics_of(value: ClaimValue, metric: str) -> tuple[str, ...]:
    """The metrics that a value is of."""
    own = value.metric or metric
    return (own,) if isinstance(own, str) else own
