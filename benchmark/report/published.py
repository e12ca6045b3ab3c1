"""Published numbers, to be printed: apart from measured ones, and never ranked."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from textwrap import wrap

from benchmark.records.published import Number, Published
from benchmark.report import numbers
from benchmark.report.listing import Listing
from benchmark.report.text import COLUMNS

_WIDTH = 100
_APART = (
    "Published numbers, as printed; on other data and code, so never ranked with measured ones."
)


def listings(found: Sequence[Number], published: Published) -> list[Listing]:
    """One listing for each protocol and dataset, in the order of the numbers."""
    settings = dict.fromkeys((n.protocol, n.dataset) for n in found)
    return [
        _listing([n for n in found if (n.protocol, n.dataset) == setting], published)
        for setting in settings
    ]


def long_csv(found: Sequence[Number]) -> str:
    """Lines below those of :func:`benchmark.report.text.csv`: the dataset stands for the track.

    The paper and what it says of a number are its ``reason``; numbers that are no share (counts)
    are left out.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    for n in found:
        if n.fraction is not None:
            said = "; ".join(filter(None, (f"{n.paper}, {n.table}", n.variant, n.note)))
            writer.writerow(
                {
                    "protocol": n.protocol, "track": n.dataset, "kind": "published",
                    "method": n.method, "status": "published", "reason": said, "case": n.case,
                    "metric": n.metric, "value": repr(round(n.fraction, 12)),
                }
            )  # fmt: skip
    return out.getvalue()


def _listing(found: Sequence[Number], published: Published) -> Listing:
    first = found[0]
    notes = list(dict.fromkeys(n.note for n in found if n.note))
    models = list(dict.fromkeys(map(_models, found)))
    marks = {note: str(i) for i, note in enumerate(notes, 1)}
    marks |= {pair: _letters(i) for i, pair in enumerate(models) if pair}
    papers = dict.fromkeys(n.paper for n in found)
    columns = tuple(found[0].row())
    return Listing(
        title=f"Published: {first.protocol} on {first.dataset}",
        heads=("paper", "method", "variant", "models", "case", "metric", "note", "value"),
        lines=[_cells(n, marks) for n in found],
        words=7,
        notes=[
            _APART,
            *(f"{_cited(name, published)}: {_caveats(name, published)}" for name in papers),
            *(f"{marks[pair]}: {pair}." for pair in models if pair),
            *(f"{marks[note]}: {note}." for note in notes),
        ],
        slug=f"published-{first.protocol}-{first.dataset}",
        columns=columns,
        values=[[n.row()[column] for column in columns] for n in found],
    )


def _cells(number: Number, marks: dict[str, str]) -> list[str]:
    unit = {"%": " %", "M": " M"}.get(number.unit, "")
    spread = "" if number.std is None else f" ± {number.std:g}"
    return [
        f"{number.paper}, {number.table}",
        number.method,
        number.variant,
        marks.get(_models(number), ""),
        number.case,
        numbers.metric(number.metric).label,
        marks.get(number.note, ""),
        f"{number.printed}{spread}{unit}",
    ]


def _models(number: Number) -> str:
    return " to ".join(m for m in (number.old_model, number.new_model) if m)


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


def _caveats(name: str, published: Published) -> str:
    return " ".join(published.papers[name].caveats)


def summary(published: Published) -> str:
    """The papers, with how many numbers each prints on what."""
    lines = []
    for name in published.papers:
        own = [n for n in published.numbers if n.paper == name]
        protocols = ", ".join(dict.fromkeys(n.protocol for n in own))
        datasets = ", ".join(dict.fromkeys(n.dataset for n in own))
        for indent, text in (
            ("", _cited(name, published)),
            ("  ", f"{len(own)} numbers. Protocols: {protocols}. Datasets: {datasets}."),
            *(("  - ", caveat) for caveat in published.papers[name].caveats),
        ):
            hanging = " " * len(indent or "  ")
            lines += wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=hanging)
        lines.append("")
    lines.append(_APART)
    return "\n".join(lines) + "\n"
