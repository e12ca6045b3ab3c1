"""Every number of a method's records on a board: means over the seeds, then each seed's own."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from benchmark.metrics.estimate import Estimate
from benchmark.records.record import Record
from benchmark.report import numbers, select
from benchmark.report.scores import bound_score, case_score, make_verdict
from benchmark.report.tables import backfilling
from benchmark.report.text_table import TextCell, TextColumn, TextRow, TextTable, simple_table

MOST_SEEDS = 100
"""Seeds whose main scores are on a page; those of any others are in their files."""
_MOST_NUMBERS = 6000
"""All scores, counts and times are shown of as many seeds as have this many, and of one at least:
a page is some 100 bytes a number, and under 512 KiB."""
_BOUNDS = ("lower", "upper", "upper-all")
_VERDICTS = ("compatible", "not hurting", "gain")
_EVERY = "every seed"
_BLANK = TextCell()


@dataclass(frozen=True)
class SeedTables:
    """Numbers of one kind."""

    title: str
    shown: TextTable | None  # of all seeds: means, or what is the same of all
    seeds: tuple[TextTable, ...] = ()  # by seed, where these differ


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


def scores_part(records: Sequence[Record], full: int) -> SeedTables | None:
    """Every score, a case a column, then bounds and verdicts; None where there is none.

    Of several records the means, then the main metrics by seed, and the others of the first
    ``full`` ones.
    """
    keys = numbers.ordered(
        m for r in records for part in (r.scores, r.bounds) for each in part.values() for m in each
    )
    if not keys:
        return None
    if len(records) == 1:
        return SeedTables("Every score", _scores(records, keys))
    done = [record for record in records if record.scores] or records
    main = [key for key in select.metrics(done) if key in keys]
    rest = [key for key in keys if key not in main]
    chosen = (
        ("Main scores by seed", main, records[:MOST_SEEDS]),
        ("Other scores by seed", rest, records[:full]),
    )
    tables = (
        by_seed(words, [(record.seed, _scores([record], some)) for record in shown])
        for words, some, shown in chosen
        if some
    )
    return SeedTables("Every score", _scores(done, keys), tuple(tables))


def _scores(records: Sequence[Record], keys: Iterable[str]) -> TextTable:
    """A metric a row, a case a column, then bounds and verdicts: means over the records.

    A verdict of several says on how many of them the answer is yes. Nobody sorts the table, so
    its cells have no sorting value.
    """
    cases = list(dict.fromkeys(case for record in records for case in record.scores))
    bounds = [name for name in _BOUNDS if any(name in record.bounds for record in records)]
    lines = []
    for key in keys:
        unit = numbers.metric(key).unit
        scores = [case_score(records, case, key) for case in cases]
        for name in bounds:
            scores.append(Estimate(bound_score(records, name, key)))
        verdict = make_verdict(records, key)
        answers = (verdict.compatible, verdict.not_hurting)
        cells = [_cell(score, unit) for score in scores]
        cells += [_BLANK if a is None else TextCell(numbers.of_seeds(a)) for a in answers]
        label = TextCell(numbers.metric(key).label)
        lines.append([label, *cells, _cell(Estimate(verdict.gain))])
    heads = [*map(select.case_head, cases), *(f"{name} bound" for name in bounds), *_VERDICTS]
    title = "Means" if len(records) > 1 else "Every score"
    return simple_table(title, "", ("metric",), heads, lines)


def _cell(score: Estimate, unit: str = "share") -> TextCell:
    if score.value is None:
        return _BLANK
    around = numbers.spread(score.value, score.low, score.high, unit)
    return TextCell(numbers.number(score.value, unit), around)


def other_parts(records: Sequence[Record], full: int) -> Iterator[SeedTables]:
    """Parts below the scores: backfilling, counts, times; by seed of the first ``full``."""
    several = len(records) > 1
    means = {table.title: table for table in _backfilling(records)} if several else {}
    found: dict[str, list[tuple[int, TextTable]]] = {}
    for record in records[:full]:
        for table in (*_backfilling([record]), *_counts(record), *_stages(record)):
            found.setdefault(table.title, []).append((record.seed, table))
    for title, tables in found.items():
        if not several:
            yield SeedTables(title, tables[0][1])
            continue
        seeds = by_seed(f"{title}, by seed", tables)
        if seeds.grouped:
            yield SeedTables(title, means.get(title), (seeds,))
        else:
            yield SeedTables(title, seeds)


def _backfilling(records: Sequence[Record]) -> Iterator[TextTable]:
    for table in backfilling.make_tables(records):
        orders = (replace(table.labels[1], heading=True),)
        rows = tuple(replace(row, labels=row.labels[1:]) for row in table.rows)
        title = f"{table.title.rpartition(': ')[2].capitalize()}, percent"
        yield replace(table, title=title, labels=orders, rows=rows, grouped=False)


def _counts(record: Record) -> Iterator[TextTable]:
    if record.counts:
        cases, heads = record.counts.values(), [*map(select.case_head, record.counts)]
        lines = [
            [name.removeprefix("n_").replace("_", " ")]
            + [f"{counts[name]:,}" if name in counts else "" for counts in cases]
            for name in dict.fromkeys(name for counts in cases for name in counts)
        ]
        yield simple_table("Counts", "", ("number of",), heads, lines)


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


RowCells = tuple[TextCell, ...]


def by_seed(title: str, parts: Sequence[tuple[int, TextTable]]) -> TextTable:
    """Tables of one kind as one: rows of the same name below each other, a row a seed.

    Where a row is the same of every seed it stands once; where all are, there are no groups.

    Args:
        title: Of the new table.
        parts: Seeds, and the table of each.
    """
    first = parts[0][1]
    columns = tuple(dict.fromkeys(c for _, table in parts for c in table.blocks[0].columns))
    groups: dict[TextCell, list[tuple[str, RowCells]]] = {}
    for seed, table in parts:
        for name, cells in _rows(table, columns):
            groups.setdefault(name, []).append((f"seed {seed}", cells))
    lines: list[TextRow] = []
    for name, rows in groups.items():
        same = len(rows) == len(parts) and all(cells == rows[0][1] for _, cells in rows)
        found = [(_EVERY, rows[0][1])] if same else rows
        lines += [TextRow((name, TextCell(seed)), (cells,)) for seed, cells in found]
    labels: tuple[TextColumn, ...] = (first.labels[0], TextColumn("seed", words=True))
    if all(row.labels[1].text == _EVERY for row in lines):
        labels = first.labels[:1]
        lines = [replace(row, labels=row.labels[:1]) for row in lines]
    block = replace(first.blocks[0], columns=columns)
    grouped = len(labels) > 1
    return TextTable(title, "", labels, (block,), tuple(lines), notes=first.notes, grouped=grouped)


def _rows(table: TextTable, columns: tuple[TextColumn, ...]) -> Iterator[tuple[TextCell, RowCells]]:
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
