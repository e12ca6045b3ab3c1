"""The one error for bad input, and the nearest known name."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


def printable(text: str) -> str:
    r"""Text for a terminal: control, format and lone surrogate characters as their escapes.

    Names come from files and folders of others; a terminal would carry out what they hold.

    Example:
        >>> printable("a\x1b[2Jb")
        'a\\x1b[2Jb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c
        if c.isprintable() or c in "\n\t"
        else c.encode("unicode_escape", "surrogatepass").decode()
        for c in text
    )


class BenchError(Exception):
    """Bad input: one line saying what, what was expected, what came."""

    def __str__(self) -> str:
        """The line, safe for a terminal."""
        return printable(super().__str__())


class AbsentError(BenchError):
    """Nothing is there: no file, no record, no entry of a name; what is damaged is there."""


class UnsuitedError(BenchError):
    """A track does not have what a protocol needs; on others, or otherwise set, it may run."""


class EditedError(BenchError):
    """A file is not what was written: its seal does not fit."""


class RefusedError(BenchError):
    """A method finds at work that it cannot make an update; other methods go on without it."""


class DivergedError(RefusedError):
    """The loss of a training is no number."""


class FailedError(BenchError):
    """Adapters raised errors of their own; results that do not need their work go on.

    ``reasons`` has a line each; the message is the first and counts the others.
    """

    def __init__(self, *reasons: str) -> None:
        self.reasons = reasons
        more = len(self.reasons) - 1
        super().__init__(self.reasons[0] + (f"; and {more} more like it" if more else ""))


class PassedOverWarning(UserWarning):
    """Something odd or broken that does not end the work; verbs tell it when they end."""


@contextmanager
def located(where: str) -> Iterator[None]:
    """Name a place first in what goes wrong within: a file, a key."""
    try:
        yield
    except BenchError as error:
        raise type(error)(f"{where}: {error}" if where else str(error)) from error


_LISTED = 20  # known names that an error lists; all of them hide what follows


def nearest(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'bct'?"`` for a near miss, else the known names.

    Example:
        >>> nearest("mixbtc", ["bct", "mixbct"])
        "; did you mean 'mixbct'?"
    """
    names = sorted(known)
    lower = {each.lower(): each for each in reversed(names)}
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6) or [
        lower[each] for each in difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    ]
    if close:
        return f"; did you mean '{close[0]}'?"
    more = [f"and {len(names) - _LISTED} more"] if len(names) > _LISTED + 1 else []
    listed = names[:_LISTED] if more else names
    return f"; known: {', '.join([*listed, *more])}" if names else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> AbsentError:
    """The error for an unknown name.

    Example:
        >>> str(unknown("method", "btc", ["bct", "l2"]))
        "unknown method 'btc'; did you mean 'bct'?"
    """
    return AbsentError(f"unknown {kind} '{name}'{nearest(name, known)}")
