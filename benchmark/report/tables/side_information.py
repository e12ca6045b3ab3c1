"""The table of side-information: what each kind costs, what it is by itself, what it gives.

Source: FCT Table 6 and section 5.3. Rows are kinds; beside each method that stores one stands the
same method without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.scores import Score, case_score, mean_score, named_groups
from benchmark.report.tables.results import COLUMNS
from benchmark.report.text_table import TextCell, TextTable, score_cell, simple_table
from benchmark.training.side_kinds import SIDES

_METRICS = ("cmc_at_1", "cmc_at_5", "map")
_ALONE = "cmc_at_1"


@dataclass(frozen=True)
class SideResult:
    """A method with one kind of side-information, mean over its seeds.

    Attributes:
        kind: Of side-information; None without any.
        scores: Metric -> score of the cross-test.
        alone: CMC@1 of side-information queries in a gallery of side-information.
        cka: Linear, with the embedding on the gallery.
        bytes: Of an item.
    """

    method: str
    kind: str | None
    seeds: tuple[int, ...]
    scores: Mapping[str, Score]
    alone: Score
    cka: Score
    bytes: float

    @property
    def title(self) -> str:
        """The kind in words; its name where this installation does not know it."""
        if self.kind is None:
            return "none"
        return SIDES[self.kind].title if self.kind in SIDES else self.kind


def make_tables(records: Iterable[Record]) -> list[TextTable]:
    """A table for each protocol and track where something is stored beside the embedding."""
    return [
        _table(members, slug)
        for slug, members in named_groups(records)
        if any(record.side for record in members)
    ]


def _table(members: Sequence[Record], slug: str) -> TextTable:
    case, old = select.cross_case(members), select.generations(members)[0]
    families = {r.method.partition(":")[0] for r in members if r.side}
    chosen: dict[str, list[Record]] = {}
    for record in members:
        if record.status == "done" and (record.side or record.method in families):
            chosen.setdefault(record.method, []).append(record)
    scored = {key for r in members for key in r.scores.get(case, {})}
    known = numbers.ordered(scored & {*_METRICS})
    if not known:  # faces are verified and identified, not ranked
        known = [key for key in select.metrics(members) if key in scored]
    rows = [_row(records, case, old, known) for records in chosen.values()]
    kinds = [None, *SIDES]
    rows.sort(key=lambda row: kinds.index(row.kind) if row.kind in kinds else len(kinds))
    shown = [record for records in chosen.values() for record in records]
    labels = [numbers.metric(key).label for key in known]
    values = [line for row in rows for line in _values(shown[0], row, old)]
    return simple_table(
        f"{notes.title(shown)}: side-information",
        f"{slug}-side",
        ("side-information", "method"),
        (*labels, "CKA", "bytes", "by itself"),
        list(_lines(rows, known)),
        notes=tuple(_notes(case, old, shown)),
        compact=True,
        columns=COLUMNS,
        values=tuple(values),
    )


def _row(records: Sequence[Record], case: str, old: str, keys: Sequence[str]) -> SideResult:
    stored = [r.side.generations.get(old) if r.side else None for r in records]
    return SideResult(
        method=records[0].method,
        kind=records[0].side.kind if records[0].side else None,
        seeds=tuple(record.seed for record in records),
        scores={key: case_score(records, case, key) for key in keys},
        alone=mean_score([s.scores.get(_ALONE) if s else None for s in stored]),
        cka=mean_score([s.cka if s else None for s in stored]),
        bytes=stored[0].bytes if stored[0] else 0.0,
    )


def _lines(rows: Sequence[SideResult], keys: Sequence[str]) -> Iterator[list[str | TextCell]]:
    best = {k: numbers.best({r.method: r.scores[k].value for r in rows}, k) for k in keys}
    for row in rows:
        yield [
            row.title,
            row.method,
            *(score_cell(row.scores[key], best=row.method in best[key]) for key in keys),
            score_cell(row.cka, "coefficient", spread=False),
            f"{row.bytes:g}",
            score_cell(row.alone, spread=False),
        ]


def _notes(case: str, old: str, records: Sequence[Record]) -> Iterator[str]:
    yield f"Percent of {case}; {notes.interval_words(records)}. * is the best of a column."
    yield (
        f"bytes: of what the {old} generation stores of an item beside its embedding. CKA: "
        "linear, with that embedding on the gallery (FCT 5.3). by itself: CMC@1 of "
        "side-information queries in a gallery of side-information."
    )
    kinds = {r.side.kind for r in records if r.side and r.side.kind in SIDES}
    if any(SIDES[kind].data == "other" for kind in kinds):
        yield "Other domain: learned on another dataset, the track's other_domain (FCT 4.3)."


def _values(record: Record, row: SideResult, old: str) -> Iterator[list[object]]:
    """CSV lines in the columns of the table of methods, whose cross-test they stand below.

    The case is ``side/side of old``.
    """
    if row.kind is None:
        return
    seeds = " ".join(map(str, row.seeds))
    head = [record.protocol, record.track, "side", row.method, seeds, "done", ""]
    for metric, score in ((_ALONE, row.alone), ("cka", row.cka), ("bytes", Score(row.bytes))):
        if score.value is not None:
            values = (score.value, score.low, score.high)
            yield [*head, f"side/side of {old}", metric, *values, "", "", ""]
