"""Tables of printed cells, two columns of words before the numbers: what several reports share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from benchmark.report import numbers, text
from benchmark.report.values import Cell

Line = list[tuple[str, bool]]
"""Printed cells, and whether each is the best of its column."""


def item(found: Cell | None, unit: str, spread: bool) -> tuple[str, bool]:
    """A cell as it is printed, with its interval or without."""
    if found is None:
        return "", False
    value = numbers.number(found.value, unit)
    around = numbers.spread(found.value, found.low, found.high, unit) if spread else ""
    return f"{value} {around}".strip(), found.best


def span(ends: Sequence[float] | None) -> tuple[float, float] | None:
    """An interval as a record has it."""
    return None if ends is None else (float(ends[0]), float(ends[1]))


def padded(values: Sequence[str], wide: Sequence[int]) -> str:
    """A line of columns, words to the left and numbers to the right."""
    pairs = list(zip(values, wide, strict=True))
    cells = [v.ljust(w) for v, w in pairs[:2]] + [v.rjust(w) for v, w in pairs[2:]]
    return "  ".join(cells).rstrip()


def markdown(title: str, heads: Sequence[str], cells: Sequence[Line], notes: Sequence[str]) -> str:
    """A table as GitHub reads it."""
    lines = [f"### {text.md(title)}", ""]
    lines.append("| " + " | ".join(map(text.md, heads)) + " |")
    lines.append("|---|---|" + "---:|" * (len(heads) - 2))
    for line in cells:
        shown = [f"**{text.md(value)}**" if best else text.md(value) for value, best in line]
        lines.append("| " + " | ".join(shown) + " |")
    lines += ["", *(f"{text.md(note)}  " for note in _bold(notes))]
    return "\n".join(lines) + "\n"


def latex(
    title: str, slug: str, heads: Sequence[str], cells: Sequence[Line], notes: Sequence[str],
    ruled: Iterable[int] = (),
) -> str:  # fmt: skip
    """A booktabs table, with a rule above the lines ``ruled``."""
    above = set(ruled)
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "  \\centering",
        f"  \\caption{{{text.tex(title)}. {text.tex(' '.join(_bold(notes)))}}}",
        f"  \\label{{tab:{re.sub(r'[^A-Za-z0-9-]+', '-', slug)}}}",
        f"  \\begin{{tabular}}{{ll{'r' * (len(heads) - 2)}}}",
        "    \\toprule",
        "    " + " & ".join(map(text.tex, heads)) + r" \\",
        "    \\midrule",
    ]
    for i, line in enumerate(cells):
        if i in above:
            lines.append(f"    \\cmidrule{{1-{len(heads)}}}")
        shown = [f"\\textbf{{{text.tex(v)}}}" if best else text.tex(v) for v, best in line]
        lines.append("    " + " & ".join(shown) + r" \\")
    lines += ["    \\bottomrule", "  \\end{tabular}", "\\end{table}"]
    return "\n".join(lines) + "\n"


def _bold(lines: Iterable[str]) -> list[str]:
    return [line.replace("* is the best", "Bold is the best") for line in lines]
