"""Seconds that records took, and what records that are missing will take."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.config.setup import Precision
from benchmark.errors import BenchError
from benchmark.harness.core_board import Unit, UnitStatus, unit_request
from benchmark.harness.graph import Stage, unique_stages
from benchmark.harness.published_models import PublishedModels
from benchmark.harness.work import TakenWork, TrainingWork
from benchmark.records.record import Record
from benchmark.records.stage_titles import StageTitle

Level = tuple[str, ...]
_FITS = ("right", "other")  # precision
_LAST = 5


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


def stages_left(
    statuses: Iterable[UnitStatus], roots: Mapping[str, Path], precision: Precision,
    stored: Callable[[str], bool] = lambda name: False, published: PublishedModels | None = None,
) -> Iterator[list[Stage] | None]:  # fmt: skip
    """The stages that each unit still needs, ``None`` where it cannot be planned; loads torch.

    What several need, protocols of one split among them, is of the first. ``stored`` tells whether
    a store has the stage of a name; published models are taken instead of trained.
    """
    seen = set[str]()
    for status in statuses:
        try:
            stages = _of_what_is_missing(status, roots, precision, published)
        except BenchError:
            yield None
            continue
        new = [s for s in stages if s.name not in seen and not stored(s.name)]
        seen.update(stage.name for stage in new)
        yield new


def _of_what_is_missing(
    status: UnitStatus, roots: Mapping[str, Path], precision: Precision,
    published: PublishedModels | None,
) -> list[Stage]:  # fmt: skip
    if not status.todo:
        return []
    request = unit_request(status.unit, roots, precision)
    plan = request.plan(list(status.todo), published=published)
    wanted = [r for r in plan.results if r.label in status.todo]
    return unique_stages(*(end for r in wanted for end in (r.bound, r.upper, r.evaluation)))


@dataclass(frozen=True)
class TimeEstimate:
    """Seconds on one core, and whether some are of records of other tracks."""

    seconds: float | None  # None where no record says anything
    rough: bool


class Estimates:
    """Estimates of stages from the times of others, of the nearest setting there is.

    The nearest is the same stage under the same protocol, then of the same track, then any stage of
    the same kind there, then of another track; of each the median of the last few, as code and
    networks change. On a track, records of the wanted ``precision`` go before others.
    """

    def __init__(self, records: Iterable[Record], precision: str) -> None:
        found: dict[Level, list[float]] = {}
        for r in sorted(records, key=lambda r: r.run.finished or ""):
            if r.status != "done" or r.changed:
                continue
            fit = _FITS[r.environment.get("precision") != precision]
            for title, stage in r.run.stages.items():
                for level in _levels(r.protocol, r.track, StageTitle.parse(title)):
                    found.setdefault((fit, *level), []).append(stage.seconds or 0.0)
        self._medians = {each: statistics.median(s[-_LAST:]) for each, s in found.items()}

    def of(self, unit: Unit, stages: Sequence[Stage] | None) -> TimeEstimate:
        """Of what is to be done of a unit."""
        if stages is None:
            return TimeEstimate(None, rough=True)
        length = dict(unit.changes).get("recipe.length", 1)
        times = length if isinstance(length, int) else 1
        total, rough = 0.0, False
        for stage in stages:
            if isinstance(stage.work, TakenWork):
                continue
            level = next(filter(self._medians.__contains__, _nearest(unit, stage.about)), None)
            if level is None:
                return TimeEstimate(None, rough=True)
            total += self._medians[level] * (times if isinstance(stage.work, TrainingWork) else 1)
            rough = rough or not level[2]
        return TimeEstimate(total, rough)


def _nearest(unit: Unit, title: StageTitle) -> list[Level]:
    """Keys by which a stage's time is looked for, the best first."""
    levels = _levels(unit.protocol, unit.track, title)
    return [(fit, *each) for part in (levels[:3], levels[3:]) for fit in _FITS for each in part]


def _levels(protocol: str, track: str, title: StageTitle) -> tuple[Level, ...]:
    """From the same setting to any stage of a kind: protocol, track, and what is done."""
    work, kind = title.work, f"{title.verb} {'side-information' if title.side else 'any'}"
    return (
        (protocol, track, work), ("", track, work), ("", track, kind),
        ("", "", work), ("", "", kind),
    )  # fmt: skip
