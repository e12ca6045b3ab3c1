"""Tables as HTML: fragments for the pages of a site, every text escaped."""

import html
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from benchmark.errors import printable
from benchmark.report.text_table import TextCell, TextColumn, TextRow, TextTable


# Names, labels and verdicts come again on thousands of pages.
@lru_cache(maxsize=1 << 16)
def escape(text: str) -> str:
    """Text for a page; control characters, and those that turn a line around, are shown."""
    return html.escape(printable(text))


@lru_cache(maxsize=1 << 16)
def _cell_text(text: str) -> str:
    """Text of a cell: a narrow one breaks no number from its unit, nor from its sign."""
    return escape(text).replace(" %", "&nbsp;%").replace("± ", "±&nbsp;")


def render(tables: Sequence[TextTable]) -> str:
    """Tables with their titles and notes, as a site without a style sheet of its own shows them."""
    return "".join(
        f"<section>\n<h3>{escape(table.title)}</h3>\n"
        + "".join(block(table, i) for i in range(len(table.blocks)))
        + f"{notes(table)}</section>\n"
        for table in tables
    )


def notes(table: TextTable) -> str:
    """The notes below a table, as a list; empty where there are none."""
    lines = "".join(f"<li>{escape(note)}</li>\n" for note in table.bold_notes())
    return f'<ul class="notes">\n{lines}</ul>\n' if lines else ""


def block(table: TextTable, i: int = 0, *, classes: str = "") -> str:
    """One block of a table.

    The class ``sortable`` makes buttons of the headings and gives cells their ``data-sort``.
    Without it the first label column of a grouped table becomes rows that head the groups.
    """
    sortable = "sortable" in classes.split()
    grouped = table.grouped and not sortable
    labels = table.labels
    if grouped:
        labels = (replace(labels[1], heading=True), *labels[2:])
    columns = (*labels, *table.blocks[i].columns)
    named = escape(table.blocks[i].label or table.title)
    lines = [
        f'<div class="scroll" tabindex="0" role="region" aria-label="{named}">',
        f"<table{_attribute('class', classes)}>",
        f"<thead><tr>{''.join(_head(c, sortable=sortable) for c in columns)}</tr></thead>",
    ]
    for key, rows in groupby(table.rows, lambda row: (row.kind, row.labels[0] if grouped else "")):
        lines.append(f"<tbody{_attribute('class', key[0])}>")
        if isinstance(key[1], TextCell):
            head = f'<th scope="rowgroup" colspan="{len(columns)}">{_inner(key[1])}</th>'
            lines.append(f'<tr class="group">{head}</tr>')
        for row in rows:
            cells = [*zip(columns, (*row.labels[grouped:], *row.cells[i]), strict=False)]
            lines.append(_row(row, cells, len(columns), sortable=sortable))
        lines.append("</tbody>")
    return "\n".join([*lines, "</table>", "</div>"]) + "\n"


def _head(column: TextColumn, *, sortable: bool) -> str:
    below = f"<small>{escape(column.below)}</small>" if column.below else ""
    words = f"{escape(column.head)}{below}"
    words = f'<button type="button">{words}</button>' if sortable else words
    return f'<th scope="col">{words}</th>'


def _row(
    row: TextRow, cells: Sequence[tuple[TextColumn, TextCell]], width: int, *, sortable: bool
) -> str:
    about = "".join(_attribute(name, value) for name, value in row.attributes.items())
    found = [_cell(column, cell, sortable=sortable) for column, cell in cells[:-1]]
    # The last cell spans what a short row leaves.
    found += [_cell(*cell, width - len(cells) + 1, sortable=sortable) for cell in cells[-1:]]
    return f"<tr{about}>{''.join(found)}</tr>"


def _cell(column: TextColumn, cell: TextCell, span: int = 1, *, sortable: bool) -> str:
    # A site has millions of cells, most of them without any attribute; a field of a named tuple
    # costs more than a variable.
    _, _, best, _, sort, look, _, hint, _, _ = cell
    about = f' colspan="{span}"' if span > 1 else ""
    if sortable and sort is not None:
        about += f' data-sort="{escape(sort)}"'
    is_left = column.words and not column.heading
    if best or look or is_left:
        looks = ("best" * best, look, "left" * is_left)
        about += _attribute("class", " ".join(filter(None, looks)))
    if hint:
        about += _attribute("title", hint)
    tag = 'th scope="row"' if column.heading else "td"
    return f"<{tag}{about}>{_inner(cell)}</{tag[:2]}>"


def _inner(cell: TextCell) -> str:
    words, spread, best, small, _, _, href, _, code, parts = cell
    text = _cell_text(words)
    if code:
        text = f"<code>{text}</code>"
    if best:
        text = f"<strong>{text}</strong>"
    if href:
        text = f'<a href="{escape(href)}">{text}</a>'
    if spread:
        text += f" <small>{_cell_text(spread)}</small>"
    if small:
        text += f" <small>{_cell_text(small)}</small>"
    for part in parts:
        about = _attribute("class", part.look) + _attribute("title", part.hint)
        text += f" <span{about}>{_inner(part)}</span>"
    return text


def _attribute(name: str, value: str) -> str:
    return f' {name}="{escape(value)}"' if value else ""
