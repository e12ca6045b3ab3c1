"""Ctrl-C and SIGTERM: an end of the command, at once or after the imports that are under way."""

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_AGAIN_AFTER = 0.05  # seconds


@contextmanager
def signals_as_interrupts() -> Iterator[list[int]]:
    """Make SIGTERM, as schedulers send it, an interrupt like Ctrl-C; gives the signals that came.

    What the command began ends with it then, and it says how to go on. During an import the first
    one waits for its end: compiled modules abort the process, or swallow it, when it is raised
    while they begin. A second one does not wait. Who ignores Ctrl-C, as a job in the background
    does, goes on to do so.
    """
    came: list[int] = []
    waiting: list[threading.Timer] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if waiting or not _imports(frame):
            raise KeyboardInterrupt
        waiting.append(threading.Timer(_AGAIN_AFTER, again, (number,)))
        waiting[0].start()

    def again(number: int) -> None:
        waiting.clear()
        _send(number)

    handled = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        handled.append(signal.SIGINT)
    try:
        before = {each: signal.signal(each, interrupt) for each in handled}
    except ValueError:  # in a thread, where nobody may say what a signal does
        yield came
        return
    try:
        yield came
    finally:
        for timer in waiting:  # the command has ended by itself
            timer.cancel()
        for each, handler in before.items():
            signal.signal(each, handler)


def raise_swallowed_interrupts(args: Any) -> None:
    """Raise an interrupt again that a library's callback has swallowed, a compiler's for one.

    For ``sys.unraisablehook``.
    """
    if args.exc_type is not None and issubclass(args.exc_type, KeyboardInterrupt):
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(args)


def _imports(frame: FrameType | None) -> bool:
    """Tell whether an import has called this frame."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _send(number: int) -> None:
    """Send the main thread a signal, which ends its waiting, too."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        _thread.interrupt_main(signal.Signals(number))
