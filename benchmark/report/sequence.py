"""A table of a sequence of updates: a row for each case, a column for each method.

Source: FCT Tables 5 and 8: each generation by itself, after one update, after several one after
the other, and directly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from benchmark.metrics import compatibility
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.table import Row, Table, group, slugs
from benchmark.report.values import Cell, cell

_READING = (
    "i/j: generation i asks in a gallery stored by generation j and updated up to i, step by step "
    "or directly. Average compatibility: share of the pairs i > j for which i/j beats j/j (in "
    "chains); average accuracy: mean over i >= j."
)


@dataclass(frozen=True)
class _Case:
    """A row: a case of the records, and what to call it."""

    name: str
    words: str
    own: bool = False


def make_tables(
    records: Iterable[Record], metrics: str | Iterable[str] | None = None
) -> list[Table]:
    """A table for each protocol of three generations or more, and track.

    Args:
        records: Any records; those of two generations are passed over.
        metrics: Keys, as a list or with commas between; ``all``; by default the main ones.

    Raises:
        BenchError: If a metric is in no record.
    """
    groups = group(records)
    asked = metrics if metrics is None or isinstance(metrics, str) else list(metrics)
    return [
        _table(members, slug, select.metrics(members, asked))
        for slug, members in zip(slugs(groups), groups, strict=True)
        if len(members[0].models) > 2 and any(r.status == "done" for r in members)
    ]


def _table(records: Sequence[Record], slug: str, keys: Sequence[str]) -> Table:
    done: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda r: r.method != "independent"):
        if record.status == "done":
            done.setdefault(record.method, []).append(record)
    rows = [_row(case, done, keys) for case in _cases(records)]
    return Table(
        protocol=records[0].protocol,
        track=records[0].track,
        title=f"{notes.title(records)}: step by step",
        seeds=tuple(sorted({record.seed for record in records})),
        metrics=tuple(keys),
        cases=tuple(done),
        roles=("",) * len(done),
        rows=(*rows, *_averages(select.generations(records), done, keys)),
        notes=(_READING,),
        upper=records[0].upper,
        slug=f"{slug}-sequence",
        marks="row",
    )


def _cases(records: Sequence[Record]) -> Iterator[_Case]:
    """Self-tests, then one update, two, ...; what is direct below what it leaves out."""
    names = select.generations(records)
    found = {case for record in records for case in record.scores}
    for name in names:
        yield _Case(f"{name}/{name}", "self-test", own=True)
    for steps in range(1, len(names)):
        for old, new in zip(names, names[steps:], strict=False):
            yield _Case(f"{new}/{old}", f"{steps} update{'s' if steps > 1 else ''}")
            if f"{new}/{old} direct" in found:
                yield _Case(f"{new}/{old} direct", "direct")


def _row(case: _Case, done: dict[str, list[Record]], keys: Sequence[str]) -> Row:
    cells = {
        (key, method): cell(
            case.name,
            [record.scores.get(case.name, {}).get(key) for record in records],
            [_interval(record, case.name, key) for record in records],
        )
        for key in keys
        for method, records in done.items()
    }
    label = f"{case.name.removesuffix(' direct')}, {case.words}"
    if case.own:
        return Row("independent", label, case.name, (), cells, {})
    return Row("method", label, case.name, (), _marked(cells, keys), {})


def _interval(record: Record, case: str, key: str) -> tuple[float, float] | None:
    found = record.intervals.get(case, {}).get(key)
    return None if found is None else (float(found[0]), float(found[1]))


def _marked(
    cells: dict[tuple[str, str], Cell], keys: Sequence[str], share: bool = False
) -> dict[tuple[str, str], Cell]:
    """The best of the methods in each row; more is better of a share of pairs."""
    marked = dict(cells)
    for key in keys:
        rivals = {m: c.value for (k, m), c in cells.items() if k == key and m != "independent"}
        for method in numbers.best(rivals, key, larger=share):
            marked[key, method] = replace(cells[key, method], best=True)
    return marked


def _averages(
    names: Sequence[str], done: dict[str, list[Record]], keys: Sequence[str]
) -> Iterator[Row]:
    for label, share in (("average compatibility", True), ("average accuracy", False)):
        cells = {
            (key, method): cell(
                label,
                [_average(record, names, key, share) for record in records],
                [None] * len(records),
            )
            for key in keys
            for method, records in done.items()
        }
        yield Row("method", label, label, (), _marked(cells, keys, share), {})


def _average(record: Record, names: Sequence[str], key: str, share: bool) -> float | None:
    """Over the matrix of a record's pairs; none where a pair has no score."""
    scores = [[record.scores.get(f"{i}/{j}", {}).get(key) for j in names] for i in names]
    matrix = [
        [math.nan if value is None else value for value in row[: i + 1]]
        + [0.0] * (len(names) - i - 1)
        for i, row in enumerate(scores)
    ]
    if any(math.isnan(value) for row in matrix for value in row):
        return None
    if not share:
        return compatibility.average_accuracy(matrix)
    # Errors and gaps turn round: for them smaller is better.
    sign = -1.0 if numbers.metric(key).higher_is_better is False else 1.0
    return compatibility.average_compatibility([[sign * value for value in row] for row in matrix])
