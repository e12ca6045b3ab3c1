"""Carry out a board: seconds that records took, estimates of missing ones, one command a unit."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from benchmark.config.setup import Precision
from benchmark.errors import BenchError
from benchmark.harness.core_board import CoreBoard, State, Unit, UnitStatus, unit_request
from benchmark.harness.graph import Stage
from benchmark.harness.processes import THREADS
from benchmark.harness.published_models import PublishedModels
from benchmark.harness.work import TakenWork, TrainingWork
from benchmark.records.record import Record
from benchmark.records.stage_titles import StageTitle

Level = tuple[str, ...]
_FITS = ("right", "other")  # precision
_LAST = 5
_AGAIN: tuple[State, ...] = ("not clean", "threads", "of another old model")
"""States that ``--existing skip`` would take for the same work."""
Runner = Callable[[Sequence[str], Mapping[str, str]], int]
"""Carries out ``bench`` with some words and an environment; returns its exit code."""


def seconds_spent(records: Iterable[Record]) -> float:
    """Seconds of all stages of some records, those that they share counted once.

    Stages are told apart by protocol, track, seed and title: what boards share counts in each.
    Those of one title and equal measurements are one for all seeds, as features are.
    """
    stages = {
        (r.protocol, r.track, r.seed, title): stage
        for r in records
        for title, stage in r.run.stages.items()
    }
    apart = {(protocol, track, title, s) for (protocol, track, _, title), s in stages.items()}
    return sum(stage.seconds or 0.0 for *_, stage in apart)


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
        stages: Sequence[Stage] = ()
        try:
            if status.todo:
                request = unit_request(status.unit, roots, precision)
                plan = request.plan(list(status.todo), published=published)
                wanted = tuple(r for r in plan.results if r.label in status.todo)
                stages = replace(plan, results=wanted).stages
        except BenchError:
            yield None
            continue
        new = [s for s in stages if s.name not in seen and not stored(s.name)]
        seen.update(stage.name for stage in new)
        yield new


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
            levels = _levels(unit.protocol, unit.track, stage.about)
            parts = ((fit, part) for part in (levels[:3], levels[3:]) for fit in _FITS)
            order = ((fit, *each) for fit, part in parts for each in part)
            level = next(filter(self._medians.__contains__, order), None)
            if level is None:
                return TimeEstimate(None, rough=True)
            total += self._medians[level] * (times if isinstance(stage.work, TrainingWork) else 1)
            rough = rough or not level[2]
        return TimeEstimate(total, rough)


def _levels(protocol: str, track: str, title: StageTitle) -> tuple[Level, ...]:
    """From the same setting to any stage of a kind: protocol, track, and what is done."""
    work, kind = title.work, f"{title.verb} {'side-information' if title.side else 'any'}"
    return (
        (protocol, track, work), ("", track, work), ("", track, kind),
        ("", "", work), ("", "", kind),
    )  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One ``bench run`` of a unit."""

    words: tuple[str, ...]  # what stands after ``bench``
    seconds: float | None  # estimated; None where nothing is known


def jobs(
    statuses: Sequence[UnitStatus], seconds: Sequence[float | None], board: CoreBoard,
    roots: Mapping[str, Path], folders: Sequence[str],
) -> list[Job]:  # fmt: skip
    """The commands that compute what is to be done, in the order of importance.

    Units that cannot be run here are left out; ``folders`` are further words of every command.
    """
    found = []
    for status, estimate in zip(statuses, seconds, strict=True):
        unit = status.unit
        again = [m for m in status.todo if status.states[m] in _AGAIN]
        plain = [m for m in status.todo if m not in again]
        for methods, existing in ((plain, "skip"), (again, "overwrite")):
            if methods and not status.unknown:
                root = ("--data-root", str(roots[unit.track])) if unit.track in roots else ()
                changes = [f"--set={key}={json.dumps(v)}" for key, v in unit.changes]
                words = (
                    "run", "-p", unit.protocol, "-t", unit.track,
                    "-m", ",".join(_with_owners(methods, unit)),
                    "--seeds", str(unit.seed), "--device", board.device,
                    "--precision", board.precision,
                    "--existing", existing, "--records-only", *changes, *root,
                    *folders,
                )  # fmt: skip
                part = len(methods) / len(status.todo)
                found.append(Job(words, None if estimate is None else estimate * part))
    return found


def _with_owners(methods: Sequence[str], unit: Unit) -> list[str]:
    """The methods, and those whose parameters the unit sets: a run refuses settings of others."""
    owners = {key.rpartition(".")[0] for key, _ in unit.changes}
    return [method for method in unit.methods if method in owners or method in methods]


def run_command(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run ``bench`` in a process of its own, its output with ours."""
    command = [sys.executable, "-m", "benchmark.cli.app", *words]
    return subprocess.run(command, env=dict(environment), check=False).returncode


def carry_out_jobs(
    todo: Sequence[Job], board: CoreBoard, processes: int, limit_s: float,
    on_start: Callable[[Job], None] = lambda job: None, runner: Runner = run_command,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Job], list[Job]]:  # fmt: skip
    """Run jobs in their order, some at a time; gives those that failed, and those not begun.

    A job is not begun that would end, by its estimate, ``limit_s`` seconds from now or later.
    """
    environment = os.environ | dict.fromkeys(THREADS, str(board.threads))
    started, failed, left = clock(), list[Job](), list[Job]()
    running: dict[Future[int], Job] = {}

    def collect(*, everything: bool) -> None:
        while running and (everything or len(running) >= processes):
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                if future.result():
                    failed.append(job)

    with ThreadPoolExecutor(processes) as pool:
        for job in todo:
            collect(everything=False)
            if clock() - started + (job.seconds or 0.0) > limit_s:
                left.append(job)
                continue
            on_start(job)
            running[pool.submit(runner, job.words, environment)] = job
        collect(everything=True)
    return failed, left
