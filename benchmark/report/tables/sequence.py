"""The table of a sequence of updates: a row for each case, a column for each method.

Source: FCT Tables 5 and 8: each generation by itself, after one update, after several one after
the other, and directly.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from benchmark.metrics import compatibility
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.statistics import mean_score
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.scores import by_method, case_score, method_label, named_groups
from benchmark.report.tables.results import label
from benchmark.report.text_table import (
    TextCell,
    TextColumn,
    TextTable,
    filled_block,
    score_cells,
    table_of_blocks,
)

_READING = (
    "i/j: queries of generation i in a gallery of generation j that was updated up to i, step by "
    "step or directly. Average compatibility: share of the pairs i > j for which i/j beats j/j (in "
    "chains); average accuracy: mean over i >= j."
)
SHARE, _MEAN = "average compatibility", "average accuracy"


def make_tables(
    records: Iterable[Record], metrics: select.Names = None, cases: select.Names = None
) -> list[TextTable]:
    """A table for each protocol of three generations or more, and track, with any such metric.

    Its rows are the chosen cases; by default all of them and the averages.
    """
    return [
        _table(members, slug, keys, labels)
        for slug, members in named_groups(records)
        if len(members[0].models) > 2 and any(r.status == "done" for r in members)
        if (keys := select.some(select.metrics, members, metrics))
        if (labels := _rows(members, cases))
    ]


def _rows(records: Sequence[Record], chosen: select.Names) -> dict[str, str]:
    """Cases, or averages, of the rows and their labels."""
    labels = cases(records)
    if not chosen or numbers.words(chosen) == ["all"]:
        return labels | {SHARE: SHARE, _MEAN: _MEAN}
    some = select.some(select.cases, records, chosen)
    return {case: labels.get(case, case) for case in some}


def cases(records: Sequence[Record]) -> dict[str, str]:
    """Cases of a sequence and their labels: self-tests, then one update, two, ...

    What is direct stands below what it leaves out.
    """
    names = select.generations(records)
    measured = {case for record in records for case in record.scores}
    labels = {f"{name}/{name}": f"{name}/{name}, self-test" for name in names}
    for steps in range(1, len(names)):
        for old, new in zip(names, names[steps:], strict=False):
            case = f"{new}/{old}"
            labels[case] = f"{case}, {steps} update{'s' if steps > 1 else ''}"
            if f"{case} direct" in measured:
                labels[f"{case} direct"] = f"{case}, direct"
    return labels


def _table(
    records: Sequence[Record], slug: str, keys: Sequence[str], labels: Mapping[str, str]
) -> TextTable:
    methods = by_method(records)
    columns = tuple(TextColumn(method_label(method, of)) for method, of in methods.items())
    blocks = [
        filled_block(label(key), columns, [_cells(methods, case, key) for case in labels])
        for key in keys
    ]
    best = notes.rival_words(select.seeds_of(records), select.rivals(records))
    kinds = ("bound" if words.endswith("self-test") else "" for words in labels.values())
    return table_of_blocks(
        f"{notes.title(records)}: step by step", f"{slug}-sequence",
        zip(map(TextCell, labels.values()), kinds, strict=True), blocks,
        notes=(
            f"Percent; {notes.interval_words(records, keys)}. * is the best method of a row{best}.",
            _READING, *notes.few_seeds(records),
        ),
    )  # fmt: skip


def _cells(methods: Mapping[str, Sequence[Record]], case: str, key: str) -> list[TextCell]:
    """A row of one metric; among self-tests none is the best, and blank is what has no score."""
    query, _, gallery = case.partition("/")
    scores: dict[str, Estimate | None] = {m: _score(of, case, key) for m, of in methods.items()}
    if query == gallery:
        scores = {m: s if s and s.value is not None else None for m, s in scores.items()}
    rivals = select.rivals(record for of in methods.values() for record in of)
    rivals = rivals if query != gallery else []
    return [*score_cells(scores, key, rivals, larger=case == SHARE).values()]


def _score(records: Sequence[Record], case: str, key: str) -> Estimate:
    if case in (SHARE, _MEAN):
        return mean_score([average(record, key, case) for record in records])
    return case_score(records, case, key)


def average(record: Record, key: str, kind: str) -> float | None:
    """Over the matrix of a record's pairs; none where a pair has no score."""
    names = list(record.models)
    # Errors and gaps turn round: for them smaller is better.
    smaller = kind == SHARE and numbers.metric(key).higher_is_better is False
    matrix = [[0.0] * len(names) for _ in names]
    for i, new in enumerate(names):
        for j, old in enumerate(names[: i + 1]):
            value = record.scores.get(f"{new}/{old}", {}).get(key)
            matrix[i][j] = math.nan if value is None else -value if smaller else value
    if any(math.isnan(value) for row in matrix for value in row):
        return None
    average = {SHARE: compatibility.average_compatibility, _MEAN: compatibility.average_accuracy}
    return average[kind](matrix)
