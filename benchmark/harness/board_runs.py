"""Carry out the core board: one command a unit, as many at a time as there are cores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from benchmark.harness.core_board import CoreBoard, State, UnitStatus

_AGAIN: tuple[State, ...] = ("not clean", "threads", "of another old model")
"""States that ``--existing skip`` would take for the same work."""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
Runner = Callable[[Sequence[str], Mapping[str, str]], int]
"""Carries out ``bench`` with some words and an environment; returns its exit code."""


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
        again = [m for m in status.todo if status.states[m] in _AGAIN]
        plain = [m for m in status.todo if m not in again]
        for methods, existing in ((plain, "skip"), (again, "overwrite")):
            if methods and not status.unknown:
                protocol, track, seed = status.unit[:3]
                root = ("--data-root", str(roots[track])) if track in roots else ()
                changes = [f"--set={key}={json.dumps(v)}" for key, v in status.unit.changes]
                words = (
                    "run", "-p", protocol, "-t", track, "-m", ",".join(methods),
                    "--seeds", str(seed), "--device", board.device, "--precision", board.precision,
                    "--existing", existing, "--records-only", *changes, *root,
                    *folders,
                )  # fmt: skip
                found.append(Job(words, estimate))
    return found


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

    A job is not begun that would end, as far as estimates say, ``limit_s`` seconds from now or
    later.
    """
    environment = os.environ | dict.fromkeys(_THREADS, str(board.threads))
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
