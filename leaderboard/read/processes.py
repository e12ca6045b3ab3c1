"""Work on many things by several processes, where the system can fork."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from benchmark.errors import BenchError

T = TypeVar("T")
R = TypeVar("R")

MANY = 400
"""From so many records on more processes pay."""
_MOST = 4
"""No more processes than these."""
_CHUNK = 8
"""At most so many things are taken at a time: nobody waits for a slow neighbour."""
_given: list[Any] = []
"""In a process of the pool: the call and the things that it was forked with, never pickled."""


@contextmanager
def working(
    call: Callable[[T], R], things: Sequence[T], enough: bool = True
) -> Iterator[Callable[[], list[R]]]:
    """Map a function over things by several processes, while this one goes on.

    Only results go from process to process. Where something is raised in the block, what nobody has
    begun is left undone. Until its end no other processes should part from this one, which has the
    threads of the pool.

    Args:
        call: A function, a closure too.
        things: Its arguments, one a call.
        enough: Is there enough to do for more processes than this one?

    Yields:
        A function that waits for the results, in the order of the things.

    Raises:
        BenchError: What ``call`` raised, or that a process ended before its work.
        OSError: What ``call`` raised.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    n = min(cores, _MOST, len(things))
    if n < 2 or not enough:
        done = [call(thing) for thing in things]
        yield lambda: done
        return
    system = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(n, system, _begin, (call, things))
    try:
        chunk = min(_CHUNK, 1 + len(things) // (32 * n))
        results = pool.map(_call, range(len(things)), chunksize=chunk)
        yield lambda: list(results)
    except BrokenProcessPool as error:
        raise BenchError("a process ended before its work; see above") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(call: Callable[[Any], Any], things: Sequence[Any]) -> None:
    _given[:] = call, things
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that waits says so, once


def _call(i: int) -> Any:
    call, things = _given
    return call(things[i])
