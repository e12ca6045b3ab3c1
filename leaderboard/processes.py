"""Work on many things by several processes, where the system can fork."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from benchmark.errors import BenchError

T = TypeVar("T")
R = TypeVar("R")

MANY = 400
"""From so many records on more processes pay."""
_MOST = 4
"""No more processes than these."""


def spread(call: Callable[[T], R], things: Sequence[T], enough: bool = True) -> list[R]:
    """What ``call`` gives for each thing, in their order.

    Each process has the memory of this one, and takes the next thing when it is done with one:
    only results go from process to process, and nobody waits for a slow neighbour.

    Args:
        call: What to do.
        things: With what.
        enough: Is there enough to do for more processes than this one?

    Raises:
        BenchError: What ``call`` raised, or that a process ended before its work.
        OSError: What ``call`` raised.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    n = min(cores, _MOST, len(things))
    if n < 2 or not enough:
        return [call(thing) for thing in things]
    context = multiprocessing.get_context("fork")
    counter = context.Value("q", 0)

    def work(to: Connection) -> None:
        found: list[tuple[int, Any]] = []
        try:
            while (i := _next(counter)) < len(things):
                found.append((i, call(things[i])))
        except (BenchError, OSError) as error:
            to.send(error)
            return
        to.send(found)

    started = []
    for _ in range(n):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(theirs,), daemon=True)
        process.start()
        # With the only other end in the process, its death ends the waiting.
        theirs.close()
        started.append((process, ours))
    made: dict[int, R] = {}
    for process, ours in started:
        try:
            found = ours.recv()
        except EOFError:
            raise BenchError("a process ended before its work; see above") from None
        if isinstance(found, Exception):
            raise found
        made.update(found)
        process.join()
    return [made[i] for i in range(len(things))]


def _next(counter: Any) -> int:
    with counter.get_lock():
        counter.value += 1
        return int(counter.value) - 1
