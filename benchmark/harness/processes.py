"""A plan in several processes of this machine, each of which has its share of the cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from benchmark.errors import BenchError, FailedError, RefusedError
from benchmark.harness.execution import Compute, PlanProgress, Reporter, run_one
from benchmark.harness.graph import Stage
from benchmark.harness.store import Store

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Variables that say how many threads a process has, read as its libraries are imported."""


@contextmanager
def worker_processes(count: int) -> Iterator[Executor]:
    """Up to ``count`` processes, begun as they are needed; they end with this one, however it ends.

    Threads are what the environment says, else the cores that this process may use, shared out.
    """
    from benchmark.ranking.engine import n_threads

    share = str(max(1, n_threads(None) // count))
    threads = {name: os.environ.get(name, share) for name in THREADS}
    context = multiprocessing.get_context("spawn")
    ended, alive = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(count, context, _begin, (threads, ended))
    try:
        yield pool
    except BaseException:
        alive.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        alive.close()


def _begin(threads: Mapping[str, str], ended: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process says when to end
    os.environ.update(threads)  # before anything reads them
    threading.Thread(target=_end_with, args=(ended,), daemon=True).start()


def _end_with(ended: Connection) -> None:
    ended.poll(None)  # nothing is ever sent: the other end is closed
    os._exit(1)


def execute_in_processes(
    pool: Executor, stages: Sequence[Stage], store: Store, compute: Compute, reporter: Reporter,
    progress: PlanProgress,
) -> None:  # fmt: skip
    """Run stages in their order, each after its inputs; BenchError if a process is killed."""
    left, missing = dict(enumerate(stages, 1)), {stage.name for stage in stages}
    running: dict[Future[None], tuple[Stage, Callable[[float], None], float]] = {}
    while left or running:
        left = {number: s for number, s in left.items() if not progress.left_out(s)}
        for number, stage in list(left.items()):
            if len(running) < compute.processes and missing.isdisjoint(
                s.name for s in stage.inputs.values()
            ):
                share = reporter.start(stage, number, len(stages))
                future = pool.submit(_run, stage, store.root, compute)
                running[future] = left.pop(number), share, time.perf_counter()
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            stage, share, started = running.pop(future)
            error = _error(future, stage, compute.processes)
            share(1.0)
            reporter.done(stage, time.perf_counter() - started)
            progress.ended(stage, error)
            missing.discard(stage.name)


def _error(future: Future[None], stage: Stage, processes: int) -> RefusedError | FailedError | None:
    try:
        future.result()
    except (RefusedError, FailedError) as error:
        return error
    except BrokenProcessPool as error:
        raise BenchError(
            f"{stage.title}: its process was ended from outside, as where memory is short; the "
            f"next run goes on from here, with fewer than {processes} processes if it is that"
        ) from error
    return None


def _run(stage: Stage, root: Path, compute: Compute) -> None:
    run_one(stage, Store(root), compute, lambda share: None)
