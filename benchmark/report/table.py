"""A table of records: bounds first, then a row for each method.

One table is one protocol on one track. Values stay fractions; what prints them is in
:mod:`benchmark.report.terminal` and :mod:`benchmark.report.text`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from benchmark.errors import BenchError
from benchmark.records.record import Record
from benchmark.report import derived, notes, numbers, select
from benchmark.report.values import Cell, Verdict, cell, mean_gain

if TYPE_CHECKING:
    from rich.console import Console

Form = Literal["terminal", "csv", "markdown", "latex"]
Kind = Literal["lower", "independent", "upper", "method"]


@dataclass(frozen=True)
class Row:
    """One bound or method.

    Attributes:
        label: As printed where there is little room.
        detail: What a bound measures, ``old/old``.
        method: Method id; for a bound its name in the records.
        seeds: Seeds that the row is a mean of.
        cells: (metric, case of the column) -> value; a bound's own case stands in the cell.
        verdicts: Metric -> compatible, gain.
        reason: Why the method is not applicable; None where it is.
    """

    kind: Kind
    label: str
    method: str
    seeds: tuple[int, ...]
    cells: Mapping[tuple[str, str], Cell]
    verdicts: Mapping[str, Verdict]
    reason: str | None = None
    detail: str = ""

    @property
    def full(self) -> str:
        """Label and detail."""
        return f"{self.label}, {self.detail}" if self.detail else self.label


@dataclass(frozen=True)
class Table:
    """One protocol on one track.

    Attributes:
        title: Protocol, track, seeds in words.
        metrics: Keys, in reading order.
        cases: Columns of each metric, in reading order.
        roles: What each case tests.
        rows: Lower bound, independent, upper bounds, methods.
        notes: What stands below the table.
        upper: Which bound the gain uses.
        slug: A name for files and labels, its own among the tables made together.
        marks: Where the best method of the others is marked, in a column or in a row.
    """

    protocol: str
    track: str
    title: str
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]
    cases: tuple[str, ...]
    roles: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    upper: str
    slug: str
    marks: Literal["column", "row"] = "column"


def group(records: Iterable[Record]) -> list[list[Record]]:
    """Records that may stand in one table: of one protocol, track, their versions and changes.

    Groups and their members have the same order, whatever the order of the records.
    """
    groups: dict[tuple[object, ...], list[Record]] = {}
    for record in sorted(records, key=lambda r: (r.method.partition(":"), r.seed)):
        key = (
            record.protocol, record.track, record.protocol_version, record.track_version,
            json.dumps(record.changed, sort_keys=True, default=str),
        )  # fmt: skip
        groups.setdefault(key, []).append(record)
    return [groups[key] for key in sorted(groups, key=lambda k: tuple(map(str, k)))]


def make_tables(
    records: Iterable[Record],
    metrics: str | Iterable[str] | None = None,
    cases: str | Iterable[str] | None = None,
) -> list[Table]:
    """A table for each protocol and track.

    Args:
        records: Any records.
        metrics: Keys, as a list or with commas between; ``all``; by default the main ones.
        cases: ``new/old``, ...; ``all``; by default cross-test, self-test, converted galleries.

    Returns:
        Tables by protocol and track; none for no records.

    Raises:
        BenchError: If a metric or case is in no record.
    """
    metrics = metrics if metrics is None or isinstance(metrics, str) else list(metrics)
    cases = cases if cases is None or isinstance(cases, str) else list(cases)
    groups = group(records)
    names = slugs(groups)
    return [_table(g, name, metrics, cases) for g, name in zip(groups, names, strict=True)]


def make_table(
    records: Iterable[Record],
    metrics: str | Iterable[str] | None = None,
    cases: str | Iterable[str] | None = None,
) -> Table:
    """The table of records of one protocol and track; see :func:`make_tables`.

    Raises:
        BenchError: If there are no records, or of several protocols or tracks.
    """
    tables = make_tables(records, metrics, cases)
    if len(tables) != 1:
        names = ", ".join(dict.fromkeys(f"{t.protocol} on {t.track}" for t in tables)) or "none"
        raise BenchError(f"records: expected one protocol, track and setting, got {names}")
    return tables[0]


def render(table: Table | Sequence[Table], form: Form = "terminal") -> str:
    """Tables as text, ending with a line break.

    Args:
        table: One or several.
        form: ``terminal`` (plain, 100 columns), ``csv`` (long, fractions in full precision),
            ``markdown`` or ``latex`` (booktabs).

    Raises:
        BenchError: If the form is unknown.
    """
    from benchmark.report import terminal, text

    tables = [table] if isinstance(table, Table) else list(table)
    forms = {
        "terminal": terminal.plain, "csv": text.csv, "markdown": text.markdown, "latex": text.latex,
    }  # fmt: skip
    if form not in forms:
        raise BenchError(f"unknown form '{form}' (there are: {', '.join(forms)})")
    return forms[form](tables)


def print_table(table: Table | Sequence[Table], console: Console | None = None) -> None:
    """Print tables, as wide as the console; bold and colour only on a terminal."""
    from rich.console import Console

    from benchmark.report import terminal

    tables = [table] if isinstance(table, Table) else list(table)
    terminal.show(tables, console or Console())


def slugs(groups: Sequence[Sequence[Record]]) -> list[str]:
    """A file name for each group; what is alike gets a number."""
    names: list[str] = []
    count: dict[str, int] = {}
    for members in groups:
        base = f"{members[0].protocol}-{members[0].track}".replace(":", "+")
        base += "-changed" if members[0].changed else ""
        count[base] = count.get(base, 0) + 1
        names.append(base if count[base] == 1 else f"{base}-{count[base]}")
    return names


def _table(
    records: Sequence[Record],
    slug: str,
    metrics: str | Iterable[str] | None,
    cases: str | Iterable[str] | None,
) -> Table:
    keys = select.metrics(records, metrics)
    columns = select.cases(records, cases)
    if derived.AVG in keys:
        columns.append(derived.averaged_case(select.generations(records)))
    by_method: dict[str, list[Record]] = {}
    for record in records:
        by_method.setdefault(record.method, []).append(record)
    rows = _bounds(records, keys)
    rows += [_method(members, keys, columns) for members in by_method.values()]
    place = ("lower", "independent", "upper", "method")
    rows.sort(key=lambda row: place.index(row.kind))
    rows = _mark_best(rows, keys, columns)
    names = select.generations(records)
    seeds = tuple(sorted({record.seed for record in records}))
    return Table(
        protocol=records[0].protocol,
        track=records[0].track,
        title=notes.title(records),
        seeds=seeds,
        metrics=tuple(keys),
        cases=tuple(columns),
        roles=tuple(select.role(case, names) for case in columns),
        rows=tuple(rows),
        notes=tuple(notes.notes(records, keys)),
        upper=records[0].upper,
        slug=slug,
    )


def _bounds(records: Sequence[Record], keys: Sequence[str]) -> list[Row]:
    """The lower bound and every upper bound, from whatever record of a seed has them."""
    lower, upper = select.lower_case(records), select.self_case(records)
    words: dict[str, tuple[Kind, str, str, str]] = {
        "lower": ("lower", "lower bound", lower, select.cross_case(records)),
        "upper": ("upper", "upper bound", upper, upper),
        "upper-all": ("upper", "upper, all data", upper, upper),
    }
    rows = []
    for name, (kind, label, own, column) in words.items():
        seeds: dict[int, Record] = {}
        # The independent model's own record also knows the intervals of its bounds.
        for record in sorted(records, key=lambda record: record.method != "independent"):
            if name in record.bounds:
                seeds.setdefault(record.seed, record)
        if not seeds:
            continue
        cells = {}
        for key in keys:
            values = [record.bounds[name].get(key) for record in seeds.values()]
            spans = [
                _span(record, own, key, record.bounds[name].get(key)) for record in seeds.values()
            ]
            cells[key, column] = cell(own, values, spans)
        rows.append(Row(kind, label, name, tuple(sorted(seeds)), cells, {}, detail=own))
    return rows


def _span(record: Record, case: str, key: str, value: float | None) -> tuple[float, float] | None:
    """The interval of a case, if it is of this very value."""
    if record.scores.get(case, {}).get(key) != value:
        return None
    return _interval(record, case, key)


def _interval(record: Record, case: str, key: str) -> tuple[float, float] | None:
    found = record.intervals.get(case, {}).get(key)
    return None if found is None else (float(found[0]), float(found[1]))


def _method(records: Sequence[Record], keys: Sequence[str], columns: Sequence[str]) -> Row:
    """Mean over the seeds on which the method could be applied."""
    method = records[0].method
    kind: Kind = "independent" if method == "independent" else "method"
    done = [record for record in records if record.status == "done"]
    reason = None if done else records[0].reason or "no reason given"
    cells, verdicts = {}, {}
    for key in keys if done else ():
        for case in columns:
            values = [derived.score(record, case, key) for record in done]
            spans = [_interval(record, case, key) for record in done]
            cells[key, case] = cell(case, values, spans)
        verdicts[key] = Verdict(
            compatible=_all([record.compatible.get(key) for record in done]),
            not_hurting=_all([record.not_hurting.get(key) for record in done]),
            gain=mean_gain([record.update_gain.get(key) for record in done]),
        )
    seeds = tuple(record.seed for record in done)
    return Row(kind, method, method, seeds, cells, verdicts, reason)


def _all(answers: Sequence[bool | None]) -> tuple[int, int] | None:
    """(yes, of how many); None where a seed has no answer."""
    known = [answer for answer in answers if answer is not None]
    return (sum(known), len(known)) if len(known) == len(answers) else None


def _mark_best(rows: Sequence[Row], keys: Sequence[str], columns: Sequence[str]) -> list[Row]:
    """Best of the methods in each column."""
    methods = [row for row in rows if row.kind == "method" and row.reason is None]
    best: set[tuple[str, str, str]] = set()
    for key in keys:
        for case in (*columns, "gain"):
            found = {row.method: _score(row, key, case) for row in methods}
            top = numbers.best(found, key, larger=case == "gain")
            best |= {(method, key, case) for method in top}
    return [_marked(row, best) if row.kind == "method" else row for row in rows]


def _score(row: Row, key: str, case: str) -> float | None:
    if case == "gain":
        return row.verdicts[key].gain if key in row.verdicts else None
    return row.cells[key, case].value if (key, case) in row.cells else None


def _marked(row: Row, best: set[tuple[str, str, str]]) -> Row:
    return replace(
        row,
        cells={
            (key, case): replace(value, best=(row.method, key, case) in best)
            for (key, case), value in row.cells.items()
        },
        verdicts={
            key: replace(value, best=(row.method, key, "gain") in best)
            for key, value in row.verdicts.items()
        },
    )
