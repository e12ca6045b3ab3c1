"""Tables of this folder's README from the figures beside it: ``python -m benchmark.perf.readme``.

``bench perf NAME --json benchmark/perf/figures/FILE.json`` writes the figures; ``make figures``
writes all. In the README a comment names the files whose tables stand below it, ``<!-- end -->``
closes the place::

    <!-- figures: ranking ranking-few -->
    <!-- end -->
"""

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


def table(rows: Sequence[dict[str, Any]], title: str = "", notes: Sequence[str] = ()) -> TextTable:
    """Rows of a benchmark as a table; columns without any value are left out."""
    keys = [key for key in rows[0] if any(row[key] is not None for row in rows)]
    names = keys[:1] if keys[0] == "name" else []
    heads = [key.replace("_", " ") for key in keys[len(names) :]]
    lines = [[_text(row[key]) for key in keys] for row in rows]
    return simple_table(title, "", names, heads, lines, notes=tuple(notes))


def renewed(text: str) -> str:
    """A README's text with the tables that the figures give now; one not measured has no table."""

    def tables(place: re.Match[str]) -> str:
        paths = [FIGURES / f"{name}.json" for name in place[2].split()]
        documents = [json.loads(path.read_text()) for path in paths if path.is_file()]
        shown = [table(each["rows"], each["command"], [_origin(each)]) for each in documents]
        return place[1] + render(shown, "markdown") + place[3]

    return _PLACE.sub(tables, text)


def _origin(document: dict[str, Any]) -> str:
    hardware = document["hardware"]
    versions = ", ".join(f"{name} {document['packages'][name]}" for name in _PACKAGES)
    commit = document["code"]["commit"] or document["code"]["version"]
    first, last = document["load"]
    return (
        f"Measured on {document['date']} on {hardware['cores']} cores of {hardware['cpu']}, "
        f"commit {commit[:7]}; {versions}. Load {first:g} to {last:g}."
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    README.write_text(renewed(README.read_text(encoding="utf-8")), encoding="utf-8")
