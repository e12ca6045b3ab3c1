"""Tables as GitHub's Markdown: one for each block."""

import re
from collections.abc import Iterator, Sequence

from benchmark.report.text_table import TextBlock, TextCell, TextTable


def render(tables: Sequence[TextTable]) -> str:
    """Tables with their titles and notes."""
    return "\n".join("\n".join(_lines(table)) + "\n" for table in tables)


def _lines(table: TextTable) -> Iterator[str]:
    if table.title:
        yield f"### {escape(table.title)}"
    for i, block in enumerate(table.blocks):
        yield ""
        yield _line([escape(head) for head in _heads(table, block)])
        yield "|" + "---|" * len(table.labels) + "---:|" * len(block.columns)
        for row in table.rows:
            labels = [escape(label.full) for label in row.labels]
            cells = [_cell(cell) for cell in row.cells[i]]
            yield _line([*labels, *cells, *[""] * (len(block.columns) - len(cells))])
    yield ""
    yield from (f"{escape(note)}  " for note in table.bold_notes())


def _heads(table: TextTable, block: TextBlock) -> list[str]:
    """A block's label stands above the labels of the rows."""
    heads = [column.full for column in (*table.labels, *block.columns)]
    return [f"{block.label} {heads[0]}".strip(), *heads[1:]]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: TextCell) -> str:
    return f"**{escape(cell.text)}** {cell.spread}".strip() if cell.best else escape(cell.full)


def escape(text: str) -> str:
    """Text that Markdown and HTML leave alone, on one line; what stands in backticks stays code."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    parts[::2] = [re.sub(r"([\\`*_\[\]<>|&~#])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [part.replace("|", r"\|") for part in parts[1::2]]
    return "".join(parts)
