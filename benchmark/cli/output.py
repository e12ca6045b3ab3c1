"""Output to the terminal: text without control characters, and every error as one line."""

import errno
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer

from benchmark.errors import BenchError, printable

if TYPE_CHECKING:
    from rich.progress import Progress


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a line; control characters of names that it holds are shown, not sent."""
    typer.echo(printable(str(text)), err=err)


def echo_entry(name: str, text: str) -> None:
    """Print an entry of a list: folded beside its name on a terminal, else in one line."""
    width = shutil.get_terminal_size().columns
    if not sys.stdout.isatty() or width < 2 * len(name):
        echo(name + text)
        return
    folded = textwrap.wrap(
        text, width - len(name), break_long_words=False, break_on_hyphens=False
    ) or [""]
    for head, line in zip_longest([name], folded, fillvalue=" " * len(name)):
        echo(head + line)


def echo_json(value: Any) -> None:
    """Print a value as JSON, in which only letters that a terminal shows stand as they are."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    shown = (c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
    typer.echo(text if text.isascii() else "".join(shown))


passed_over: list[str] = []
"""Broken things that nobody asked for; they are told when a verb ends."""


def tell_passed_over(said: str = "") -> None:
    """Print what was passed over, but for what is ``said`` already."""
    for line in dict.fromkeys(passed_over):
        if line.partition(": ")[2] not in said:
            echo(f"bench: {line}", err=True)
    passed_over.clear()


def fail(message: str) -> NoReturn:
    """End with one line and exit code 2."""
    with suppress(OSError):  # nobody reads it any more
        tell_passed_over(message)
        echo("bench: " + message.replace("\n", "\\n"), err=True)
    sys.exit(2)


@contextmanager
def unheard(broken: list[OSError] | None = None) -> Iterator[list[OSError]]:
    """Print, though nobody may read it or its disk be full: that is kept and raised later.

    Args:
        broken: Filled with the error, after which what is printed to stdout goes nowhere.
    """
    broken = [] if broken is None else broken
    try:
        yield broken
        sys.stdout.flush()
    except OSError as error:
        broken.append(error)
        _drop(sys.stdout)


@contextmanager
def plain_errors() -> Iterator[None]:
    """End bad input, and files that cannot be read or written, with one line and exit code 2.

    A reader that closes its end of a pipe, as ``head`` does, wants no more: that is no error.
    """
    try:
        yield
        sys.stdout.flush()
    except BenchError as error:
        fail(str(error))
    except BrokenPipeError:
        _drop(sys.stdout)
        sys.exit(1)
    except OSError as error:
        _drop(sys.stdout)
        fail(_line(error))


def bars(*columns: str) -> "Progress":
    """Bars on a terminal, to be gone when all is done."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    return progress.Progress(
        *columns, progress.BarColumn(bar_width=24), progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(compact=True), progress.TextColumn("left"),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip


@contextmanager
def progress_bar(words: str) -> Iterator[Callable[[float], None]]:
    """A bar on a terminal; gives a function that is told the share that is done, 0 to 1."""
    with bars(words) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """A line on a terminal; gives a function that is told what is done."""
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update


def _line(error: OSError) -> str:
    reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        reason = "the disk is full; free some space and run the same command again"
    places = [str(each) for each in (error.filename, error.filename2) if each is not None]
    return ": ".join([" and ".join(places) or "input or output", reason])


def _drop(stream: TextIO) -> None:
    """Send what is left in a stream's buffer nowhere, or Python would fail on it once more."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
