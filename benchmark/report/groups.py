"""The table of groups: CMC@1 of each group of queries, and the gap between them.

Source: FCT appendix C (ranges of classes), FastFill section 5.3 (an under-represented group).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from benchmark.records.record import Record
from benchmark.report import notes, select
from benchmark.report import printed as shared
from benchmark.report.backfilling import orders
from benchmark.report.table import group, slugs
from benchmark.report.values import Cell, cell

_KEY = re.compile(r"group_(.+?)__cmc_at_1")
_GAP, _ALL = "group_gap", "cmc_at_1"
_WIDTH = 100
_SHARES = (0, 25, 50, 75, 100)
_GAPS = (
    "Percent CMC@1, best minus worst group, when a share of the gallery is refilled: 0 % is the "
    "cross-test, 100 % the new model by itself (FastFill Figure 4). Smaller is better."
)


@dataclass(frozen=True)
class Row:
    """A case of a method, or a method and an order; mean over its seeds.

    Attributes:
        cells: One for each column of the table.
    """

    case: str
    method: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class GroupTable:
    """One protocol on one track.

    Attributes:
        metrics: Columns: all queries, each group, the gap.
        heads: What they are called.
        notes: What stands below.
        words: What the two columns before the numbers are called.
    """

    title: str
    slug: str
    metrics: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    words: tuple[str, str] = ("query/gallery", "method")


def make_tables(records: Iterable[Record]) -> list[GroupTable]:
    """A table for each protocol and track that is scored by group."""
    groups = group(records)
    found = []
    for slug, members in zip(slugs(groups), groups, strict=True):
        done = [r for r in members if r.status == "done"]
        if any(_GAP in scores for r in done for scores in r.scores.values()):
            found.append(_table(done, slug))
    return found


def make_gap_tables(records: Iterable[Record]) -> list[GroupTable]:
    """The gap between the groups while the gallery is refilled, by method and order.

    Only for protocols that are scored by group: others have groups too, which nobody asks about.
    """
    groups = group(records)
    found = []
    for slug, members in zip(slugs(groups), groups, strict=True):
        done = [r for r in members if r.status == "done"]
        asked = any(_GAP in scores for r in done for scores in r.scores.values())
        rows = list(_gap_rows(done)) if asked else []
        if rows:
            found.append(
                GroupTable(
                    title=f"{notes.title(done)}: gap between the groups while refilled",
                    slug=f"{slug}-gaps",
                    metrics=(),
                    heads=tuple(f"{share} %" for share in _SHARES),
                    rows=tuple(rows),
                    notes=(_GAPS,),
                    words=("method", "order"),
                )
            )
    return found


def _gap_rows(members: Sequence[Record]) -> Iterator[Row]:
    by_method: dict[str, list[Record]] = {}
    for record in sorted(members, key=lambda r: (r.method != "independent", r.method)):
        by_method.setdefault(record.method, []).append(record)
    for method, records in by_method.items():
        for order in orders(records):
            curves = [r.orders[order].groups.gap for r in records if order in r.orders]
            curves = [curve for curve in curves if curve]
            if len(curves) == len(records):
                yield Row(method, order, tuple(_at(curves, share) for share in _SHARES))


def _at(curves: Sequence[Sequence[float]], share: int) -> Cell:
    """Mean over seeds where a share of the gallery is refilled; curves have even points."""
    values = [curve[round(share / 100 * (len(curve) - 1))] for curve in curves]
    return cell(f"{share} %", values, [None] * len(values))


def _table(members: Sequence[Record], slug: str) -> GroupTable:
    keys = {key for r in members for s in r.scores.values() for key in s if _KEY.fullmatch(key)}
    ordered = sorted(keys, key=_place)
    metrics = (_ALL, *ordered, _GAP)
    heads = ("all", *(_name(key) for key in ordered), "gap")
    return GroupTable(
        title=f"{notes.title(members)}: CMC@1 by group",
        slug=f"{slug}-groups",
        metrics=metrics,
        heads=heads,
        rows=tuple(_rows(members, metrics)),
        notes=(
            "Percent of the queries of a group, among all that is stored. gap: best minus worst "
            "group; smaller is better.",
        ),
    )


def _name(key: str) -> str:
    found = _KEY.fullmatch(key)
    return key if found is None else found[1].replace("_", " ")


def _place(key: str) -> tuple[bool, float, str]:
    """Ranges by number, names by alphabet, what is left last."""
    name = _name(key)
    number = re.match(r"[\d.]+", name)
    last = name in ("others", "not trained on")
    return last, float(number[0]) if number else 0.0, name


def _rows(members: Sequence[Record], metrics: Sequence[str]) -> Iterator[Row]:
    cross, own, low = (f(members) for f in (select.cross_case, select.self_case, select.lower_case))
    by_method: dict[str, list[Record]] = {}
    for record in sorted(members, key=lambda r: (r.method != "independent", r.method)):
        by_method.setdefault(record.method, []).append(record)
    converted = [case for case in select.cases(members) if "'" in case]
    for case in (low, cross, *converted, own):
        for method, records in by_method.items():
            shared_bound = case == low and method != "independent"
            if not shared_bound and any(case in r.scores for r in records):
                cells = tuple(_cell(records, case, key) for key in metrics)
                yield Row(case, "" if case == low else method, cells)


def _cell(records: Sequence[Record], case: str, key: str) -> Cell:
    values = [r.scores.get(case, {}).get(key) for r in records]
    return cell(case, values, [None] * len(values))


def printed(table: GroupTable) -> tuple[list[str], list[shared.Line]]:
    """Headings and lines of printed cells."""
    lines = []
    for row in table.rows:
        line: shared.Line = [(row.case, False), (row.method, False)]
        line += [shared.item(each, "share", False) for each in row.cells]
        lines.append(line)
    return [*table.words, *table.heads], lines


def render(tables: Sequence[GroupTable], form: str) -> str:
    """Tables as text: ``terminal``, ``markdown`` or ``latex``; nothing as ``csv``."""
    forms = {"terminal": plain, "markdown": markdown, "latex": latex}
    return "" if form == "csv" else "\n".join(forms[form](table) for table in tables)


def plain(table: GroupTable, width: int = _WIDTH) -> str:
    """A table without any control character; many groups go below one another."""
    heads, cells = printed(table)
    rows = [[value for value, _ in line] for line in cells]
    wide = [max(len(x) for x in column) for column in zip(heads, *rows, strict=True)]
    below = [line for note in table.notes for line in wrap(note, width)]
    blocks: list[str] = []
    for part in _parts(wide, width):
        chosen = [0, 1, *part]
        blocks += [shared.padded([line[i] for i in chosen], [wide[i] for i in chosen])
                   for line in (heads, *rows)]  # fmt: skip
        blocks.append("")
    return "\n".join([table.title, "", *blocks, *below]) + "\n"


def _parts(wide: Sequence[int], width: int) -> Iterator[list[int]]:
    """Columns that fit beside the words."""
    room, used = width - wide[0] - wide[1] - 2, 0
    part: list[int] = []
    for i in range(2, len(wide)):
        if part and used + wide[i] + 2 > room:
            yield part
            part, used = [], 0
        part.append(i)
        used += wide[i] + 2
    yield part


def markdown(table: GroupTable) -> str:
    """A table as GitHub reads it."""
    return shared.markdown(table.title, *printed(table), table.notes)


def latex(table: GroupTable) -> str:
    """A booktabs table."""
    return shared.latex(table.title, table.slug, *printed(table), table.notes)
