"""Printed tables: one model of titles, columns and cells, which every renderer takes.

What a table is made of stands in :mod:`benchmark.report.scores` (numbers) and
:mod:`benchmark.report.tables` (a module for each kind of table); how it is written down in
:mod:`benchmark.report.renderers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import NamedTuple, TypeVar

from benchmark.metrics.estimate import Estimate
from benchmark.report import numbers

NOT_APPLICABLE = "n/a"
K = TypeVar("K")


# A site has millions of cells; a named tuple is made in a third of a dataclass's time.
class TextCell(NamedTuple):
    """A printed cell."""

    text: str = ""  # the value, or words
    spread: str = ""  # its ``±1.2``; left out where room is dear
    best: bool = False  # whether it is marked as the best
    small: str = ""  # further words, which a terminal leaves out
    # what an HTML column sorts by; ``""`` comes last, None leaves it to the text
    sort: str | None = None
    look: str = ""  # classes of the style sheet (HTML)
    href: str = ""  # where it links to (HTML)
    hint: str = ""  # what a pointer over it shows (HTML)
    code: bool = False  # whether it is code (HTML)
    parts: tuple[TextCell, ...] = ()  # what follows in the same cell (HTML)

    @property
    def whole(self) -> str:
        """Value and interval."""
        return f"{self.text} {self.spread}".strip()

    @property
    def full(self) -> str:
        """Words and further words."""
        return ", ".join(filter(None, (self.whole, self.small)))


@dataclass(frozen=True)
class TextColumn:
    """A heading."""

    head: str  # ``new/old``
    below: str = ""  # what stands below it, ``cross-test``
    short: str = ""  # a shorter heading, for terminals
    words: bool = False  # whether its cells are words, to the left, rather than numbers
    heading: bool = False  # whether its cells name their rows (HTML)

    @property
    def full(self) -> str:
        """Heading and what stands below."""
        return f"{self.head} {self.below}".strip()


@dataclass(frozen=True)
class TextBlock:
    """Columns that belong together, those of one metric; the label is empty in simple tables."""

    label: str
    columns: tuple[TextColumn, ...]


@dataclass(frozen=True)
class TextRow:
    """A row."""

    labels: tuple[TextCell, ...]  # a cell for each of the table's label columns
    # block by block a cell for each column; where there are fewer, the last one spans the rest
    cells: tuple[tuple[TextCell, ...], ...]
    # class of the rows; a rule stands between kinds. ``bound`` is printed in italics.
    kind: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)  # of the HTML row, ``data-method``


@dataclass(frozen=True)
class TextTable:
    """A table as it is printed, whatever the form."""

    title: str  # above it
    slug: str  # a name for files and labels
    labels: tuple[TextColumn, ...]  # columns at the left, which all blocks share
    blocks: tuple[TextBlock, ...]  # what stands beside them
    rows: tuple[TextRow, ...]  # cells
    # below it; ``* is the best`` becomes ``Bold is the best`` where the best is bold
    notes: tuple[str, ...] = ()
    grouped: bool = False  # whether rows with the same first label belong together
    # whether intervals that do not fit are left out before columns go below each other
    compact: bool = False
    columns: tuple[str, ...] = ()  # names of the columns of CSV
    values: tuple[Sequence[object], ...] = ()  # rows of CSV, numbers in full precision

    def bold_notes(self) -> list[str]:
        """Notes of a form that prints the best in bold."""
        return [note.replace("* is the best", "Bold is the best") for note in self.notes]

    def ruled(self) -> Iterator[tuple[bool, TextRow]]:
        """Rows, and whether each begins a new kind or group."""
        for i, row in enumerate(self.rows):
            last = self.rows[i - 1]
            other = self.grouped and row.labels[0] != last.labels[0]
            yield bool(i) and (row.kind != last.kind or other), row


def simple_table(
    title: str,
    slug: str,
    words: Sequence[str],
    heads: Sequence[str | TextColumn],
    lines: Sequence[Sequence[str | TextCell]],
    data: Sequence[Mapping[str, object]] = (),
    **fields: object,
) -> TextTable:
    """A table of one block without label.

    Its columns are ``words``, of which the first names the rows, then ``heads`` of numbers; lines
    have a cell or a text for each. ``data`` are rows of CSV by column, the same for all.
    """
    n = len(words)
    cells = [[c if isinstance(c, TextCell) else TextCell(c) for c in line] for line in lines]
    labels = [TextColumn(head, words=True, heading=not i) for i, head in enumerate(words)]
    block = TextBlock("", tuple(TextColumn(h) if isinstance(h, str) else h for h in heads))
    rows = tuple(TextRow(tuple(line[:n]), (tuple(line[n:]),)) for line in cells)
    if data:
        fields |= {"columns": tuple(data[0]), "values": tuple([*row.values()] for row in data)}
    return TextTable(title, slug, tuple(labels), (block,), rows, **fields)  # type: ignore[arg-type]


def table_of_blocks(
    title: str, slug: str, labels: Iterable[tuple[TextCell, str]],
    blocks: Sequence[tuple[TextBlock, Sequence[tuple[TextCell, ...]]]], **fields: object,
) -> TextTable:  # fmt: skip
    """A table of several blocks with their rows, of which each has a label and a kind."""
    rows = tuple(
        TextRow((label,), tuple(cells[i] for _, cells in blocks), kind)
        for i, (label, kind) in enumerate(labels)
    )
    head = (TextColumn("", words=True, heading=True),)
    made = tuple(block for block, _ in blocks)
    return TextTable(title, slug, head, made, rows, **fields)  # type: ignore[arg-type]


def shown_table(
    title: str, slug: str, words: Sequence[str], heads: Sequence[str],
    lines: Sequence[Sequence[str]], **fields: object,
) -> TextTable:  # fmt: skip
    """A simple table whose CSV has what it shows."""
    rows = [dict(zip((*words, *heads), line, strict=True)) for line in lines]
    return simple_table(title, slug, words, heads, lines, rows, **fields)


def score_cell(
    score: Estimate | None,
    unit: str = "share",
    *,
    best: bool = False,
    signed: bool = False,
    spread: bool = True,
) -> TextCell:
    """A score as it is printed; blank where there is none, a dash where it has no value.

    Example:
        >>> score_cell(Estimate(0.5, 0.49, 0.52)).whole
        '50.0 ±2.0'
    """
    if score is None:
        return TextCell()
    around = numbers.spread(score.value, score.low, score.high, unit) if spread else ""
    sort = "" if score.value is None else f"{score.value:.6g}"
    return TextCell(numbers.number(score.value, unit, signed=signed), around, best, sort=sort)


def score_cells(
    scores: Mapping[K, Estimate | None],
    metric: str,
    rivals: Iterable[K],
    *,
    larger: bool = False,
    spread: bool = True,
    signed: bool = False,
) -> dict[K, TextCell]:
    """The cells of a column or row of one metric, the best of the rivals marked.

    ``larger``: more is better whatever the metric's direction.
    """
    known = {key: None if s is None else s.value for key, s in scores.items()}
    best = numbers.best({key: known[key] for key in rivals}, metric, larger=larger)
    unit = numbers.metric(metric).unit
    return {
        key: score_cell(score, unit, best=key in best, spread=spread, signed=signed)
        for key, score in scores.items()
    }


def filled_block(
    label: str, columns: Sequence[TextColumn], rows: Sequence[Sequence[TextCell]], tied: int = 0
) -> tuple[TextBlock, list[tuple[TextCell, ...]]]:
    """A block of the columns that hold a value, and its rows; the first column if none does.

    A case that a metric does not have has no column of dashes. Rows that are shorter, as those of
    methods that are not applicable, say nothing. The last ``tied`` columns stay where the one
    before them does.
    """
    full = [row for row in rows if len(row) == len(columns)]
    kept = [any(row[i].text not in ("", numbers.DASH) for row in full) for i in range(len(columns))]
    kept = kept if any(kept) else [not i for i in range(len(columns))]
    for i in range(len(columns) - tied, len(columns)):
        kept[i] = kept[i - 1]
    block = TextBlock(label, tuple(compress(columns, kept)))
    return block, [tuple(compress(row, kept)) for row in rows]
