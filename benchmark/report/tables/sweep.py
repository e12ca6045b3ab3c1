"""The table of a sweep: a row for each method and value, a block for each metric."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.config import registry
from benchmark.config.sweep import Axis
from benchmark.errors import BenchError
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.statistics import mean_score
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.scores import by_method, case_score
from benchmark.report.select import AVG
from benchmark.report.text_table import (
    NOT_APPLICABLE,
    TextBlock,
    TextCell,
    TextColumn,
    TextRow,
    TextTable,
    score_cell,
)


@dataclass(frozen=True)
class SweepPoint:
    """One method at one point of the sweep."""

    method: str
    values: tuple[Any, ...]  # value of each swept key; None where the method does not know the key
    cells: dict[tuple[str, str], Estimate]  # (metric, case) -> mean over seeds; AVG has no case
    reason: str | None = None  # why the method is not applicable there; None where it is


@dataclass(frozen=True)
class SweepTable:
    """A sweep on one protocol and track."""

    title: str  # protocol, track, seeds in words
    axes: tuple[Axis, ...]  # what was swept
    columns: tuple[tuple[str, str], ...]  # (metric, case) in reading order
    lines: tuple[SweepPoint, ...]  # by method, then values
    notes: tuple[str, ...] = ()  # what ``±`` is, and what diverged


def make_sweep(records: Sequence[Record], axes: Sequence[Axis]) -> SweepTable:
    """Line up the records of a sweep, which ``changed`` says the values of.

    Raises:
        BenchError: If a record has no value of a swept key.
    """
    axes = [_with_ids(axis) for axis in axes]
    for record in records:
        known = _swept(record)
        missing = [key for axis in axes for key in axis.fields if key not in known]
        if missing:
            words = ", ".join(missing)
            raise BenchError(f"sweep: record of {record.method} has no value of {words}")
    shown = select.metrics(records)
    cases = [select.lower_case(records), select.cross_case(records), select.self_case(records)]
    fields = [axis.fields for axis in axes]
    points: dict[tuple[str, tuple[Any, ...]], list[Record]] = {}
    for members in by_method(records, done=False).values():
        # An axis has no value where none of its fields changes what the method does.
        concerned = [any(all(_takes(r, key) for r in members) for key in f) for f in fields]
        for record in members:
            values = [
                _swept(record)[f[0]] if c else None for f, c in zip(fields, concerned, strict=True)
            ]
            points.setdefault((record.method, tuple(values)), []).append(record)
    lines = [
        SweepPoint(*key, _cells(points[key], shown, cases), points[key][0].reason)
        for key in sorted(points, key=lambda key: _place(key, axes))
    ]
    columns = [(key, case) for key in shown for case in cases]
    if any((AVG, "") in line.cells for line in lines):
        columns.append((AVG, ""))
    seeds = sorted({record.seed for record in records})
    words = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    tracks = " and ".join(dict.fromkeys(record.track for record in records))
    title = f"{records[0].protocol} on {tracks}, {words}: {' x '.join(a.key for a in axes)}"
    below = (f"Percent; {notes.interval_words(records, shown)}.", *notes.divergence(records))
    return SweepTable(title, tuple(axes), tuple(columns), tuple(lines), below)


def _with_ids(axis: Axis) -> Axis:
    """Tracks by their ids, as records know them, where they were given as files."""
    if axis.key != "track":
        return axis
    return Axis("track", tuple(Path(str(value)).name.partition(".y")[0] for value in axis.values))


def _swept(record: Record) -> dict[str, Any]:
    """Fields that may have been swept, with the record's values."""
    return {"track": record.track, **record.changed}


def _takes(record: Record, key: str) -> bool:
    """Tell records in which a field's value holds; those of track and generations always do."""
    owner, _, name = key.rpartition(".")
    if owner.partition(":")[0] not in registry.method_files():
        return True
    if owner not in (record.method, record.method.partition(":")[0]):
        return False
    # What a variant sets itself wins over what is set of the method.
    value = record.changed[key]
    return bool(record.config.get(name, value) == value)


def _place(key: tuple[str, tuple[Any, ...]], axes: Sequence[Axis]) -> tuple[Any, ...]:
    method, values = key
    # The first axis runs along the plot, so the others come first.
    places = [a.values.index(v) if v is not None else -1 for a, v in zip(axes, values, strict=True)]
    return (method != "independent", method, *places[1:], places[0])


def _cells(
    records: Sequence[Record], keys: Sequence[str], cases: Sequence[str]
) -> dict[tuple[str, str], Estimate]:
    """Means over the seeds on which the method could be applied."""
    # A method that the swept field does not concern has the same record at every value.
    by_seed = {record.seed: record for record in records}
    done = [record for record in by_seed.values() if record.status == "done"]
    if not done:
        return {}
    cells = {(key, case): case_score(done, case, key) for key in keys for case in cases}
    averages = [select.mean(record) for record in done]
    return cells | ({} if None in averages else {(AVG, ""): mean_score(averages)})


def text_table(table: SweepTable) -> TextTable:
    """A sweep, to be printed; as CSV a line for each point, metric and case."""
    metrics = list(dict.fromkeys(key for key, _ in table.columns))
    cases = {m: [case for key, case in table.columns if key == m] for m in metrics}
    reasons = dict.fromkeys((line.method, line.reason) for line in table.lines if line.reason)
    keys = tuple(axis.key for axis in table.axes)
    return TextTable(
        title=table.title,
        slug=f"sweep-{keys[0]}",
        labels=tuple(TextColumn(name, words=True) for name in ("method", *keys)),
        blocks=tuple(
            TextBlock(numbers.metric(m).label, tuple(TextColumn(c or "value") for c in cases[m]))
            for m in metrics
        ),
        rows=tuple(
            TextRow(
                (TextCell(line.method), *(TextCell(_words(value)) for value in line.values)),
                tuple(tuple(_cell(line, m, case) for case in cases[m]) for m in metrics),
            )
            for line in table.lines
        ),
        notes=(*table.notes, *(f"n/a  {method}: {reason}" for method, reason in reasons)),
        columns=("method", *keys, "metric", "case", "value", "low", "high"),
        values=tuple(
            [line.method, *line.values, key, case, score.value, score.low, score.high]
            for line in table.lines
            for (key, case), score in line.cells.items()
            if score.value is not None
        ),
    )


def _words(value: Any) -> str:
    return "any" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _cell(line: SweepPoint, metric: str, case: str) -> TextCell:
    if (metric, case) not in line.cells:
        return TextCell(NOT_APPLICABLE if line.reason else numbers.DASH)
    return score_cell(line.cells[metric, case], numbers.metric(metric).unit)
