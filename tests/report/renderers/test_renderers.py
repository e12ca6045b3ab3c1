"""Tables as text: escaping is right in each form."""

from __future__ import annotations

import csv
import dataclasses
import io

import pytest

from benchmark.errors import BenchError
from benchmark.report.renderers import render, terminal
from benchmark.report.text_table import TextTable, simple_table

NASTY = r"a_b & 50% $x$ #1 {y} ~z ^w \n | *bold* `code` <script>alert(1)</script> [l](http://x)"
LINES = "one\ntwo\x1b[2J\x07"


def table(cell: str = NASTY) -> TextTable:
    return simple_table(
        cell, "a b/c:d", ["name"], ["value"], [[cell, "-1.50 to +2"], ["plain", "3"]],
        notes=(cell,), columns=("name", "value"), values=([cell, -0.015], ["x", None]),
    )  # fmt: skip


def test_csv_gives_back_what_was_given() -> None:
    for cell in (NASTY, LINES, 'quoted "here", there'):
        rows = list(csv.reader(io.StringIO(render([table(cell)] * 2, "csv"), newline="")))
        assert rows[0] == ["name", "value"]
        assert rows[1:] == [[cell, "-0.015"], ["x", ""]] * 2


def test_latex() -> None:
    out = render([table()], "latex")
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
    out = render([table()], "markdown")
    row = out.splitlines()[4]
    assert row.count(" | ") == 1
    assert r"a\_b" in row
    assert r"\*bold\*" in row
    assert "<script" not in out.replace(r"\<script", "")
    assert r"\[l\](http" in row
    assert "| one two" in render([table(LINES)], "markdown")


def test_terminal_takes_no_markup() -> None:
    """Brackets of rich's are text, in every place."""
    block = dataclasses.replace(table("[/] [bold]x[/bold] [[").blocks[0], label="[/] [red]")
    out = render([dataclasses.replace(table("[/] [bold]x[/bold] [["), blocks=[block])], "terminal")
    assert out.count("[/] [bold]x[/bold] [[") == 3
    assert "[/] [red]" in out


def test_terminal_has_no_control_characters() -> None:
    out = render([table(LINES)], "terminal")
    assert "\x1b" not in out
    assert "\x07" not in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_unknown_form() -> None:
    with pytest.raises(BenchError, match="unknown form 'json'"):
        render([table()], "json")


@pytest.mark.parametrize("names", [("a", "b"), ("a", "a")])
def test_a_terminal_repeats_long_labels_only_where_they_name_the_rows(names):
    long, heads = "words " * 16, ["value", "rule " * 12, "records " * 8]
    lines = [[name, f"{long}{k}", "1", "2", "3"] for k, name in enumerate(names)]
    shown = terminal.plain([simple_table("T", "t", ("claim", "says"), heads, lines)])
    assert shown.count("claim") == 3
    assert shown.count("says") == (1 if len({*names}) == 2 else 3)
