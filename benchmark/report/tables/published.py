"""Tables of published numbers: apart from measured ones, and never ranked."""

from collections.abc import Sequence
from textwrap import wrap

from benchmark.records.published import Number, Published
from benchmark.report import numbers
from benchmark.report.tables.results import COLUMNS
from benchmark.report.text_table import TextTable, simple_table

_WIDTH = 100
_APART = (
    "Published numbers, as printed; on other data and code, so never ranked with measured ones."
)


def make_tables(found: Sequence[Number], published: Published) -> list[TextTable]:
    """One table for each protocol and dataset, in the order of the numbers."""
    settings = dict.fromkeys((n.protocol, n.dataset) for n in found)
    return [
        _table([n for n in found if (n.protocol, n.dataset) == setting], published)
        for setting in settings
    ]


def csv_table(found: Sequence[Number]) -> TextTable:
    """Numbers as CSV in the columns of the table of methods: the dataset stands for the track.

    The paper and what it says of a number are its ``reason``; numbers that are no share (counts)
    are left out.
    """
    values = []
    for n in found:
        if n.fraction is not None:
            said = "; ".join(filter(None, (f"{n.paper}, {n.table}", n.variant, n.note)))
            head = [n.protocol, n.dataset, "published", n.method, "", "published", said]
            values.append([*head, n.case, n.metric, round(n.fraction, 12), *[""] * 5])
    return TextTable("", "", (), (), (), columns=COLUMNS, values=tuple(values))


def _table(found: Sequence[Number], published: Published) -> TextTable:
    first = found[0]
    notes = list(dict.fromkeys(n.note for n in found if n.note))
    models = list(dict.fromkeys(n.models for n in found))
    marks = {note: str(i) for i, note in enumerate(notes, 1)}
    marks |= {pair: _letters(i) for i, pair in enumerate(models) if pair}
    papers = dict.fromkeys(n.paper for n in found)
    return simple_table(
        f"Published: {first.protocol} on {first.dataset}",
        f"published-{first.protocol}-{first.dataset}",
        ("paper", "method", "variant", "models", "case", "metric", "note"),
        ("value",),
        [_cells(n, marks) for n in found],
        [n.row() for n in found],
        notes=(
            _APART,
            *(f"{_cited(n, published)}: {' '.join(published.papers[n].caveats)}" for n in papers),
            *(f"{marks[pair]}: {pair}." for pair in models if pair),
            *(f"{marks[note]}: {note}." for note in notes),
        ),
    )


def _cells(number: Number, marks: dict[str, str]) -> list[str]:
    return [
        f"{number.paper}, {number.table}", number.method, number.variant,
        marks.get(number.models, ""), number.case, numbers.metric(number.metric).label,
        marks.get(number.note, ""), number.words,
    ]  # fmt: skip


def _letters(i: int) -> str:
    """A, B, ..., Z, AA, AB, ...

    Example:
        >>> _letters(0), _letters(25), _letters(27)
        ('A', 'Z', 'AB')
    """
    rest, last = divmod(i, 26)
    return (_letters(rest - 1) if rest else "") + chr(ord("A") + last)


def _cited(name: str, published: Published) -> str:
    paper = published.papers[name]
    return f"{name}: {paper.authors}, {paper.title}, {paper.venue}"


def summary(published: Published) -> str:
    """The papers, with how many numbers each prints on what."""
    lines = []
    for name, paper in published.papers.items():
        printed = [n for n in published.numbers if n.paper == name]
        protocols = ", ".join(dict.fromkeys(n.protocol for n in printed))
        datasets = ", ".join(dict.fromkeys(n.dataset for n in printed))
        for indent, text in (
            ("", _cited(name, published)),
            ("  ", f"{len(printed)} numbers. Protocols: {protocols}. Datasets: {datasets}."),
            *(("  - ", caveat) for caveat in paper.caveats),
        ):
            hanging = " " * len(indent or "  ")
            lines += wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=hanging)
        lines.append("")
    return "\n".join([*lines, _APART]) + "\n"
