"""A table as printed text, metric by metric: what terminal, Markdown, LaTeX and pages share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmark.report import numbers
from benchmark.report.derived import is_difference
from benchmark.report.table import Row, Table
from benchmark.report.values import Verdict

NOT_APPLICABLE = "n/a"


@dataclass(frozen=True)
class Item:
    """A printed cell: the value, its ``±`` and whether it is the best."""

    text: str = ""
    spread: str = ""
    best: bool = False

    @property
    def whole(self) -> str:
        """Value and interval."""
        return f"{self.text} {self.spread}".strip()


@dataclass(frozen=True)
class Column:
    """A printed column: ``new/old`` and below it ``cross-test``; shorter where room is dear."""

    head: str
    role: str = ""
    short: str = ""

    @property
    def narrow(self) -> str:
        """The shortest heading."""
        return self.short or self.head


@dataclass(frozen=True)
class Block:
    """One metric: its columns, and an item for each row and column."""

    metric: str
    label: str
    columns: tuple[Column, ...]
    items: tuple[tuple[Item, ...], ...]


def blocks(table: Table) -> list[Block]:
    """Every metric of a table; items are in the order of ``table.rows``."""
    return [_block(table, metric) for metric in table.metrics]


def _block(table: Table, key: str) -> Block:
    about = numbers.metric(key)
    columns = [Column(c, r) for c, r in zip(table.cases, table.roles, strict=True)]
    columns += [Column("compatible", short="compat."), Column("gain")]
    arrow = " (lower is better)" if about.higher_is_better is False else ""
    items = [_items(row, key, table.cases, about.unit) for row in table.rows]
    # A case that this metric does not have has no column of dashes.
    filled = [
        any(row[i].text not in ("", numbers.DASH, NOT_APPLICABLE) for row in items)
        for i in range(len(columns))
    ]
    judged = len(table.cases)
    filled[judged + 1] = filled[judged]  # a gain that nobody has says something too
    kept = [i for i, yes in enumerate(filled) if yes] or [0]
    return Block(
        key, about.label + arrow,
        tuple(columns[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in items),
    )  # fmt: skip


def _items(row: Row, key: str, cases: Sequence[str], unit: str) -> list[Item]:
    if row.reason is not None:
        return [Item(NOT_APPLICABLE)] + [Item()] * (len(cases) + 1)
    found = []
    for case in cases:
        cell = row.cells.get((key, case))
        if cell is None or (cell.value is None and row.kind != "method"):
            found.append(Item())
        else:
            spread = numbers.spread(cell.value, cell.low, cell.high, unit)
            text = numbers.number(cell.value, unit, signed=is_difference(case))
            found.append(Item(text, spread, cell.best))
    verdict = row.verdicts.get(key)
    if verdict is None:
        return [*found, Item(), Item()]
    return [*found, Item(answer(verdict)), Item(numbers.number(verdict.gain), "", verdict.best)]


def answer(verdict: Verdict) -> str:
    """Yes or no, or on how many seeds.

    Example:
        >>> answer(Verdict((2, 3), None, None)), answer(Verdict((1, 1), None, 0.1))
        ('2 of 3', 'yes')
    """
    if verdict.compatible is None:
        return numbers.DASH
    good, of = verdict.compatible
    return "yes" if good == of else "no" if not good else f"{good} of {of}"
