"""Work on many things by several processes, where the system can fork."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from benchmark.errors import BenchError

T = TypeVar("T")
R = TypeVar("R")

MANY = 400
"""From so many records on more processes pay."""
_MOST = 4
"""No more processes than these."""
_work: list[Any] = []
"""Of a process of the pool: the function and its arguments, in the memory that it forked with."""


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
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    n = min(cores, _MOST, len(things))
    if n < 2 or not enough:
        return [call(thing) for thing in things]
    fork = multiprocessing.get_context("fork")
    try:
        with ProcessPoolExecutor(n, fork, _work.extend, ([call, things],)) as pool:
            # Small chunks: nobody waits for a slow neighbour.
            chunk = min(8, 1 + len(things) // (32 * n))
            return list(pool.map(_nth, range(len(things)), chunksize=chunk))
    except BrokenProcessPool:
        raise BenchError("a process ended before its work; see above") from None


def _nth(i: int) -> Any:
    call, things = _work
    return call(things[i])
