"""Pages of published numbers, and those that stand beside a board; never ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.errors import BenchError
from benchmark.records import published
from benchmark.records.published import Number, Published
from benchmark.report import numbers
from leaderboard.boards import Board
from leaderboard.names import file_name

_MOST_COLUMNS = 8
_WORDS = ("variant", "models", "metric", "case", "note")


@dataclass(frozen=True)
class Printed:
    """A cell.

    Attributes:
        kind: ``word``, ``wide``, ``value`` or ``note``.
        sort: What its column sorts by.
    """

    text: str
    kind: str = "word"
    sort: str = ""


@dataclass(frozen=True)
class Setting:
    """Published numbers of one protocol and dataset, as papers print them: a method a line.

    Attributes:
        lines: Cells in the order of the heads.
    """

    title: str
    heads: tuple[str, ...]
    lines: tuple[tuple[Printed, ...], ...]


@dataclass(frozen=True)
class Paper:
    """What the page of a paper shows."""

    id: str
    file: str
    title: str
    source: str
    caveats: tuple[str, ...]
    n: int
    settings: tuple[Setting, ...]


def read(folder: Path | None = None) -> Published | None:
    """All published numbers; None where this installation has none."""
    try:
        return published.read_published(folder)
    except BenchError:
        if folder is not None:
            raise
        return None


def papers(known: Published | None) -> list[Paper]:
    """A page for each paper."""
    if known is None:
        return []
    found = []
    for name, paper in known.papers.items():
        mine = [n for n in known.numbers if n.paper == name]
        source = f"{paper.authors}, {paper.venue}"
        found.append(
            Paper(
                name, file_name(name), paper.title, source, paper.caveats, len(mine),
                settings(mine, paper=False),
            )
        )  # fmt: skip
    return found


def settings(found: Sequence[Number], paper: bool = True) -> tuple[Setting, ...]:
    """A table for each protocol and dataset, in the order of the numbers.

    Args:
        found: The numbers.
        paper: Shall each line name its paper?
    """
    groups: dict[tuple[str, str], list[Number]] = {}
    for number in found:
        groups.setdefault((number.protocol, number.dataset), []).append(number)
    return tuple(
        _setting(f"{protocol} on {dataset}", mine, paper)
        for (protocol, dataset), mine in groups.items()
    )


def _setting(title: str, found: Sequence[Number], paper: bool) -> Setting:
    """Metrics side by side, or cases, whichever is shorter."""
    pivots = [_pivot(found, by, paper) for by in ("metric", "case")]
    columns = {id(p): {column for line in p.values() for column in line} for p in pivots}
    narrow = [p for p in pivots if len(columns[id(p)]) <= _MOST_COLUMNS] or pivots[:1]
    lines = min(narrow, key=len)
    by, other = ("metric", "case") if lines is pivots[0] else ("case", "metric")
    names = dict.fromkeys(getattr(n, by) for n in found)
    heads = ["table", "method", "variant", "models", other]
    heads += [_label(name, by) or "value" for name in names] + ["note"]
    rows = []
    for words, values in lines.items():
        cells = [
            Printed(_label(word, other) if i == 4 else word, "wide" if i == 3 else "word")
            for i, word in enumerate(words[:5])
        ]
        cells += [_value(values.get(name)) for name in names]
        notes = dict.fromkeys(n.note for n in values.values() if n.note)
        rows.append((*cells, Printed("; ".join(notes), "note")))
    kept = [
        i for i, head in enumerate(heads) if head not in _WORDS or any(row[i].text for row in rows)
    ]
    return Setting(
        title, tuple(heads[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows)
    )


_Line = tuple[str, ...]


def _pivot(found: Sequence[Number], by: str, paper: bool) -> dict[_Line, dict[str, Number]]:
    """Words of a line -> column -> number; what is printed twice has two lines."""
    lines: dict[_Line, dict[str, Number]] = {}
    for number in found:
        table = f"{number.paper}, {number.table}" if paper else number.table
        models = " to ".join(m for m in (number.old_model, number.new_model) if m)
        other = number.case if by == "metric" else number.metric
        words = (table, number.method, number.variant, models, other)
        column, turn = getattr(number, by), 0
        while column in lines.setdefault((*words, str(turn)), {}):
            turn += 1
        lines[*words, str(turn)][column] = number
    return lines


def _label(name: str, kind: str) -> str:
    return numbers.metric(name).label if kind == "metric" and name else name


def _value(number: Number | None) -> Printed:
    if number is None:
        return Printed("", "value")
    unit = {"%": " %", "M": " M"}.get(number.unit, "")
    spread = "" if number.std is None else f" ± {number.std:g}"
    return Printed(f"{number.printed}{spread}{unit}", "value", repr(number.value))


def beside(known: Published | None, board: Board) -> tuple[Setting, ...]:
    """Numbers of papers on a board's protocol and data."""
    if known is None:
        return ()
    return settings(published.beside(known, board.records))
