"""Tables on a terminal: as many columns side by side as fit, legible without colour."""

import io
import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rich.box import Box
from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmark.errors import printable
from benchmark.report.text_table import TextCell, TextColumn, TextTable

_WIDTH = 100
_GAP = 2
# A rule below the headings and between sections.
_BOX = "    \n    \n ── \n    \n ── \n    \n    \n    \n"
_ASCII = str.maketrans({"±": "~", "─": "-"})
# Blue and yellow differ for every kind of colour vision; the words say the same.
_STYLES = {"yes": "bold blue", "no": "yellow"}


def plain(tables: Sequence[TextTable]) -> str:
    """Tables without any control character, as wide as the terminal or 100 columns."""
    out = io.StringIO()
    show(tables, Console(file=out, width=_width(), force_terminal=False, color_system=None))
    return out.getvalue()


def show(tables: Sequence[TextTable], console: Console | None = None) -> None:
    """Print tables, as wide as the console; bold and colour only on a terminal."""
    console = console or Console(width=_width())
    with console.capture() as captured:
        for i, table in enumerate(tables):
            if i:
                console.print()
            _show(table, console)
    lines = captured.get().translate(_ASCII if console.options.ascii_only else {}).splitlines()
    if not console.is_terminal:
        lines = [line.rstrip() for line in lines]
    console.file.write("".join(f"{line}\n" for line in lines))


def _width() -> int:
    return shutil.get_terminal_size((_WIDTH, 24)).columns


def _show(table: TextTable, console: Console) -> None:
    if table.title:
        console.print(Text(_safe(table.title), "bold"))
    parts = list(_parts(table, console, spread=True))
    if table.compact and len(parts) > 1:
        parts = list(_parts(table, console, spread=False))
    console.print(end="\n" if table.title else "")
    console.print(Columns(parts, padding=(0, _GAP + 1, 0, 0)))
    below = table.bold_notes() if console.is_terminal else table.notes
    for note in ["", *below] if below else ():
        style = "yellow" if note.startswith("Warning") else "dim"
        console.print(Text(_safe(note), style), width=min(console.width, _WIDTH))


def _parts(table: TextTable, console: Console, *, spread: bool) -> Iterator[Table]:
    """Blocks, cut into several where they are too wide for the console.

    Where the first labels name the rows, later parts have no others.
    """
    labels = [_label_column(table, i) for i in range(len(table.labels))]
    first = [row.labels[0].text for row in table.rows if row.labels]
    later = labels[:1] if len({*first}) == len(first) else labels
    for i, block in enumerate(table.blocks):
        part: list[list[Text]] = []
        for k, column in enumerate(block.columns):
            cells = [row.cells[i][k] if k < len(row.cells[i]) else TextCell() for row in table.rows]
            mark = not console.is_terminal
            texts = [_head(table, column), *_texts(cells, spread=spread, mark=mark)]
            wide = sum(_widest(each) + _GAP for each in [*labels, *part, texts]) - _GAP
            if part and wide > console.width:
                yield _part(table, block.label, labels, part)
                part, labels = [], later
            part.append(texts)
        yield _part(table, block.label, labels, part)
        labels = later


def _label_column(table: TextTable, i: int) -> list[Text]:
    """A heading, then a text for each row; of a group's first label only the first one."""
    words = [row.labels[i].text for row in table.rows]
    if table.grouped and not i:
        words[1:] = [word if word != last else "" for last, word in pairwise(words)]
    return [_head(table, table.labels[i]), *(Text(_safe(word)) for word in words)]


def _head(table: TextTable, column: TextColumn) -> Text:
    """A heading, of two lines in a table where any has two."""
    two = any(each.below for block in table.blocks for each in block.columns)
    below = f"\n{_safe(column.below)}" if two else ""
    return Text.assemble(_safe(column.short or column.head), (below, "dim"))


def _texts(cells: Sequence[TextCell], *, spread: bool, mark: bool) -> Iterator[Text]:
    """Values stand below one another, and so do their intervals."""
    values = [f"{'*' if mark and cell.best else ''}{_safe(cell.text)}" for cell in cells]
    width = max(map(len, values), default=0)
    around = max((len(cell.spread) for cell in cells if spread), default=0)
    for cell, value in zip(cells, values, strict=True):
        style = "bold" if cell.best else _STYLES.get(cell.text, "")
        beside = f" {cell.spread.ljust(around)}" if around else ""
        yield Text.assemble(" " * (width - len(value)), (value, style), (beside, "dim"))


def _widest(column: Sequence[Text]) -> int:
    return max(cell_len(line) for text in column for line in text.plain.split("\n"))


def _part(
    table: TextTable, title: str, labels: Sequence[list[Text]], columns: Sequence[list[Text]]
) -> Table:
    """Some columns of a block beside the labels of the rows.

    Headings are a row, as rich's own stand at the bottom: a label belongs beside the first line.
    """
    part = Table(
        title=Text(_safe(title), "bold") if title else None, title_justify="left", pad_edge=False,
        min_width=len(title), box=Box(_BOX, ascii=True), show_edge=False, padding=(0, 0, 0, 1),
        show_header=False,
    )  # fmt: skip
    for _ in labels:
        part.add_column()
    for _ in columns:
        part.add_column(justify="right", no_wrap=True)
    heads, *lines = zip(*(*labels, *columns), strict=True)
    part.add_row(*heads, style="bold", end_section=True)
    for (ruled, row), line in zip(table.ruled(), lines, strict=True):
        if ruled:
            part.add_section()
        part.add_row(*line, style="italic" if row.kind == "bound" else None)
    return part


def _safe(text: str) -> str:
    """Text on one line; what would move a terminal's cursor is shown."""
    return printable(text.replace("\n", " ").replace("\t", " "))
