"""Tables on a terminal: as many metrics side by side as fit, legible without colour."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmark.report import grid
from benchmark.report.table import Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_GAP = 2
_BETWEEN = 3
_PLAIN_WIDTH = 100
_ASCII = str.maketrans({"±": "~", "─": "-"})


@dataclass(frozen=True)
class _Strip:
    """A block with what its columns need: width of the value and of the ``±``."""

    block: grid.Block
    values: tuple[int, ...]
    spreads: tuple[int, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        """Width of each column."""
        pairs = zip(self.block.columns, self.values, self.spreads, strict=True)
        return tuple(
            max(len(c.narrow), len(c.role), value + (spread + 1 if spread else 0))
            for c, value, spread in pairs
        )

    @property
    def width(self) -> int:
        """Width of the whole block."""
        return max(sum(self.widths) + _GAP * (len(self.widths) - 1), len(self.block.label))


def plain(tables: Sequence[Table]) -> str:
    """Tables without any control character, 100 columns wide."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=_PLAIN_WIDTH, force_terminal=False, color_system=None)
    show(tables, console)
    return out.getvalue()


def show(tables: Sequence[Table], console: Console) -> None:
    """Print tables on a console."""
    for i, table in enumerate(tables):
        if i:
            console.print()
        for line in _lines(table, console):
            if console.options.ascii_only:
                line.plain = line.plain.translate(_ASCII)
            console.print(line, soft_wrap=not line.no_wrap, highlight=False, crop=False)


def _lines(table: Table, console: Console) -> Iterator[Text]:
    from rich.text import Text

    mark = not console.is_terminal
    labels = max(len(row.label) for row in table.rows)
    yield Text(table.title, "bold")
    for strips in _arranged(table, console.width - labels - _BETWEEN, mark):
        yield Text()
        yield from _heads(strips, labels)
        for i, row in enumerate(table.rows):
            if row.kind == "method" and (not i or table.rows[i - 1].kind != "method"):
                yield _rule(strips, labels)
            yield _row(table, i, strips, labels, mark)
    yield Text()
    best = f"{'* is' if mark else 'Bold is'} the best method of a {table.marks}."
    for note in (best, *table.notes):
        text = Text(note, "yellow" if note.startswith("Warning") else "dim")
        for line in text.wrap(console, min(console.width, 100)):
            line.rstrip()
            yield line


def _arranged(table: Table, room: int, mark: bool) -> Iterator[list[_Strip]]:
    """Metrics side by side while there is room; one too wide by itself is cut into two."""
    line: list[_Strip] = []
    used = 0
    for block in grid.blocks(table):
        for strip in _cut(_strip(block, mark), room):
            if line and used + _BETWEEN + strip.width > room:
                yield line
                line, used = [], 0
            used += strip.width + (_BETWEEN if line else 0)
            line.append(strip)
    if line:
        yield line


def _strip(block: grid.Block, mark: bool) -> _Strip:
    columns = range(len(block.columns))
    return _Strip(
        block,
        tuple(max(len(_value(row[i], mark)) for row in block.items) for i in columns),
        tuple(max(len(row[i].spread) for row in block.items) for i in columns),
    )


def _cut(strip: _Strip, room: int) -> Iterator[_Strip]:
    n = len(strip.widths)
    if strip.width <= room or n == 1:
        yield strip
        return
    fits = next(k for k in range(n - 1, 0, -1) if k == 1 or _part(strip, 0, k).width <= room)
    yield _part(strip, 0, fits)
    yield from _cut(_part(strip, fits, n), room)


def _part(strip: _Strip, start: int, stop: int) -> _Strip:
    block = replace(
        strip.block,
        columns=strip.block.columns[start:stop],
        items=tuple(row[start:stop] for row in strip.block.items),
    )
    return _Strip(block, strip.values[start:stop], strip.spreads[start:stop])


def _value(item: grid.Item, mark: bool) -> str:
    return f"*{item.text}" if mark and item.best else item.text


def _heads(strips: Sequence[_Strip], labels: int) -> Iterator[Text]:
    """Metrics, a rule under each, cases, and what the cases test."""
    from rich.text import Text

    top = [Text(strip.block.label.ljust(strip.width), "bold") for strip in strips]
    yield _joined("", top, labels)
    yield _joined("", [Text("─" * strip.width, "dim") for strip in strips], labels)
    for part, style in (("narrow", ""), ("role", "dim")):
        rows = []
        for strip in strips:
            cells = zip(strip.block.columns, strip.widths, strict=True)
            words = (" " * _GAP).join(getattr(c, part).rjust(w) for c, w in cells)
            rows.append(Text(words.ljust(strip.width), style))
        yield _joined("", rows, labels)


def _rule(strips: Sequence[_Strip], labels: int) -> Text:
    from rich.text import Text

    width = labels + sum(_BETWEEN + strip.width for strip in strips)
    return Text("─" * width, "dim", no_wrap=True)


def _row(table: Table, i: int, strips: Sequence[_Strip], labels: int, mark: bool) -> Text:
    from rich.text import Text

    row = table.rows[i]
    base = "" if row.kind == "method" else "italic"
    parts = []
    for strip in strips:
        part = Text(style=base)
        sizes = zip(strip.block.items[i], strip.widths, strip.spreads, strict=True)
        for k, (item, width, spread) in enumerate(sizes):
            part.append(" " * _GAP if k else "")
            room = width - (spread + 1 if spread else 0)
            value = _value(item, mark)
            part.append(" " * (room - len(value)))
            part.append(value, _style(item))
            if spread:
                part.append(f" {item.spread.ljust(spread)}", "dim")
        part.pad_right(strip.width - len(part))
        parts.append(part)
    return _joined(row.label, parts, labels)


def _style(item: grid.Item) -> str:
    # Blue and yellow differ for every kind of colour vision; the words say the same.
    words = {"yes": "bold blue", "no": "yellow"}
    return "bold" if item.best else words.get(item.text, "")


def _joined(label: str, parts: Sequence[Text], labels: int) -> Text:
    from rich.text import Text

    line = Text(label.ljust(labels), no_wrap=True)
    for part in parts:
        line.append(" " * _BETWEEN)
        line.append_text(part)
    line.rstrip()
    return line
