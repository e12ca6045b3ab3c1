"""Work on many things by several processes, where the system can fork."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar, cast

from benchmark.errors import BenchError

T = TypeVar("T")
R = TypeVar("R")

MANY = 400
"""From so many records on more processes pay."""
_MOST = 4
"""No more processes than these."""
_CHUNK = 8
"""At most so many things are taken at a time: nobody waits for a slow neighbour."""


def spread(call: Callable[[T], R], things: Sequence[T], enough: bool = True) -> list[R]:
    """Map a function over things by several processes; only results go from process to process.

    Args:
        call: A function, a closure too.
        things: Its arguments, one a call.
        enough: Is there enough to do for more processes than this one?

    Raises:
        BenchError: What ``call`` raised, or that a process ended before its work.
        OSError: What ``call`` raised.
    """
    with working(call, things, enough) as results:
        return results()


@contextmanager
def working(
    call: Callable[[T], R], things: Sequence[T], enough: bool = True
) -> Iterator[Callable[[], list[R]]]:
    """As :func:`spread`, while this process goes on: a function that waits for the results.

    Processes that still work at the end of the block, because something was raised in it, stop
    after the thing that they are at. This process starts no thread, so that more may part from it.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    n = min(cores, _MOST, len(things))
    if n < 2 or not enough:
        done = [call(thing) for thing in things]
        yield lambda: done
        return
    system = multiprocessing.get_context("fork")
    taken = system.Value("q", 0)
    chunk = min(_CHUNK, 1 + len(things) // (32 * n))
    pipes, workers = [], []
    for _ in range(n):
        here, there = system.Pipe(duplex=False)
        workers.append(system.Process(target=_work, args=(there, call, things, taken, chunk)))
        workers[-1].start()
        there.close()
        pipes.append(here)
    try:
        yield lambda: _collect(pipes, len(things))
    finally:
        with taken.get_lock():
            taken.value = len(things)
        for pipe, worker in zip(pipes, workers, strict=True):
            pipe.close()
            worker.join()


def _work(
    results: Connection, call: Callable[[Any], Any], things: Sequence[Any], taken: Any, chunk: int
) -> None:
    """Take the next few things until there are no more; send what came of them, or what failed."""
    with suppress(BrokenPipeError, KeyboardInterrupt):  # the process that asked has ended its work
        try:
            while True:
                with taken.get_lock():
                    start = taken.value
                    taken.value = min(start + chunk, len(things))
                if start >= len(things):
                    return
                results.send((start, [call(thing) for thing in things[start : start + chunk]]))
        except (BenchError, OSError) as error:
            results.send(error)


def _collect(pipes: Sequence[Connection], n: int) -> list[Any]:
    found: dict[int, Any] = {}
    reading = list(pipes)
    while reading:
        for pipe in cast(list[Connection], wait(reading)):
            try:
                message = pipe.recv()
            except EOFError:
                reading.remove(pipe)
                continue
            if isinstance(message, Exception):
                raise message
            first, results = message
            found.update(enumerate(results, first))
    if len(found) < n:
        raise BenchError("a process ended before its work; see above")
    return [found[i] for i in range(n)]
