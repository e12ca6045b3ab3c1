"""Tables of this folder's README from the figures beside it: ``python -m benchmark.perf.readme``.

``bench perf NAME --json benchmark/perf/figures/FILE.json`` writes the figures. In the README a
comment names the files whose tables stand below it, ``<!-- end -->`` closes the place::

    <!-- figures: ranking ranking-few -->
    <!-- end -->
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark.report import TextTable, render
from benchmark.report.text_table import simple_table

README = Path(__file__).with_name("README.md")
FIGURES = Path(__file__).with_name("figures")
_PLACE = re.compile(r"(<!-- figures: (.+?) -->\n).*?(<!-- end -->)", re.S)
_PACKAGES = ("python", "numpy", "numba", "torch")


def renewed(text: str) -> str:
    """A README's text with the tables that the figures give now."""
    return _PLACE.sub(lambda place: f"{place[1]}{_tables(place[2].split())}\n{place[3]}", text)


def text_table(parts: Sequence[tuple[str, Sequence[dict[str, Any]]]]) -> TextTable:
    """Rows of benchmarks as a table.

    Args:
        parts: Command, shown in its first row unless all are empty, and rows with the same keys in
            all parts; columns without any value are left out.
    """
    every = [row for _, rows in parts for row in rows]
    keys = [key for key in every[0] if any(row[key] is not None for row in every)]
    commands = any(command for command, _ in parts)
    lines = [
        [f"`{command}`" if i == 0 else ""] * commands + [_text(row[key]) for key in keys]
        for command, rows in parts
        for i, row in enumerate(rows)
    ]
    heads = ["command"] * commands + [key.replace("_", " ") for key in keys]
    words = commands + ("name" in keys)
    return simple_table("", "", heads[:words], heads[words:], lines)


def _tables(names: Sequence[str]) -> str:
    """One table of several files, and where its figures come from."""
    documents = [json.loads((FIGURES / f"{name}.json").read_text()) for name in names]
    table = text_table([(each["command"], each["rows"]) for each in documents])
    notes = dict.fromkeys(_origin(each) for each in documents)
    loads = [load for each in documents for load in each["load"]]
    return "\n".join([render(table, "markdown"), *notes, f"Load {min(loads):g} to {max(loads):g}."])


def _origin(document: dict[str, Any]) -> str:
    hardware, packages = document["hardware"], document["packages"]
    versions = ", ".join(f"{name} {packages[name]}" for name in _PACKAGES)
    commit = document["code"]["commit"] or document["code"]["version"]
    return (
        f"Measured on {document['date']} on {hardware['cores']} cores of {hardware['cpu']}, "
        f"commit {commit[:7]}; {versions}."
    )


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return "" if value is None else str(value)


if __name__ == "__main__":
    README.write_text(renewed(README.read_text(encoding="utf-8")), encoding="utf-8")
