"""A sweep as a table."""

from __future__ import annotations

import csv as _csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.config.sweep import Axis
from benchmark.errors import BenchError
from benchmark.records.record import Record
from benchmark.report import derived, numbers, select
from benchmark.report.derived import AVG
from benchmark.report.values import Cell, cell

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable


@dataclass(frozen=True)
class Line:
    """One method at one point of the sweep.

    Attributes:
        values: Value of each swept key; ``None`` where the method does not know the key.
        cells: (metric, case) -> mean over seeds; AVG has no case.
        reason: Why the method is not applicable there; ``None`` where it is.
    """

    method: str
    values: tuple[Any, ...]
    cells: dict[tuple[str, str], Cell]
    reason: str | None = None


@dataclass(frozen=True)
class SweepTable:
    """A sweep on one protocol and track.

    Attributes:
        title: Protocol, track, seeds in words.
        axes: What was swept.
        columns: (metric, case) in reading order.
        lines: By method, then values.
    """

    title: str
    axes: tuple[Axis, ...]
    columns: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]


def make_sweep(
    records: Sequence[Record], axes: Sequence[Axis], metrics: str | Iterable[str] | None = None
) -> SweepTable:
    """Line up the records of a sweep.

    Args:
        records: Of one protocol and track; ``changed`` holds the swept values.
        axes: What was swept.
        metrics: Keys; by default the main ones.

    Raises:
        BenchError: If a record has no value of a swept key.
    """
    axes = [_named(axis) for axis in axes]
    _check(records, axes)
    concerned = {name: _concerned(name, records, axes) for name in {r.method for r in records}}
    keys = select.metrics(records, metrics)
    cases = [select.lower_case(records), select.cross_case(records), select.self_case(records)]
    grouped: dict[tuple[str, tuple[Any, ...]], list[Record]] = {}
    for record in records:
        place = _values(record, axes, concerned[record.method])
        grouped.setdefault((record.method, place), []).append(record)
    lines = tuple(
        Line(method, values, _cells(_one_a_seed(members), keys, cases), members[0].reason)
        for (method, values), members in sorted(grouped.items(), key=lambda g: _place(g[0], axes))
    )
    columns = [(key, case) for key in keys for case in cases]
    if any((AVG, "") in line.cells for line in lines):
        columns.append((AVG, ""))
    first = records[0]
    seeds = sorted({record.seed for record in records})
    words = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    tracks = " and ".join(dict.fromkeys(record.track for record in records))
    title = f"{first.protocol} on {tracks}, {words}: {' x '.join(a.key for a in axes)}"
    return SweepTable(title, tuple(axes), tuple(columns), lines)


def _named(axis: Axis) -> Axis:
    """Tracks by their ids, as records know them, where they were given as files."""
    if axis.key != "track":
        return axis
    return Axis("track", tuple(Path(str(value)).name.partition(".y")[0] for value in axis.values))


def _check(records: Sequence[Record], axes: Sequence[Axis]) -> None:
    keys = [key for axis in axes for key in _keys(axis)]
    for record in records:
        missing = [key for key in keys if key not in _found(record)]
        if missing:
            words = ", ".join(missing)
            raise BenchError(f"sweep: record of {record.method} has no value of {words}")


def _keys(axis: Axis) -> list[str]:
    """The fields of an axis, which move together."""
    return axis.key.split("+")


def _found(record: Record) -> dict[str, Any]:
    return {"track": record.track, **record.changed}


def _values(record: Record, axes: Sequence[Axis], concerned: Sequence[bool]) -> tuple[Any, ...]:
    """The record's place; an axis that does not concern its method has no value."""
    found = _found(record)
    return tuple(
        found[_keys(axis)[0]] if says else None for axis, says in zip(axes, concerned, strict=True)
    )


def _concerned(method: str, records: Iterable[Record], axes: Iterable[Axis]) -> list[bool]:
    """Does each axis, by any of its fields, change what a method does?"""
    own = [record for record in records if record.method == method]
    return [any(all(_takes(r, key) for r in own) for key in _keys(axis)) for axis in axes]


def _takes(record: Record, key: str) -> bool:
    """Was a record made with the value of a field? Those of track and generations always are."""
    from benchmark.config import registry

    owner, _, name = key.rpartition(".")
    if owner.partition(":")[0] not in registry.method_files():
        return True
    if owner not in (record.method, record.method.partition(":")[0]):
        return False
    # What a variant sets itself wins over what is set of the method.
    value = record.changed[key]
    return bool(record.config.get(name, value) == value)


def _one_a_seed(records: Sequence[Record]) -> list[Record]:
    """A method that the swept field does not concern has the same record at every value."""
    return list({record.seed: record for record in records}.values())


def _place(item: tuple[str, tuple[Any, ...]], axes: Sequence[Axis]) -> tuple[Any, ...]:
    method, values = item
    # The first axis runs along the plot, so the others come first.
    places = [a.values.index(v) if v is not None else -1 for a, v in zip(axes, values, strict=True)]
    return (method != "independent", method, *places[1:], places[0])


def _cells(
    records: Sequence[Record], keys: Sequence[str], cases: Sequence[str]
) -> dict[tuple[str, str], Cell]:
    done = [record for record in records if record.status == "done"]
    if not done:
        return {}
    made = {}
    for key in keys:
        for case in cases:
            spans = [_span(record.intervals.get(case, {}).get(key)) for record in done]
            values = [record.scores.get(case, {}).get(key) for record in done]
            made[key, case] = cell(case, values, spans)
    averages = [derived.mean(record, cases[1:]) for record in done]
    if all(value is not None for value in averages):
        made[AVG, ""] = cell("", averages, [None] * len(done))
    return made


def _span(found: Any) -> tuple[float, float] | None:
    return None if found is None else (float(found[0]), float(found[1]))


def print_sweep(table: SweepTable, console: Console | None = None) -> None:
    """Print a table for each metric: a line for each method and value."""
    from rich.console import Console

    console = console or Console()
    console.print(table.title, style="bold", highlight=False)
    for metric in dict.fromkeys(key for key, _ in table.columns):
        console.print(_block(table, metric))
    for method, reason in dict.fromkeys((x.method, x.reason) for x in table.lines if x.reason):
        console.print(f"n/a  {method}: {reason}", highlight=False)


def _block(table: SweepTable, metric: str) -> RichTable:
    from rich import box
    from rich.table import Table

    columns = [column for column in table.columns if column[0] == metric]
    made = Table(title=_label(metric), box=box.SIMPLE_HEAD, title_justify="left")
    for name in ("method", *(axis.key for axis in table.axes)):
        made.add_column(name, no_wrap=True)
    for _, case in columns:
        made.add_column(case or "value", justify="right", no_wrap=True)
    for line in table.lines:
        cells = [_text(line, column) for column in columns]
        made.add_row(line.method, *map(_value, line.values), *cells)
    return made


def _label(metric: str) -> str:
    return "AVG" if metric == AVG else numbers.metric(metric).label


def _value(value: Any) -> str:
    return "any" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _text(line: Line, column: tuple[str, str]) -> str:
    found = line.cells.get(column)
    if found is None:
        return "n/a" if line.reason else numbers.DASH
    unit = "share" if column[0] == AVG else numbers.metric(column[0]).unit
    spread = numbers.spread(found.value, found.low, found.high, unit)
    return f"{numbers.number(found.value, unit)} {spread}".strip()


def csv(table: SweepTable) -> str:
    """Long form: method, swept values, metric, case, value, low, high."""
    out = io.StringIO()
    writer = _csv.writer(out, lineterminator="\n")
    writer.writerow(["method", *(a.key for a in table.axes), "metric", "case", "value", "low",
                     "high"])  # fmt: skip
    for line in table.lines:
        for (key, case), found in line.cells.items():
            if found.value is not None:
                values = ["" if v is None else v for v in line.values]
                writer.writerow([line.method, *values, key, case, found.value, found.low,
                                 found.high])  # fmt: skip
    return out.getvalue()
