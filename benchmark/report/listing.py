"""Lists of lines with words and numbers, as text: what comparisons and published numbers share."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmark.errors import BenchError
from benchmark.report.text import md, tex

FORMS = ("terminal", "csv", "markdown", "latex")
_WIDTH = 100
_SIGNED = re.compile(r"(?<!\S)[-+]\d[\d.]*")  # outside of math LaTeX prints a hyphen


@dataclass(frozen=True)
class Listing:
    """A table of text.

    Attributes:
        title: Above it.
        heads: Name of each column.
        lines: Cells as printed.
        words: How many columns, from the left, are words; the others are numbers.
        notes: Below it.
        slug: A name for LaTeX labels.
        columns: Names of the columns of CSV.
        values: Cells of CSV, in full precision.
    """

    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    words: int
    notes: Sequence[str]
    slug: str
    columns: Sequence[str]
    values: Sequence[Sequence[object]]


def render(listings: Sequence[Listing], form: str) -> str:
    """Listings as text, ending with a line break; CSV has one heading for all.

    Raises:
        BenchError: If the form is unknown.
    """
    if form not in FORMS:
        raise BenchError(f"unknown form '{form}' (there are: {', '.join(FORMS)})")
    if form == "csv":
        return _csv(listings)
    forms = {"terminal": _terminal, "markdown": _markdown, "latex": _latex}
    return "\n".join("\n".join(forms[form](listing)) + "\n" for listing in listings)


def _csv(listings: Sequence[Listing]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for i, listing in enumerate(listings):
        if not i:
            writer.writerow(listing.columns)
        writer.writerows(
            [repr(v) if isinstance(v, float) else "" if v is None else v for v in row]
            for row in listing.values
        )
    return out.getvalue()


def _terminal(listing: Listing) -> Iterator[str]:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=io.StringIO(), width=_width(), color_system=None)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, head in enumerate(listing.heads):
        left = i < listing.words
        table.add_column(head, justify="left" if left else "right", no_wrap=not left)
    for line in listing.lines:
        table.add_row(*(Text(_plain(cell)) for cell in line))
    with console.capture() as caught:
        console.print(table)
        for note in listing.notes:
            console.print(Text(_plain(note)))
    yield _plain(listing.title).rstrip()
    yield from (line.rstrip() for line in caught.get().rstrip().splitlines())


def _width() -> int:
    import shutil

    return shutil.get_terminal_size((_WIDTH, 24)).columns


def _plain(text: str) -> str:
    """Text on one line, without what moves a terminal's cursor."""
    return "".join(c if c.isprintable() else " " for c in text)


def _markdown(listing: Listing) -> Iterator[str]:
    yield f"### {md(listing.title)}"
    yield ""
    yield "| " + " | ".join(map(md, listing.heads)) + " |"
    yield "|" + "---|" * listing.words + "---:|" * (len(listing.heads) - listing.words)
    for line in listing.lines:
        yield "| " + " | ".join(map(md, line)) + " |"
    yield ""
    yield from (f"{md(note)}  " for note in listing.notes)


def _latex(listing: Listing) -> Iterator[str]:
    numbers = len(listing.heads) - listing.words
    caption = " ".join(part.rstrip(".") + "." for part in (listing.title, *listing.notes))
    yield "% needs \\usepackage{booktabs}"
    yield "\\begin{table}"
    yield "  \\centering"
    yield f"  \\caption{{{tex(caption)}}}"
    yield f"  \\label{{tab:{re.sub(r'[^A-Za-z0-9-]+', '-', listing.slug)}}}"
    yield f"  \\begin{{tabular}}{{{'l' * listing.words}{'r' * numbers}}}"
    yield "    \\toprule"
    yield "    " + " & ".join(map(tex, listing.heads)) + r" \\"
    yield "    \\midrule"
    for line in listing.lines:
        cells = [tex(cell) for cell in line[: listing.words]]
        cells += [_SIGNED.sub(r"$\g<0>$", tex(cell)) for cell in line[listing.words :]]
        yield "    " + " & ".join(cells) + r" \\"
    yield "    \\bottomrule"
    yield "  \\end{tabular}"
    yield "\\end{table}"
