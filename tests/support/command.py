"""The command in the process of a test."""

from __future__ import annotations

import contextlib
import io
import signal
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer.main

from benchmark.cli.app import main

# Typer makes the whole command at each call, which a process has one of, and a test many.
typer.main.get_command = cache(typer.main.get_command)


def verbs(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each verb with its words."""
    for name, each in getattr(command, "commands", {}).items():
        yield from verbs(each, (*words, name))
    if not hasattr(command, "commands"):
        yield words, command


def call(*words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``bench``."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as it leaves it when it is stopped
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return code, out.getvalue(), err.getvalue()
