"""The table of methods: bounds first, then a row for each method, a block for each metric."""

from collections.abc import Iterator

from benchmark.report import notes, numbers, select
from benchmark.report.scores import GAIN, MethodScores, ScoreTable
from benchmark.report.text_table import (
    NOT_APPLICABLE,
    TextBlock,
    TextCell,
    TextColumn,
    TextTable,
    filled_block,
    score_cell,
    table_of_blocks,
)

COLUMNS = (
    "protocol", "track", "kind", "method", "seeds", "status", "reason", "case", "metric",
    "value", "low", "high", "compatible", "not_hurting", "gain", "changed",
)  # fmt: skip
"""Of the CSV: a line for each row, case and metric, fractions in full precision."""


def text_table(table: ScoreTable) -> TextTable:
    """Scores of one protocol and track, to be printed."""
    labels = [
        (TextCell(row.label, small=row.detail), "" if row.kind == "method" else "bound")
        for row in table.rows
    ]
    return table_of_blocks(
        table.title, table.slug, labels, [_block(table, metric) for metric in table.metrics],
        notes=(_best_words(table), *table.notes), columns=COLUMNS,
        values=tuple(line for row in table.rows for line in _values(table, row)),
    )  # fmt: skip


def _best_words(table: ScoreTable) -> str:
    methods = [row for row in table.rows if row.kind == "method" and row.reason is None]
    seeds = {row.method: row.seeds for row in methods}
    words = notes.rival_words(seeds, [row.method for row in table.rivals])
    return f"* is the best method of a column{words}."


def _block(table: ScoreTable, metric: str) -> tuple[TextBlock, list[tuple[TextCell, ...]]]:
    """One metric, and the cells of each row."""
    roles = zip(table.cases, table.roles, strict=True)
    columns = [TextColumn(select.case_head(case), role) for case, role in roles]
    columns += [TextColumn("compatible", short="compat."), TextColumn(GAIN)]
    best = {case: table.best(metric, case) for case in (*table.cases, GAIN)}
    rows = [list(_cells(table, row, metric, best)) for row in table.rows]
    return filled_block(label(metric), columns, rows, tied=1)  # a gain that nobody has says much


def label(metric: str) -> str:
    """A metric's label, and whether lower is better."""
    about = numbers.metric(metric)
    return about.label + (" (lower is better)" if about.higher_is_better is False else "")


def _cells(
    table: ScoreTable, row: MethodScores, metric: str, best: dict[str, set[str]]
) -> Iterator[TextCell]:
    if row.reason is not None:
        yield TextCell(NOT_APPLICABLE)
        return
    unit = numbers.metric(metric).unit
    for case in table.cases:
        score = row.cells.get((metric, case))
        if score is not None and score.value is None and row.kind != "method":
            score = None
        signed = select.is_difference(case)
        yield score_cell(score, unit, best=row.method in best[case], signed=signed)
    verdict = row.verdicts.get(metric)
    if verdict is None:
        yield from (TextCell(), TextCell())
    else:
        yield TextCell(numbers.of_seeds(verdict.compatible))
        yield TextCell(numbers.number(verdict.gain), best=row.method in best[GAIN])


def _values(table: ScoreTable, row: MethodScores) -> Iterator[list[object]]:
    """CSV lines; verdicts stand on those of the case that they are of, as shares of the seeds."""
    head = [table.protocol, table.track, row.kind, row.method, " ".join(map(str, row.seeds))]
    if row.reason is not None:
        yield [*head, "not-applicable", row.reason, *[""] * 8, table.changed]
    told = notes.untold(row.diverged)
    for (metric, case), score in row.cells.items():
        verdict = row.verdicts.get(metric) if case == table.cross else None
        verdict_cells: list[object] = [None] * 3
        if verdict is not None:
            answers = (verdict.compatible, verdict.not_hurting)
            verdict_cells = [*(None if a is None else a[0] / a[1] for a in answers), verdict.gain]
        if score.value is not None:
            scores = [score.value, score.low, score.high]
            where = row.detail or case, metric
            yield [*head, "done", told, *where, *scores, *verdict_cells, table.changed]
