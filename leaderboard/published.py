"""Tables of published numbers as papers print them, a method a line; never ranked."""

from collections.abc import Sequence

from benchmark.records.published import Number
from benchmark.report import numbers
from benchmark.report.text_table import TextCell, TextColumn, TextTable, simple_table

_MOST_COLUMNS = 8
_Line = tuple[str, ...]


def make_tables(published: Sequence[Number], *, paper: bool = False) -> list[TextTable]:
    """A table for each protocol and dataset, whose lines name their papers if ``paper``."""
    groups: dict[str, list[Number]] = {}
    for number in published:
        groups.setdefault(f"{number.protocol} on {number.dataset}", []).append(number)
    return [_table(title, members, paper) for title, members in groups.items()]


def _table(title: str, members: Sequence[Number], paper: bool) -> TextTable:
    """Metrics side by side, or cases, whichever is shorter."""
    pivots = {by: _pivot(members, by, paper) for by in ("metric", "case")}
    names = {by: list(dict.fromkeys(getattr(n, by) for n in members)) for by in pivots}
    narrow = [by for by in pivots if len(names[by]) <= _MOST_COLUMNS] or ["metric"]
    by = min(narrow, key=lambda by: len(pivots[by]))
    other = "case" if by == "metric" else "metric"
    words = ["table", "method", "variant", "models", other]
    heads = [TextColumn(_label(name, by) or "value") for name in names[by]]
    lines = []
    for line, values in pivots[by].items():
        cells = [TextCell(word) for word in (*line[:4], _label(line[4], other))]
        cells[3] = TextCell(line[3], look="wide")
        notes = dict.fromkeys(n.note for n in values.values() if n.note)
        printed = [_printed(values.get(name)) for name in names[by]]
        lines.append([*cells, *printed, TextCell("; ".join(notes), look="note")])
    # Words that no line has are left out; table and method are always known.
    kept = [i for i in range(len(lines[0])) if any(cells[i].text for cells in lines)]
    kept = sorted({0, 1, *range(5, 5 + len(heads))} | set(kept))
    every: list[str | TextColumn] = [*words, *heads, TextColumn("note", words=True)]
    n = sum(i < 5 for i in kept)
    return simple_table(
        title,
        "",
        [words[i] for i in kept[:n]],
        [every[i] for i in kept[n:]],
        [[cells[i] for i in kept] for cells in lines],
    )


def _pivot(members: Sequence[Number], by: str, paper: bool) -> dict[_Line, dict[str, Number]]:
    """Words of a line -> column -> number; what is printed twice has two lines."""
    lines: dict[_Line, dict[str, Number]] = {}
    for number in members:
        table = f"{number.paper}, {number.table}" if paper else number.table
        models = " to ".join(filter(None, (number.old_model, number.new_model)))
        other = number.case if by == "metric" else number.metric
        words = (table, number.method, number.variant, models, other)
        column, turn = getattr(number, by), 0
        while column in lines.setdefault((*words, str(turn)), {}):
            turn += 1
        lines[*words, str(turn)][column] = number
    return lines


def _label(name: str, kind: str) -> str:
    return numbers.metric(name).label if kind == "metric" and name else name


def _printed(number: Number | None) -> TextCell:
    if number is None:
        return TextCell(sort="", look="value")
    unit = {"%": " %", "M": " M"}.get(number.unit, "")
    spread = "" if number.std is None else f" ± {number.std:g}"
    return TextCell(f"{number.printed}{spread}{unit}", sort=repr(number.value), look="value")
