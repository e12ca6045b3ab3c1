"""Seconds that records took, and what records that are missing will take."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmark.harness.core_board import UnitStatus
from benchmark.records.record import Record

SHARED = "independent"
"""The method whose stages every other one of a protocol, track and seed shares."""
Level = tuple[str, ...]


def stage_seconds(records: Iterable[Record]) -> float:
    """Seconds of all stages of some records, one that they share counted once.

    Stages are told apart by protocol, track, seed and title: what boards share counts in each.
    """
    seconds = {
        (r.protocol, r.track, r.seed, title): stage.seconds or 0.0
        for r in records
        for title, stage in r.run.stages.items()
    }
    return sum(seconds.values())


@dataclass(frozen=True)
class Estimate:
    """Seconds on one core, and whether they are of records of the same track."""

    seconds: float | None  # None where no record says anything
    rough: bool  # of other tracks


class Estimates:
    """Estimates of missing records from the times of others, of the nearest setting there is.

    The nearest is the same protocol, track and method, then the same track and method, the same
    method, and any record; of each the median. Records of the wanted precision go before others.

    Args:
        records: Of any protocols, tracks, methods and seeds.
        precision: The wanted one.
    """

    def __init__(self, records: Sequence[Record], precision: str) -> None:
        shared = {
            (r.protocol, r.track, r.seed): r.run.stages.keys()
            for r in records
            if r.method == SHARED
        }
        right: dict[Level, list[float]] = {}
        other: dict[Level, list[float]] = {}
        for r in records:
            if r.status != "done" or r.changed:
                continue
            common = shared.get((r.protocol, r.track, r.seed), ()) if r.method != SHARED else ()
            own = sum(s.seconds or 0.0 for t, s in r.run.stages.items() if t not in common)
            found = right if r.environment.get("precision") == precision else other
            for level in _levels(r.protocol, r.track, r.method):
                found.setdefault(level, []).append(own)
        self._medians: Mapping[Level, float] = {
            level: statistics.median(values) for level, values in {**other, **right}.items()
        }

    def of(self, status: UnitStatus) -> Estimate:
        """Of what is to be done of a unit."""
        total, rough = 0.0, False
        length = dict(status.unit.changes).get("recipe.length", 1)
        times = length if isinstance(length, int) else 1
        for method in status.todo:
            levels = _levels(status.unit.protocol, status.unit.track, method)
            level = next((each for each in levels if each in self._medians), None)
            if level is None:
                return Estimate(None, rough=True)
            total += times * self._medians[level]
            rough = rough or level in levels[2:]
        return Estimate(total, rough)


def _levels(protocol: str, track: str, method: str) -> tuple[Level, ...]:
    """From the same setting to any; the shared model and other methods cost another thing."""
    kind = "shared" if method == SHARED else "own"
    return (protocol, track, method), ("", track, method), ("", "", method), ("", "", "", kind)
