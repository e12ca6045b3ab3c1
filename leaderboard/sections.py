"""Parts of a board's page that not every protocol has, and its bounds and downloads."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.records.record import Record
from benchmark.report import backfilling, grid, notes, numbers, sides
from benchmark.report.table import Row, Table
from leaderboard.boards import Board

Line = list[tuple[str, bool]]


@dataclass(frozen=True)
class Printed:
    """A table of words and numbers.

    Attributes:
        lines: Printed cells, and whether each is the best of its column.
    """

    title: str
    heads: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Steps:
    """A sequence of updates: cases in rows, methods in columns, a block a metric."""

    rows: tuple[Row, ...]
    blocks: tuple[grid.Block, ...]
    notes: tuple[str, ...]


def bounds(board: Board) -> list[tuple[str, str, str]]:
    """Name, words and value of the bounds, in the metric that gives the rank."""
    about = numbers.metric(board.metric)
    found = []
    for row in board.bounds:
        cell = next((c for (key, _), c in row.cells.items() if key == board.metric), None)
        if row.kind == "independent" or cell is None or cell.value is None:
            continue
        spread = numbers.spread(cell.value, cell.low, cell.high, about.unit)
        value = f"{numbers.number(cell.value, about.unit)} {spread}".strip()
        found.append((row.label, f"{row.detail}, {about.label}", value))
    return found


def refill(records: Sequence[Record]) -> Printed | None:
    """Areas under the backfilling curves."""
    made = backfilling.make_tables(records)
    if not made:
        return None
    heads, lines = backfilling.printed(made[0])
    return Printed(made[0].title, tuple(heads), tuple(lines), bold(made[0].notes))


def side_tables(records: Sequence[Record]) -> list[Printed]:
    """What each kind of side-information costs and gives."""
    found = []
    for table in sides.make_tables(records):
        heads, lines = sides.printed(table)
        found.append(Printed(table.title, tuple(heads), tuple(lines), bold(table.notes)))
    return found


def bold(lines: Sequence[str]) -> tuple[str, ...]:
    """Notes of printed tables, where a page marks the best otherwise."""
    return tuple(line.replace("* is the best", "Bold is the best") for line in lines)


def steps(tables: Sequence[Table]) -> Steps | None:
    """The table of a sequence."""
    if not tables:
        return None
    return Steps(tables[0].rows, tuple(grid.blocks(tables[0])), tables[0].notes)


def csv_bytes(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """Rows as CSV, numbers in full precision, what is missing empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if v is None else _safe(v) for v in row] for row in rows)
    return out.getvalue().encode("utf-8", "replace")


def _safe(value: Any) -> Any:
    """A text that a spreadsheet does not take for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


@dataclass(frozen=True)
class Words:
    """What a protocol and a track say of themselves."""

    question: str
    note: str


def words(board: Board) -> Words:
    """Question of the protocol, note of the track."""
    return Words(notes.question(board.first), notes.track_note(board.first))
