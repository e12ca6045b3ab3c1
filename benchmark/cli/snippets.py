"""Tables in Markdown files, as commands print them: ``python -m benchmark.cli.snippets FILE ...``.

A command stands in the comment that opens the place of what it prints, ``<!-- end -->`` closes it::

    <!-- bench table results -p open-class -f markdown -->
    <!-- end -->

With ``rows:`` before the command the rows of tables are kept alone, without titles and notes.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

_PLACE = re.compile(r"(<!-- (rows: )?bench (.+?) -->\n)(.*?)(<!-- end -->)", re.S)


def renewed(text: str) -> str:
    """A file's text with what its commands print now.

    Args:
        text: Markdown; commands read folders from the working directory.

    Returns:
        The same outside of the places.

    Raises:
        ValueError: If a command fails, with what it said.
    """
    return _PLACE.sub(_print, text)


def _print(place: re.Match[str]) -> str:
    opening, rows, command, _, closing = place.groups()
    printed = output(shlex.split(command))
    if rows:
        printed = re.sub(r"\n{3,}", "\n\n", re.sub(r"(?m)^(?!\|).*$", "", printed))
    return f"{opening}{printed.strip()}\n{closing}"


def output(words: list[str]) -> str:
    """What ``bench`` prints on its standard output.

    Raises:
        ValueError: If it fails.
    """
    from typer.testing import CliRunner

    from benchmark.cli.app import app

    done = CliRunner().invoke(app, words)
    if done.exit_code != 0:
        raise ValueError(f"bench {shlex.join(words)}: {done.stderr or done.exception}")
    return done.stdout


def main(names: list[str]) -> None:
    """Renew files in place."""
    for path in map(Path, names):
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
