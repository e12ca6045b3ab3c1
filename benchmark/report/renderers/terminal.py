"""Tables on a terminal: as many columns side by side as fit, legible without colour."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from benchmark.report.text_table import TextCell, TextColumn, TextTable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_WIDTH = 100
_GAP = 2
_BETWEEN = 3
# A rule below the headings and between sections.
_BOX = "    \n    \n ── \n    \n ── \n    \n    \n    \n"
_ASCII = str.maketrans({"±": "~", "─": "-"})
# Blue and yellow differ for every kind of colour vision; the words say the same.
_STYLES = {"yes": "bold blue", "no": "yellow"}


def plain(tables: Sequence[TextTable]) -> str:
    """Tables without any control character, as wide as the terminal or 100 columns."""
    from rich.console import Console

    out = io.StringIO()
    show(tables, Console(file=out, width=_width(), force_terminal=False, color_system=None))
    return out.getvalue()


def show(tables: Sequence[TextTable], console: Console | None = None) -> None:
    """Print tables, as wide as the console; bold and colour only on a terminal."""
    from rich.console import Console

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
    from rich.table import Table
    from rich.text import Text

    if table.title:
        console.print(Text(_safe(table.title), "bold"))
    two = any(c.below for c in table.labels + sum((b.columns for b in table.blocks), ()))
    labels = [_labels(table, i, two=two) for i in range(len(table.labels))]
    for spread in (True, False):
        blocks = _blocks(table, two=two, spread=spread, mark=not console.is_terminal)
        strips = list(_strips(table, labels, blocks, console.width))
        if len(strips) == 1 or not table.compact:
            break
    for strip in strips:
        grid = Table.grid(padding=(0, _BETWEEN, 0, 0), pad_edge=False)
        parts: list[Table] = []
        for i, columns in strip:
            beside = [blocks[i][k] for k in columns]
            parts.append(_part(table, table.blocks[i].label, [] if parts else labels, beside))
        grid.add_row(*parts)
        console.print()
        console.print(grid if len(parts) > 1 else parts[0])
    notes = table.bold_notes() if console.is_terminal else table.notes
    if notes:
        console.print()
    for note in notes:
        style = "yellow" if note.startswith("Warning") else "dim"
        console.print(Text(_safe(note), style), width=min(console.width, _WIDTH))


def _labels(table: TextTable, i: int, *, two: bool) -> list[Text]:
    """A heading, then a text for each row; of a group's first label only the first one."""
    from rich.text import Text

    texts = [_head(table.labels[i], two=two)]
    last = None
    for row in table.rows:
        again = table.grouped and not i and row.labels[0] == last
        texts.append(Text("" if again else _safe(row.labels[i].text)))
        last = row.labels[0]
    return texts


def _blocks(table: TextTable, *, two: bool, spread: bool, mark: bool) -> list[list[list[Text]]]:
    """Block by block its columns: a heading, then a text for each row."""
    blocks = []
    for i, block in enumerate(table.blocks):
        columns = []
        for k, column in enumerate(block.columns):
            cells = [row.cells[i][k] if k < len(row.cells[i]) else TextCell() for row in table.rows]
            columns.append([_head(column, two=two), *_texts(cells, spread=spread, mark=mark)])
        blocks.append(columns)
    return blocks


def _head(column: TextColumn, *, two: bool) -> Text:
    from rich.text import Text

    head = _safe(column.short or column.head)
    return Text.assemble(head, (f"\n{_safe(column.below)}" if two else "", "dim"))


def _texts(cells: Sequence[TextCell], *, spread: bool, mark: bool) -> Iterator[Text]:
    """Values stand below one another, and so do their intervals."""
    from rich.text import Text

    values = [f"{'*' if mark and cell.best else ''}{_safe(cell.text)}" for cell in cells]
    width = max(map(len, values), default=0)
    around = max((len(cell.spread) for cell in cells if spread), default=0)
    for cell, value in zip(cells, values, strict=True):
        style = "bold" if cell.best else _STYLES.get(cell.text, "")
        beside = f" {cell.spread.ljust(around)}" if around else ""
        yield Text.assemble(" " * (width - len(value)), (value, style), (beside, "dim"))


def _strips(
    table: TextTable,
    labels: Sequence[list[Text]],
    blocks: Sequence[Sequence[list[Text]]],
    width: int,
) -> Iterator[list[tuple[int, list[int]]]]:
    """Blocks, with those of their columns that fit, side by side while there is room."""
    beside = sum(_widest(column) + _GAP for column in labels)
    strip: list[tuple[int, list[int]]] = []
    used = 0
    for i, columns in enumerate(blocks):
        for part in _parts([_widest(column) for column in columns], width - beside):
            wide = sum(_widest(columns[k]) + _GAP for k in part) - _GAP
            wide = max(wide, len(table.blocks[i].label))
            if strip and used + _BETWEEN + wide > width:
                yield strip
                strip, used = [], 0
            used += wide + (_BETWEEN if strip else beside)
            strip.append((i, part))
    if strip:
        yield strip


def _parts(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Columns that fit, again and again."""
    part: list[int] = []
    used = 0
    for k, wide in enumerate(widths):
        if part and used + wide > room:
            yield part
            part, used = [], 0
        part.append(k)
        used += wide + _GAP
    yield part


def _widest(column: Sequence[Text]) -> int:
    from rich.cells import cell_len

    return max(cell_len(line) for text in column for line in text.plain.split("\n"))


def _part(
    table: TextTable, title: str, labels: Sequence[list[Text]], columns: Sequence[list[Text]]
) -> Table:
    """Some columns of a block, with the rows' labels or without."""
    from rich.box import Box
    from rich.table import Table

    part = Table(
        title=_safe(title) or None, title_justify="left", title_style="bold", pad_edge=False,
        min_width=len(title), box=Box(_BOX, ascii=True), show_edge=False, padding=(0, 0, 0, 1),
    )  # fmt: skip
    for column in labels:
        part.add_column(column[0])
    for column in columns:
        part.add_column(column[0], justify="right", no_wrap=True)
    lines = zip(*(column[1:] for column in (*labels, *columns)), strict=True)
    for (ruled, row), line in zip(table.ruled(), lines, strict=True):
        if ruled:
            part.add_section()
        part.add_row(*line, style="italic" if row.kind == "bound" else None)
    return part


def _safe(text: str) -> str:
    """Text on one line, without what moves a terminal's cursor."""
    return "".join(char if char.isprintable() else " " for char in text)
