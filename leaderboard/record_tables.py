"""Every number of a method's records on a board: a row a seed, below the mean of all."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from benchmark.records.record import Record
from benchmark.report import numbers, select
from benchmark.report.scores import make_verdict, mean_score
from benchmark.report.tables import backfilling
from benchmark.report.text_table import TextCell, TextColumn, TextRow, TextTable, simple_table

MOST_SEEDS = 100
"""Seeds whose main scores are on a page; those of any others are in their files."""
_MOST_NUMBERS = 4000
"""All scores, counts and times are shown of as many seeds as have this many, and of one at least:
a page is some 100 bytes a number, and under 512 KiB."""
_BOUNDS = ("lower", "upper", "upper-all")
_VERDICTS = ("compatible", "not hurting", "gain")
_MEAN, _EVERY = "mean", "every seed"


def in_full(records: Sequence[Record]) -> int:
    """Of how many of a method's records, first to last, a page has room for every number."""
    total = 0
    for i, record in enumerate(records[:MOST_SEEDS]):
        total += _size(record)
        if i and total > _MOST_NUMBERS:
            return i
    return min(len(records), MOST_SEEDS)


def _size(record: Record) -> int:
    """About how many numbers a record has on the page."""
    parts = (record.scores, record.bounds, record.counts)
    curves = sum(len(each.area) + len(each.worst) for each in record.orders.values())
    metrics = max(map(len, record.scores.values()), default=0)
    tables = sum(len(each) for part in parts for each in part.values())
    return tables + curves + len(_VERDICTS) * (metrics + len(record.run.stages))


def score_tables(records: Sequence[Record], full: int) -> list[TextTable]:
    """Every score: those of the main metrics for all seeds, then all others for the first ``full``.

    A case is a column, then come bounds and verdicts. One record has one table, with a row for each
    metric.
    """
    done = [record for record in records if record.scores]
    keys = numbers.ordered(
        m for r in records for part in (r.scores, r.bounds) for each in part.values() for m in each
    )
    if len(records) == 1 or not keys:
        return [_scores(records[0], keys)] if keys else []
    main = [key for key in select.metrics(done or records) if key in keys]
    rest = [key for key in keys if key not in main]
    tables = [_seeds_scores(records[:MOST_SEEDS], done, main, "Main scores")]
    return tables + ([_seeds_scores(records[:full], done, rest, "Other scores")] if rest else [])


def _seeds_scores(
    shown: Sequence[Record], done: Sequence[Record], keys: Sequence[str], title: str
) -> TextTable:
    parts = [(f"seed {record.seed}", _scores(record, keys)) for record in shown]
    mean = _means(done, keys) if len(done) > 1 else None
    return by_seed(title, parts, mean)


def _scores(record: Record, keys: Iterable[str]) -> TextTable:
    """A metric a row, a case a column, then bounds and verdicts."""
    bounds = [record.bounds[name] for name in _BOUNDS if name in record.bounds]
    cases = [(scores, record.intervals.get(case, {})) for case, scores in record.scores.items()]
    lines = []
    for key in keys:
        about = numbers.metric(key)
        cells = [_cell(scores.get(key), about.unit, spans.get(key)) for scores, spans in cases]
        cells += [_cell(bound.get(key), about.unit) for bound in bounds]
        answers = (record.compatible.get(key), record.not_hurting.get(key))
        cells += [_ANSWERS[answer] for answer in answers]
        lines.append([_name(about.label), *cells, _cell(record.update_gain.get(key))])
    return simple_table("Every score", "", ("metric",), _heads([record]), lines)


def _means(records: Sequence[Record], keys: Iterable[str]) -> TextTable:
    """As :func:`_scores`: the mean over seeds, and on how many of them the answer is yes."""
    cases = _of_any(record.scores for record in records)
    bounds = [name for name in _BOUNDS if any(name in record.bounds for record in records)]
    lines = []
    for key in keys:
        about = numbers.metric(key)
        scores = [
            mean_score([record.scores.get(case, {}).get(key) for record in records])
            for case in cases
        ]
        cells = [_cell(s.value, about.unit, (s.low, s.high)) for s in scores]
        for name in bounds:
            known = mean_score([record.bounds.get(name, {}).get(key) for record in records])
            cells.append(_cell(known.value, about.unit))
        verdict = make_verdict(records, key)
        cells += [
            TextCell("" if answer is None else numbers.of_seeds(answer))
            for answer in (verdict.compatible, verdict.not_hurting)
        ]
        lines.append([_name(about.label), *cells, _cell(verdict.gain)])
    return simple_table("Means", "", ("metric",), _heads(records), lines)


def _heads(records: Sequence[Record]) -> list[str]:
    cases = _of_any(record.scores for record in records)
    bounds = [name for name in _BOUNDS if any(name in record.bounds for record in records)]
    return [*cases, *(f"{name} bound" for name in bounds), *_VERDICTS]


def _of_any(parts: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part))


_ANSWERS = {None: TextCell(), True: TextCell("yes"), False: TextCell("no")}


def _name(text: str) -> TextCell:
    return TextCell(text)


def _cell(
    value: float | None, unit: str = "share", span: tuple[float | None, float | None] | None = None
) -> TextCell:
    """A score; blank where there is none. It has no sorting value, as nobody sorts this table."""
    if value is None:
        return _ANSWERS[None]
    if span is None:
        return TextCell(numbers.number(value, unit))
    return TextCell(numbers.number(value, unit), numbers.spread(value, *span, unit))


def other_tables(records: Sequence[Record], full: int) -> Iterator[TextTable]:
    """Tables below the scores: backfilling with its means, counts, times; of the first ``full``."""
    shown = records[:full]
    means = {table.title: table for table in _backfilling(records)} if len(shown) > 1 else {}
    parts: dict[str, list[tuple[str, TextTable]]] = {}
    for record in shown:
        tables = (*_backfilling([record]), *_counts(record), *_stages(record))
        for table in tables:
            parts.setdefault(table.title, []).append((f"seed {record.seed}", table))
    for title, found in parts.items():
        yield by_seed(title, found, means.get(title)) if len(shown) > 1 else found[0][1]


def _backfilling(records: Sequence[Record]) -> Iterator[TextTable]:
    for table in backfilling.make_tables(records):
        orders = (replace(table.labels[1], heading=True),)
        rows = tuple(replace(row, labels=row.labels[1:]) for row in table.rows)
        title = f"{table.title.rpartition(': ')[2].capitalize()}, percent"
        yield replace(table, title=title, labels=orders, rows=rows, grouped=False)


def _counts(record: Record) -> Iterator[TextTable]:
    if record.counts:
        cases = record.counts.values()
        lines = [
            [name.removeprefix("n_").replace("_", " ")]
            + [f"{counts[name]:,}" if name in counts else "" for counts in cases]
            for name in dict.fromkeys(name for counts in cases for name in counts)
        ]
        yield simple_table("Counts", "", ("number of",), list(record.counts), lines)


def _stages(record: Record) -> Iterator[TextTable]:
    if record.run.stages:
        lines = []
        for stage, run in record.run.stages.items():
            peak = run.peak_memory_bytes
            memory = "" if peak is None else f"{peak / 2**20:.0f}"
            seconds = "none" if run.seconds is None else f"{run.seconds:g}"
            # Of each seed the same stage has the same name.
            name = re.sub(rf"\s*\(seed {record.seed}\)$", "", stage)
            lines.append([name, seconds, memory, run.device or "none"])
        heads = ("seconds", "peak memory, MiB", "device")
        yield simple_table("Stages", "", ("stage",), heads, lines)


Cells = tuple[TextCell, ...]


def by_seed(
    title: str, parts: Sequence[tuple[str, TextTable]], mean: TextTable | None = None
) -> TextTable:
    """Tables of one kind as one: rows of the same name below each other, one a table.

    Where all have the same numbers, these stand once.

    Args:
        title: Of the new table.
        parts: Seeds in words, and the table of each.
        mean: A table of the same kind, whose rows come first.
    """
    tables = [table for _, table in parts] + ([] if mean is None else [mean])
    columns = tuple(dict.fromkeys(c for table in tables for c in table.blocks[0].columns))
    groups: dict[TextCell, list[tuple[str, Cells]]] = {}
    for seed, table in parts:
        for name, cells in _rows(table, columns):
            groups.setdefault(name, []).append((seed, cells))
    means = {} if mean is None else dict(_rows(mean, columns))
    lines: list[TextRow] = []
    for name, rows in groups.items():
        same = len(rows) == len(parts) and all(cells == rows[0][1] for _, cells in rows)
        if not same and name in means:
            lines.append(TextRow((name, TextCell(_MEAN)), (means[name],), attributes=_OF_MEAN))
        found = [(_EVERY, rows[0][1])] if same else rows
        lines += [TextRow((name, TextCell(seed)), (cells,)) for seed, cells in found]
    first = tables[0]
    if all(row.labels[1].text == _EVERY for row in lines):
        lines = [replace(row, labels=row.labels[:1]) for row in lines]
        labels: tuple[TextColumn, ...] = first.labels
    else:
        labels = (first.labels[0], TextColumn("seed", words=True))
    block = replace(first.blocks[0], columns=columns)
    notes = tables[-1].notes
    return TextTable(
        title, "", labels, (block,), tuple(lines), notes=notes, grouped=len(labels) > 1
    )


_OF_MEAN = {"class": "mean"}


def _rows(table: TextTable, columns: tuple[TextColumn, ...]) -> Iterator[tuple[TextCell, Cells]]:
    """Name and cells of each row, in the order of some columns; blank where it has none."""
    own = table.blocks[0].columns
    if own == columns:
        yield from ((row.labels[0], row.cells[0]) for row in table.rows)
        return
    places = {column: i for i, column in enumerate(own)}
    order = [places.get(column) for column in columns]
    for row in table.rows:
        (cells,) = row.cells
        # A row that ends early says why in its last cell.
        aligned = [TextCell() if i is None or i >= len(cells) else cells[i] for i in order]
        yield row.labels[0], tuple(aligned)
