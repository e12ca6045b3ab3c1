"""A plan in several processes of this machine, each of which has its share of the cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self, TypeVar

from benchmark.errors import BenchError, FailedError, RefusedError
from benchmark.harness.execution import Compute, PlanProgress, run_one
from benchmark.harness.graph import Stage
from benchmark.harness.store import Store

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Variables that say how many threads a process has, read as its libraries are imported."""
ENDED = "its process was ended from outside, as where memory is short"
T = TypeVar("T")


class Workers:
    """Up to ``count`` processes, begun as they are needed; they end with this one, however it ends.

    Where there are several, each has as many threads as the environment says, else its share of
    the cores that this process may use. Each ends after ``tasks``, if that is a number.
    """

    def __init__(self, count: int, tasks: int | None = None) -> None:
        self.count = count
        context = multiprocessing.get_context("spawn")
        ended, self._alive = context.Pipe(duplex=False)
        self._threads = _threads(count)
        self._pool = ProcessPoolExecutor(
            count, context, _begin, (ended,), max_tasks_per_child=tasks
        )

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Have a process call ``work``, a function of a module.

        The result of a pool with a process that was killed is its BrokenProcessPool.
        """
        # Libraries read the environment as they are imported, before any code of ours runs.
        with _without_interrupts(), _environment(self._threads):
            try:
                return self._pool.submit(work, *arguments)
            except BrokenProcessPool as error:
                broken: Future[T] = Future()
                broken.set_exception(error)
                return broken

    def prepare(self, module: str, count: int) -> None:
        """Have ``count`` processes import a module before the work that needs it is known."""
        for _ in range(count):
            self.submit(_prepare, module)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if kind is not None:  # nobody waits for what they do
            self._alive.close()
        self._pool.shutdown(cancel_futures=True)
        self._alive.close()
        if isinstance(error, BrokenProcessPool):
            raise BenchError(ENDED) from error


def _threads(count: int) -> dict[str, str]:
    if count == 1:
        return {}
    from benchmark.ranking.engine import n_threads

    share = str(max(1, n_threads(None) // count))
    return {name: os.environ.get(name, share) for name in THREADS}


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Begin processes within that Ctrl-C and SIGTERM do not reach: they end with the first one.

    They end in silence then. A mask of signals is inherited, from before a process runs any code,
    and none ends this one while it tells another what to do.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables that processes inherit which begin within."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _prepare(module: str) -> None:
    with suppress(ImportError):  # told by the work that needs it
        import_module(module)


def _begin(ended: Connection) -> None:
    threading.Thread(target=_end_with, args=(ended,), daemon=True).start()


def _end_with(ended: Connection) -> None:
    ended.poll(None)  # nothing is ever sent: the other end is closed
    os._exit(1)


def execute_in_processes(
    workers: Workers, stages: Sequence[Stage], store: Store, compute: Compute,
    progress: PlanProgress,
) -> None:  # fmt: skip
    """Run stages, each after its inputs; BenchError if a process is killed.

    Of each seed the evaluations come last: they are short, so that no process waits for a long
    training in the end.
    """
    if any(stage.kind == "features" for stage in stages):
        workers.prepare("timm", workers.count - 1)  # one of them reads the dataset meanwhile
    left = {stage.name: stage for stage in _evaluations_last(stages)}
    missing = set(left)
    running: dict[Future[None], Stage] = {}
    while left or running:
        for stage in list(left.values()):
            if len(running) == compute.processes:
                break
            if not missing.isdisjoint(s.name for s in stage.inputs.values()):
                continue
            del left[stage.name]
            if progress.left_out(stage):  # and so is what needs it
                missing.discard(stage.name)
                continue
            progress.begun(stage)
            running[workers.submit(_run, stage, store.root, compute)] = stage
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            stage = running.pop(future)
            progress.ended(stage, _error(future, stage, compute.processes))
            missing.discard(stage.name)


def _evaluations_last(stages: Sequence[Stage]) -> list[Stage]:
    """Stages, the evaluations of each seed after what else it needs."""
    keys = list[tuple[int, bool]]()
    seed, place = None, 0
    for stage in reversed(stages):  # others stand before the evaluation that needs them
        evaluates = stage.kind == "evaluate"
        if evaluates and stage.about.seed != seed:
            seed, place = stage.about.seed, place - 1
        keys.append((place, evaluates))
    order = sorted(zip(reversed(keys), range(len(stages)), strict=True))
    return [stages[i] for _, i in order]


def _error(future: Future[None], stage: Stage, processes: int) -> RefusedError | FailedError | None:
    try:
        future.result()
    except (RefusedError, FailedError) as error:
        return error
    except BrokenProcessPool as error:
        raise BenchError(
            f"{stage.title}: {ENDED}; the next run goes on from here, with fewer than {processes} "
            "processes if it is that"
        ) from error
    return None


def _run(stage: Stage, root: Path, compute: Compute) -> None:
    run_one(stage, Store(root), compute, lambda share: None)
