"""The table of a sequence of updates: a row for each case, a column for each method.

Source: FCT Tables 5 and 8: each generation by itself, after one update, after several one after
the other, and directly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from benchmark.metrics import compatibility
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.scores import Score, by_method, case_score, mean_score, named_groups
from benchmark.report.tables.results import label
from benchmark.report.text_table import (
    TextBlock,
    TextCell,
    TextColumn,
    TextRow,
    TextTable,
    filled,
    score_cell,
)

_READING = (
    "i/j: queries of generation i in a gallery of generation j that was updated up to i, step by "
    "step or directly. Average compatibility: share of the pairs i > j for which i/j beats j/j (in "
    "chains); average accuracy: mean over i >= j."
)
_AVERAGES = ("average compatibility", "average accuracy")


@dataclass(frozen=True)
class SequenceScores:
    """Scores of one protocol of three generations or more, and track.

    Attributes:
        methods: The independent model, then the others.
        cases: Case -> what it is called; self-tests first.
        scores: (metric, case or average, method) -> score.
    """

    title: str
    slug: str
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    cases: Mapping[str, str]
    scores: Mapping[tuple[str, str, str], Score]


def make_scores(records: Iterable[Record], metrics: select.Names = None) -> list[SequenceScores]:
    """The scores of each protocol of three generations or more, and track.

    Args:
        records: Any records; those of two generations are passed over.
        metrics: Keys, as a list or with commas between; ``all``; by default the main ones.

    Raises:
        BenchError: If a metric is in no record.
    """
    return [
        _scores(members, slug, select.metrics(members, metrics))
        for slug, members in named_groups(records)
        if len(members[0].models) > 2 and any(r.status == "done" for r in members)
    ]


def make_tables(records: Iterable[Record], metrics: select.Names = None) -> list[TextTable]:
    """The same, to be printed; see :func:`make_scores`."""
    return [text_table(scores) for scores in make_scores(records, metrics)]


def _scores(records: Sequence[Record], slug: str, keys: Sequence[str]) -> SequenceScores:
    methods = by_method(records)
    cases = dict(_cases(records))
    scores = {
        (key, case, method): case_score(done, case, key)
        for key in keys
        for case in cases
        for method, done in methods.items()
    }
    for key in keys:
        for method, done in methods.items():
            means = zip(*(_averages(record, key) for record in done), strict=True)
            for name, values in zip(_AVERAGES, means, strict=True):
                scores[key, name, method] = mean_score(values)
    title = f"{notes.title(records)}: step by step"
    return SequenceScores(title, f"{slug}-sequence", tuple(methods), tuple(keys), cases, scores)


def _cases(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """Self-tests, then one update, two, ...; what is direct below what it leaves out."""
    names = select.generations(records)
    measured = {case for record in records for case in record.scores}
    for name in names:
        yield f"{name}/{name}", f"{name}/{name}, self-test"
    for steps in range(1, len(names)):
        for old, new in zip(names, names[steps:], strict=False):
            case = f"{new}/{old}"
            yield case, f"{case}, {steps} update{'s' if steps > 1 else ''}"
            if f"{case} direct" in measured:
                yield f"{case} direct", f"{case}, direct"


def _averages(record: Record, key: str) -> tuple[float | None, float | None]:
    """Average compatibility and accuracy over all pairs; none where a pair has no score."""
    names = list(record.models)
    scores = [[record.scores.get(f"{i}/{j}", {}).get(key) for j in names] for i in names]
    matrix = [
        [math.nan if value is None else value for value in row[: i + 1]]
        + [0.0] * (len(names) - i - 1)
        for i, row in enumerate(scores)
    ]
    if any(math.isnan(value) for row in matrix for value in row):
        return None, None
    # Errors and gaps turn round: for them smaller is better.
    sign = -1.0 if numbers.metric(key).higher_is_better is False else 1.0
    signed = [[sign * value for value in row] for row in matrix]
    return compatibility.average_compatibility(signed), compatibility.average_accuracy(matrix)


def text_table(table: SequenceScores) -> TextTable:
    """A block for each metric; the best of a row is marked."""
    labels = {**table.cases, **{name: name for name in _AVERAGES}}
    columns = tuple(map(TextColumn, table.methods))
    cells = {key: [_cells(table, key, case) for case in labels] for key in table.metrics}
    kept = {key: filled(rows, len(columns)) for key, rows in cells.items()}
    return TextTable(
        title=table.title,
        slug=table.slug,
        labels=(TextColumn("", words=True, heading=True),),
        blocks=tuple(TextBlock(label(key), tuple(compress(columns, kept[key]))) for key in cells),
        rows=tuple(
            TextRow(
                (TextCell(words),),
                tuple(tuple(compress(cells[key][i], kept[key])) for key in cells),
                kind="bound" if _is_self(words) else "",
            )
            for i, words in enumerate(labels.values())
        ),
        notes=("* is the best method of a row.", _READING),
    )


def _is_self(words: str) -> bool:
    return words.endswith("self-test")


def _cells(table: SequenceScores, key: str, case: str) -> list[TextCell]:
    scores = {method: table.scores[key, case, method] for method in table.methods}
    unit = numbers.metric(key).unit
    if _is_self(table.cases.get(case, "")):
        return [score_cell(s if s.value is not None else None, unit) for s in scores.values()]
    rivals = {m: s.value for m, s in scores.items() if m != "independent"}
    best = numbers.best(rivals, key, larger=case == _AVERAGES[0])
    return [score_cell(s, unit, best=m in best) for m, s in scores.items()]
