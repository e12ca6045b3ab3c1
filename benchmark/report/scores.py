"""Scores of methods: what tables, plots, ranks and the leaderboard compute with.

Values stay fractions; how they are printed stands in :mod:`benchmark.report.text_table`.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from benchmark.config.grouping import grouped
from benchmark.errors import BenchError
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.statistics import mean_score
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select

Span = tuple[float, float]
Kind = Literal["lower", "independent", "upper", "method"]
GAIN = "gain"


@dataclass(frozen=True)
class CaseVerdict:
    """The meaning of a method's cross-test."""

    # (seeds on which new/old > old/old, seeds); None where unknown
    compatible: tuple[int, int] | None
    # (seeds on which new/new is no worse than the independent model's, seeds)
    not_hurting: tuple[int, int] | None
    gain: float | None  # mean update gain; None where a seed has none


@dataclass(frozen=True)
class MethodScores:
    """Scores of one bound or method."""

    kind: Kind
    label: str  # as printed where there is little room
    method: str  # method id; for a bound its name in the records
    seeds: tuple[int, ...]  # seeds that the scores are means of
    cells: Mapping[tuple[str, str], Estimate]  # (metric, case of the column) -> score
    verdicts: Mapping[str, CaseVerdict]  # metric -> compatible, gain
    reason: str | None = None  # why the method is not applicable; None where it is
    rival: bool = True  # whether it may be the best; see :func:`select.unranked`
    diverged: bool = False  # whether a training diverged, so that scores say nothing of the method
    detail: str = ""  # the case that a bound is, ``old/old``; empty for methods

    @property
    def full(self) -> str:
        """Label and detail."""
        return f"{self.label}, {self.detail}" if self.detail else self.label


@dataclass(frozen=True)
class ScoreTable:
    """Scores of one protocol on one track."""

    protocol: str
    track: str
    title: str  # protocol, track, seeds in words
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]  # keys, in reading order
    cases: tuple[str, ...]  # columns of each metric, in reading order
    roles: tuple[str, ...]  # what each case tests
    rows: tuple[MethodScores, ...]  # lower bound, independent, upper bounds, methods
    notes: tuple[str, ...]  # what stands below the table
    upper: str  # which bound the gain uses
    slug: str  # a name for files and labels, its own among the tables made together
    changed: str = ""  # what was set, in words
    cross: str = ""  # the case that verdicts are of, whether it is shown or not

    @cached_property
    def rivals(self) -> tuple[MethodScores, ...]:
        """Methods that may be the best, as :func:`benchmark.report.select.rivals`."""
        may = [r for r in self.rows if r.kind == "method" and r.reason is None and r.rival]
        some = select.of_most_seeds({row.method: row.seeds for row in may})
        return tuple(row for row in may if row.method in some)

    def best(self, metric: str, case: str) -> set[str]:
        """Methods with the best score of a case, or the best ``gain``; none without a rank.

        Of methods of the same seeds, those that most have. Of a difference only where it is one
        from old/old, which itself is no score of a method.
        """
        lower = next((row.detail for row in self.rows if row.kind == "lower"), "")
        if case == lower or not select.ranks(case, lower):
            return set()
        values = {
            row.method: row.verdicts[metric].gain if case == GAIN else row.cells[metric, case].value
            for row in self.rivals
        }
        return numbers.best(values, metric, larger=case == GAIN)


def case_score(records: Sequence[Record], case: str, metric: str) -> Estimate:
    """The score of a case, mean over records."""
    return mean_score(
        [select.score(record, case, metric) for record in records],
        [record.intervals.get(case, {}).get(metric) for record in records],
    )


def bound_score(records: Sequence[Record], bound: str, metric: str) -> float | None:
    """A bound, mean over records; None where one lacks it."""
    return mean_score([record.bounds.get(bound, {}).get(metric) for record in records]).value


def make_verdict(records: Sequence[Record], metric: str) -> CaseVerdict:
    """The verdict over records of one method.

    There is no gain where one seed is not compatible: the mean of the others would flatter.
    """
    gains = [gain for r in records if (gain := r.update_gain.get(metric)) is not None]
    gain = math.fsum(gains) / len(gains) if gains and len(gains) == len(records) else None
    compatible = _of_seeds([record.compatible.get(metric) for record in records])
    return CaseVerdict(compatible, _of_seeds([r.not_hurting.get(metric) for r in records]), gain)


def _of_seeds(answers: Sequence[bool | None]) -> tuple[int, int] | None:
    """(yes, of how many); None where a seed has no answer."""
    return None if None in answers else (sum(map(bool, answers)), len(answers))


def method_label(method: str, of: bool | Iterable[Record]) -> str:
    """A method as its row is named: ``bct (diverged)`` where a training did, of any record."""
    bad = of if isinstance(of, bool) else any(record.diverged for record in of)
    return f"{method} (diverged)" if bad else method


def by_method(records: Iterable[Record], *, done: bool = True) -> dict[str, list[Record]]:
    """Method -> its records, the independent model first; with ``done`` only finished ones."""
    ordered = sorted(records, key=lambda r: r.method.partition(":"))
    found = grouped((r.method, r) for r in ordered if r.status == "done" or not done)
    return {m: found[m] for m in sorted(found, key=lambda method: method != "independent")}


def group(records: Iterable[Record], *, families: bool = False) -> list[list[Record]]:
    """Records that may stand in one table: of one protocol, track, their versions and changes.

    With ``families`` all settings of a protocol do. The order of the records does not matter.
    """
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in sorted(records, key=lambda r: (r.method.partition(":"), r.seed)):
        key = (
            record.protocol.partition(":")[0] if families else record.protocol,
            record.track, str(record.protocol_version), str(record.track_version),
            json.dumps(record.changed, sort_keys=True, default=str),
        )  # fmt: skip
        groups.setdefault(key, []).append(record)
    return [groups[key] for key in sorted(groups)]


def named_groups(records: Iterable[Record]) -> Iterator[tuple[str, list[Record]]]:
    """Groups of records, each with a name for files; what is alike gets a number."""
    count: Counter[str] = Counter()
    for members in group(records):
        name = f"{members[0].protocol}-{members[0].track}".replace(":", "+")
        name += "-changed" if members[0].changed else ""
        count[name] += 1
        yield (name if count[name] == 1 else f"{name}-{count[name]}"), members


def make_tables(
    records: Iterable[Record], metrics: select.Names = None, cases: select.Names = None
) -> list[ScoreTable]:
    """The scores of each protocol and track that has any of the metrics and of the cases.

    Raises:
        BenchError: If a metric or case is in no record.
    """
    listed = list(records)
    select.require(group(listed), metrics, cases)
    return some_tables(listed, metrics, cases)


def some_tables(
    records: Iterable[Record], metrics: select.Names = None, cases: select.Names = None
) -> list[ScoreTable]:
    """As :func:`make_tables`, maybe none: what is chosen may be in other records."""
    tables = []
    for slug, members in named_groups(records):
        keys = select.some(select.metrics, members, metrics)
        columns = select.some(select.cases, members, cases)
        if keys and columns:
            tables.append(_table(members, slug, keys, columns))
    return tables


def make_table(
    records: Iterable[Record], metrics: select.Names = None, cases: select.Names = None
) -> ScoreTable:
    """The scores of records of one protocol and track; see :func:`make_tables`.

    Raises:
        BenchError: If there are no records, or of several protocols or tracks.
    """
    tables = make_tables(records, metrics, cases)
    if len(tables) != 1:
        names = ", ".join(dict.fromkeys(f"{t.protocol} on {t.track}" for t in tables)) or "none"
        raise BenchError(f"records: expected one protocol, track and setting, got {names}")
    return tables[0]


def _table(
    records: Sequence[Record], slug: str, keys: Sequence[str], columns: list[str]
) -> ScoreTable:
    names = select.generations(records)
    if select.AVG in keys:
        columns.append(select.averaged_case(names))
    rows = [*bounds(records, keys)]
    unranked = select.unranked(records)
    rows += [
        _method(members, keys, columns, rival=method not in unranked)
        for method, members in by_method(records, done=False).items()
    ]
    rows.sort(key=lambda row: ("lower", "independent", "upper", "method").index(row.kind))
    return ScoreTable(
        protocol=records[0].protocol,
        track=records[0].track,
        title=notes.title(records),
        seeds=tuple(sorted({record.seed for record in records})),
        metrics=tuple(keys),
        cases=tuple(columns),
        roles=tuple(select.role(case, names) for case in columns),
        rows=tuple(rows),
        notes=tuple(notes.notes(records, keys)),
        upper=records[0].upper,
        slug=slug,
        changed=notes.changed_words(records[0]),
        cross=select.cross_case(records),
    )


def bounds(records: Sequence[Record], keys: Sequence[str]) -> Iterator[MethodScores]:
    """The lower bound and every upper bound that was measured, mean over the seeds."""
    lower, upper = select.lower_case(records), select.self_case(records)
    known: tuple[tuple[str, Kind, str, str, str], ...] = (
        ("lower", "lower", "lower bound", lower, select.cross_case(records)),
        ("upper", "upper", "upper bound", upper, upper),
        ("upper-all", "upper", "upper, all data", upper, upper),
    )
    for name, kind, label, case, column in known:
        # The independent model's own record also knows the intervals of its bounds.
        ordered = sorted(records, key=lambda r: r.method != "independent")
        seeds = grouped((record.seed, record) for record in ordered if name in record.bounds)
        if seeds:
            cells = {(key, column): _bound([*seeds.values()], name, case, key) for key in keys}
            yield MethodScores(kind, label, name, tuple(sorted(seeds)), cells, {}, detail=case)


def _bound(seeds: Sequence[Sequence[Record]], name: str, case: str, key: str) -> Estimate:
    """A bound, with the interval of a case that has its very value in a record of its seed."""
    values = [records[0].bounds[name].get(key) for records in seeds]
    spans = [
        next((found for r in records if (found := _span(r, case, key, value))), None)
        for records, value in zip(seeds, values, strict=True)
    ]
    return mean_score(values, spans)


def _span(record: Record, case: str, key: str, value: float | None) -> Span | None:
    same = record.scores.get(case, {}).get(key) == value
    return record.intervals.get(case, {}).get(key) if same else None


def _method(
    records: Sequence[Record], keys: Sequence[str], columns: Sequence[str], *, rival: bool
) -> MethodScores:
    """Mean over the seeds on which the method could be applied."""
    method = records[0].method
    done = [record for record in records if record.status == "done"]
    diverged = any(record.diverged for record in done)
    return MethodScores(
        kind="independent" if method == "independent" else "method",
        label=method_label(method, done),
        method=method,
        seeds=tuple(record.seed for record in done),
        cells={(k, c): case_score(done, c, k) for k in keys for c in columns} if done else {},
        verdicts={key: make_verdict(done, key) for key in keys} if done else {},
        reason=None if done else records[0].reason or "no reason given",
        rival=rival,
        diverged=diverged,
    )
