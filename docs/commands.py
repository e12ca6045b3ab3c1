"""The verbs of ``bench`` by groups, as ``bench --help`` has them: a part of docs/commands.md."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from benchmark.cli.app import app
from benchmark.report import render
from benchmark.report.text_table import simple_table

_HEADS = ("verb", "what it does", "examples")


def commands() -> Iterator[str]:
    """A table for each group: the verb, its help, its examples."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for group, path, command in verbs():
        examples = re.findall(r"`([^`]+)`", command.epilog or "")
        words = " ".join((command.help or "").partition("\n\n")[0].split())
        row = (f"`bench {path}`", words, ", ".join(f"`{each}`" for each in examples))
        groups.setdefault(group, []).append(row)
    for name, rows in groups.items():
        table = render(simple_table("", "", _HEADS, (), rows), "markdown").strip()
        yield f"## {name}\n\n{table}\n"


def verbs(root: Any = None, group: str = "", before: str = "") -> Iterator[tuple[str, str, Any]]:
    """Group, words and command of each verb; those of a verb of several are in its group."""
    root = root or typer.main.get_command(app)
    for name in root.list_commands(None):
        command = root.commands[name]
        of = group or command.rich_help_panel or ""
        if hasattr(command, "commands"):
            yield from verbs(command, of, f"{before}{name} ")
        else:
            yield of, f"{before}{name}", command
