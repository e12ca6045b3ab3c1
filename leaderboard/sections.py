"""Parts of a board's page that not every protocol has, and its bounds and downloads."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.records.record import Record
from benchmark.report import notes, numbers
from benchmark.report.tables import backfilling, sequence, side_information
from benchmark.report.text_table import TextRow, TextTable
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
    tables = backfilling.make_tables(records)
    return printed(tables[0]) if tables else None


def side_tables(records: Sequence[Record]) -> list[Printed]:
    """What each kind of side-information costs and gives."""
    return [printed(table) for table in side_information.make_tables(records)]


def printed(table: TextTable) -> Printed:
    """A table of one block."""
    (block,) = table.blocks
    heads = tuple(column.head for column in (*table.labels, *block.columns))
    lines = tuple(line(row, len(heads)) for row in table.rows)
    return Printed(table.title, heads, lines, tuple(table.bold_notes()))


def line(row: TextRow, width: int) -> Line:
    """Cells of a row, and whether each is the best of its column."""
    cells = [(cell.whole, cell.best) for cell in (*row.labels, *row.cells[0])]
    return cells + [("", False)] * (width - len(cells))


def steps(records: Sequence[Record]) -> TextTable | None:
    """The table of a sequence."""
    tables = sequence.make_tables(records)
    return tables[0] if tables else None


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
