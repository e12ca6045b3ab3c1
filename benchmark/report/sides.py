"""The table of side-information: what each kind costs, what it is by itself, what it gives.

Source: FCT Table 6 and section 5.3. Rows are kinds; beside each method that stores one stands the
same method without.
"""

from __future__ import annotations

import csv as _csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report import printed as shared
from benchmark.report.table import group, slugs
from benchmark.report.values import Cell, cell
from benchmark.training.side_kinds import SIDES

_METRICS = ("cmc_at_1", "cmc_at_5", "map")
_OWN = "cmc_at_1"
_WIDTH = 100


@dataclass(frozen=True)
class Row:
    """A method with one kind; mean over its seeds.

    Attributes:
        kind: Of side-information; ``None`` without any.
        scores: Metric -> score of the cross-test.
        own: CMC@1 of side-information that asks among side-information.
        cka: Linear, with the embedding on the gallery.
        bytes: An item's.
    """

    method: str
    kind: str | None
    seeds: tuple[int, ...]
    scores: Mapping[str, Cell]
    own: Cell
    cka: Cell
    bytes: float

    @property
    def title(self) -> str:
        """The kind in words; its name where this installation does not know it."""
        if self.kind is None:
            return "none"
        return SIDES[self.kind].title if self.kind in SIDES else self.kind


@dataclass(frozen=True)
class SideTable:
    """One protocol on one track.

    Attributes:
        case: ``new/old``, the cross-test.
        stored: The generation whose side-information is shown.
        metrics: Of the cross-test, in reading order.
        notes: What stands below.
    """

    protocol: str
    track: str
    title: str
    slug: str
    case: str
    stored: str
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def make_tables(records: Iterable[Record]) -> list[SideTable]:
    """A table for each protocol and track where something is stored beside the embedding."""
    groups = group(records)
    return [
        _table(members, slug)
        for slug, members in zip(slugs(groups), groups, strict=True)
        if any(r.side for r in members)
    ]


def _table(members: Sequence[Record], slug: str) -> SideTable:
    case, stored = select.cross_case(members), select.generations(members)[0]
    families = {r.method.partition(":")[0] for r in members if r.side}
    chosen: dict[str, list[Record]] = {}
    for record in members:
        if record.status == "done" and (record.side or record.method in families):
            chosen.setdefault(record.method, []).append(record)
    scored = {key for r in members for key in r.scores.get(case, {})}
    known = numbers.ordered(scored & {*_METRICS})
    if not known:  # faces are verified and identified, not ranked
        known = [key for key in select.metrics(members) if key in scored]
    rows = [_row(records, case, stored, known) for records in chosen.values()]
    kinds = [None, *SIDES]
    rows.sort(key=lambda r: kinds.index(r.kind) if r.kind in kinds else len(kinds))
    shown = [record for records in chosen.values() for record in records]
    return SideTable(
        protocol=shown[0].protocol,
        track=shown[0].track,
        title=f"{notes.title(shown)}: side-information",
        slug=f"{slug}-side",
        case=case,
        stored=stored,
        metrics=tuple(known),
        rows=tuple(_mark_best(rows, known)),
        notes=tuple(_notes(case, stored, shown)),
    )


def _row(records: Sequence[Record], case: str, stored: str, keys: Sequence[str]) -> Row:
    scores = {
        key: cell(
            case,
            [r.scores.get(case, {}).get(key) for r in records],
            [shared.span(r.intervals.get(case, {}).get(key)) for r in records],
        )
        for key in keys
    }
    about = [r.side.generations.get(stored) if r.side else None for r in records]
    blank = [None] * len(records)
    own = cell("side/side", [a.scores.get(_OWN) if a else None for a in about], blank)
    cka = cell("cka", [a.cka if a else None for a in about], blank)
    kind, seeds = records[0].side.kind if records[0].side else None, tuple(r.seed for r in records)
    return Row(
        records[0].method, kind, seeds, scores, own, cka, about[0].bytes if about[0] else 0
    )  # fmt: skip


def _mark_best(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """Best of each column of the cross-test."""
    made = list(rows)
    for key in keys:
        for i in numbers.best({i: row.scores[key].value for i, row in enumerate(rows)}, key):
            best = {**made[i].scores, key: replace(made[i].scores[key], best=True)}
            made[i] = replace(made[i], scores=best)
    return made


def _notes(case: str, stored: str, records: Sequence[Record]) -> Iterator[str]:
    how = "Student's t over the seeds" if len({r.seed for r in records}) > 1 else "bootstrap"
    yield (
        f"Percent of {case}; ± is the wider side of the 95 % interval ({how}). * is the best of a "
        "column."
    )
    yield (
        f"bytes: of what the {stored} generation stores of an item beside its embedding. CKA: "
        "linear, with that embedding on the gallery (FCT 5.3). by itself: CMC@1 of "
        "side-information that asks among side-information."
    )
    others = {r.side.kind for r in records if r.side and r.side.kind in SIDES}
    if any(SIDES[kind].data == "other" for kind in others):
        yield "Other domain: learned on another dataset, the track's other_domain (FCT 4.3)."


def printed(table: SideTable, spread: bool = True) -> tuple[list[str], list[shared.Line]]:
    """Headings and lines of printed cells; with intervals or without."""
    heads = ["side-information", "method"]
    heads += [numbers.metric(key).label for key in table.metrics]
    heads += ["CKA", "bytes", "by itself"]
    lines = []
    for row in table.rows:
        line: shared.Line = [(row.title, False), (row.method, False)]
        line += [shared.item(row.scores[key], "share", spread) for key in table.metrics]
        line += [shared.item(row.cka, "coefficient", False), (f"{row.bytes:g}", False)]
        line.append(shared.item(row.own, "share", False))
        lines.append(line)
    return heads, lines


def render(tables: Sequence[SideTable], form: str) -> str:
    """Tables as text: ``terminal``, ``csv`` (no heading), ``markdown`` or ``latex``."""
    forms = {"terminal": plain, "csv": csv, "markdown": markdown, "latex": latex}
    return "\n".join(forms[form](table) for table in tables)


def plain(table: SideTable, width: int = _WIDTH) -> str:
    """A table without any control character; intervals only where there is room."""
    from textwrap import wrap

    lines: list[str] = []
    for spread in (True, False):
        heads, cells = printed(table, spread)
        rows = [[value + ("*" if best else "") for value, best in line] for line in cells]
        wide = [max(len(x) for x in column) for column in zip(heads, *rows, strict=True)]
        lines = [shared.padded(values, wide) for values in (heads, *rows)]
        if max(map(len, lines)) <= width:
            break
    below = [line for note in table.notes for line in wrap(note, width, break_on_hyphens=False)]
    return "\n".join([table.title, "", *lines, "", *below]) + "\n"


def csv(table: SideTable) -> str:
    """Lines in the columns of :mod:`benchmark.report.text`, without a heading.

    The case is ``side/side of old``; the cross-test's own lines stand with the methods'.
    """
    out = io.StringIO()
    writer = _csv.writer(out, lineterminator="\n")
    for row in table.rows:
        if row.kind is not None:
            head = [table.protocol, table.track, "side", row.method, " ".join(map(str, row.seeds))]
            found = [(_OWN, row.own), ("cka", row.cka), ("bytes", Cell("", row.bytes))]
            for metric, each in found:
                if each.value is not None:
                    ends = [each.value, each.low, each.high]
                    shown = ["" if v is None else repr(float(v)) for v in ends]
                    case = f"side/side of {table.stored}"
                    writer.writerow([*head, "done", "", case, metric, *shown, "", "", ""])
    return out.getvalue()


def markdown(table: SideTable) -> str:
    """A table as GitHub reads it."""
    return shared.markdown(table.title, *printed(table, spread=True), table.notes)


def latex(table: SideTable) -> str:
    """A booktabs table."""
    return shared.latex(table.title, table.slug, *printed(table, spread=True), table.notes)
