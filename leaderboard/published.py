"""Pages of published numbers, and those that stand beside a board; never ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark import published
from benchmark.errors import BenchError
from benchmark.published import Number, Published
from benchmark.report import numbers
from leaderboard.boards import Board
from leaderboard.names import file_name

HEADS = ("paper", "method", "variant", "models", "case", "metric", "value", "note")


@dataclass(frozen=True)
class Setting:
    """Published numbers of one protocol and dataset.

    Attributes:
        lines: Cells in the order of ``HEADS``; the value is followed by the number to sort by.
    """

    title: str
    lines: tuple[tuple[str, ...], ...]


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
            Paper(name, file_name(name), paper.title, source, paper.caveats, len(mine),
                  settings(mine))
        )  # fmt: skip
    return found


def settings(found: Sequence[Number]) -> tuple[Setting, ...]:
    """A table for each protocol and dataset, in the order of the numbers."""
    pairs = dict.fromkeys((n.protocol, n.dataset) for n in found)
    return tuple(
        Setting(
            f"{protocol} on {dataset}",
            tuple(_line(n) for n in found if (n.protocol, n.dataset) == (protocol, dataset)),
        )
        for protocol, dataset in pairs
    )


def _line(number: Number) -> tuple[str, ...]:
    unit = {"%": " %", "M": " M"}.get(number.unit, "")
    spread = "" if number.std is None else f" ± {number.std:g}"
    models = " to ".join(m for m in (number.old_model, number.new_model) if m)
    label = numbers.metric(number.metric).label
    return (
        f"{number.paper}, {number.table}", number.method, number.variant, models, number.case,
        label, f"{number.printed}{spread}{unit}", number.note, repr(number.value),
    )  # fmt: skip


def beside(known: Published | None, board: Board) -> tuple[Setting, ...]:
    """Numbers of papers on a board's protocol and data."""
    if known is None:
        return ()
    return settings(published.beside(known, board.records))
