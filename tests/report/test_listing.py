"""Lists as text: escaping is right in each form."""

from __future__ import annotations

import csv
import io

import pytest
from benchmark.report.listing import Listing, render

from benchmark.errors import BenchError

NASTY = r"a_b & 50% $x$ #1 {y} ~z ^w \n | *bold* `code` <script>alert(1)</script> [l](http://x)"
LINES = "one\ntwo\x1b[2J\x07"


def listing(cell: str = NASTY) -> Listing:
    return Listing(
        title=cell,
        heads=("name", "value"),
        lines=[[cell, "-1.50 to +2"], ["plain", "3"]],
        words=1,
        notes=[cell],
        slug="a b/c:d",
        columns=("name", "value"),
        values=[[cell, -0.015], ["x", None]],
    )


def test_csv_gives_back_what_was_given() -> None:
    for cell in (NASTY, LINES, 'quoted "here", there'):
        rows = list(csv.reader(io.StringIO(render([listing(cell)] * 2, "csv"), newline="")))
        assert rows[0] == ["name", "value"]
        assert rows[1:] == [[cell, "-0.015"], ["x", ""]] * 2


def test_latex() -> None:
    out = render([listing()], "latex")
    assert out.startswith("% needs \\usepackage{booktabs}\n\\begin{table}")
    for mark in ("\\toprule", "\\midrule", "\\bottomrule", "\\end{table}", "{lr}"):
        assert mark in out
    row = next(line for line in out.splitlines() if line.lstrip().startswith("a"))
    assert r"a\_b \& 50\% \$x\$ \#1 \{y\} \textasciitilde{}z \textasciicircum{}w" in row
    assert r"\textbackslash{}n" in row
    assert r"\textless{}script\textgreater{}" in row
    assert row.endswith(r"& $-1.50$ to $+2$ \\")
    assert "\\label{tab:a-b-c-d}" in out


def test_markdown() -> None:
    out = render([listing()], "markdown")
    row = out.splitlines()[4]
    assert row.count(" | ") == 1
    assert r"a\_b" in row
    assert r"\*bold\*" in row
    assert "<script" not in out.replace(r"\<script", "")
    assert r"\[l\](http" in row
    assert "| one two" in render([listing(LINES)], "markdown")


def test_terminal_has_no_control_characters() -> None:
    out = render([listing(LINES)], "terminal")
    assert "\x1b" not in out
    assert "\x07" not in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_unknown_form() -> None:
    with pytest.raises(BenchError, match="unknown form 'html'"):
        render([listing()], "html")
