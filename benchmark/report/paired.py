"""Two methods on the same queries: differences with intervals and p-values, from details files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benchmark.config import registry
from benchmark.errors import BenchError, unknown
from benchmark.records.details import Answers, Details, find_details
from benchmark.records.files import StoredRecord, read_record
from benchmark.records.record import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

By = Literal["identity", "query"]

RESAMPLES = 10_000


@dataclass(frozen=True)
class Line:
    """One case and metric of two methods.

    Attributes:
        left: The first method's mean over the shared queries and seeds.
        right: The second's.
        difference: Left minus right.
        low: Lower end of the difference's 95 % bootstrap interval.
        high: Upper end.
        p_value: Two-sided, by flipping the signs of differences at random.
        adjusted: The same after Holm's correction for all lines of the comparison.
        n_queries: Shared queries.
        n_identities: Identities that they belong to.
        seeds: Seeds that both have; a query's value is its mean over them.
        wins: On how many seeds left is above right.
    """

    protocol: str
    track: str
    case: str
    metric: str
    left: float
    right: float
    difference: float
    low: float
    high: float
    p_value: float
    adjusted: float
    n_queries: int
    n_identities: int
    seeds: tuple[int, ...]
    wins: int


def compare(
    left: Sequence[StoredRecord],
    right: Sequence[StoredRecord],
    *,
    cases: Sequence[str] = (),
    metrics: Sequence[str] = (),
    by: By = "identity",
    n: int = RESAMPLES,
    seed: int = 0,
) -> list[Line]:
    """Compare two methods wherever both were run.

    Args:
        left: Records of one method: any protocols, tracks and seeds.
        right: Records of the other.
        cases: By default the cross-test and the self-test of the last generation.
        metrics: By default CMC@1 and mAP, where they are; otherwise all.
        by: What the bootstrap draws: whole identities, or queries each by itself.
        n: Resamples.
        seed: Of the resampling.

    Returns:
        A line for each protocol, track, case and metric.

    Raises:
        BenchError: If there is nothing to compare, or the queries are not the same.
    """
    groups = [_grouped(side) for side in (left, right)]
    shared = [setting for setting in groups[0] if setting in groups[1]]
    lines = []
    for setting in shared:
        pair = _Pair(groups[0][setting], groups[1][setting])
        for case, metric in pair.wanted(cases, metrics):
            lines.append(pair.line(case, metric, by, n, seed))
    if not lines:
        names = " and ".join(_name(side) for side in (left, right))
        raise BenchError(f"compare: {names}: no protocol, track and seed that both were run on")
    return _corrected(lines)


def _name(side: Sequence[StoredRecord]) -> str:
    return ", ".join(dict.fromkeys(found.record.method for found in side)) or "no record"


def _corrected(lines: Sequence[Line]) -> list[Line]:
    from benchmark.metrics.statistics import holm

    adjusted = holm([line.p_value for line in lines])
    return [replace(a, adjusted=float(p)) for a, p in zip(lines, adjusted, strict=True)]


_Setting = tuple[Any, ...]


def _grouped(side: Sequence[StoredRecord]) -> dict[_Setting, dict[int, StoredRecord]]:
    """Seed -> record, for each setting whose scores may be compared."""
    groups: dict[_Setting, dict[int, StoredRecord]] = {}
    methods = {*registry.method_files(), *(_base(found.record) for found in side)}
    for found in sorted(side, key=lambda f: str(f.path)):
        r = found.record
        if r.status != "done":
            raise BenchError(f"compare: {r.method} on {r.protocol}: not applicable: {r.reason}")
        # Parameters of methods may differ: they are what is compared.
        changed = {k: v for k, v in r.changed.items() if re.split("[.:]", k)[0] not in methods}
        setting = (
            r.protocol, r.protocol_version, r.track, r.track_version,
            repr(sorted(changed.items())), r.dataset.fingerprint,
        )  # fmt: skip
        if groups.setdefault(setting, {}).setdefault(r.seed, found) is not found:
            other = groups[setting][r.seed].path
            raise BenchError(
                f"compare: {other} and {found.path}: two records of one seed; name one"
            )
    return groups


def _base(record: Record) -> str:
    return record.method.partition(":")[0]


class _Pair:
    """Two methods in one setting."""

    def __init__(self, left: Mapping[int, StoredRecord], right: Mapping[int, StoredRecord]) -> None:
        self.seeds = tuple(sorted(left.keys() & right.keys()))
        self.found = [[side[seed] for seed in self.seeds] for side in (left, right)]
        self.details = [[_details(found) for found in side] for side in self.found]

    def wanted(self, cases: Sequence[str], metrics: Sequence[str]) -> list[tuple[str, str]]:
        """Cases and metrics that both have, in the order asked for."""
        if not self.seeds:
            return []
        every = [d.answers.keys() for side in self.details for d in side]
        both = [key for key in every[0] if all(key in keys for keys in every)]
        names = list(self.found[0][0].record.models)
        known = [list(dict.fromkeys(column)) for column in zip(*both, strict=True)] or [[], []]
        for kind, asked, there in zip(("case", "metric"), (cases, metrics), known, strict=True):
            for name in asked:
                if name not in there:
                    raise unknown(f"{kind} with results by query in both", name, there)
        usual = [f"{names[-1]}/{names[0]}", f"{names[-1]}/{names[-1]}"]
        chosen = cases or [case for case in usual if case in known[0]] or known[0]
        shown = metrics or [m for m in ("cmc_at_1", "map") if m in known[1]] or known[1]
        return [(c, m) for c in chosen for m in shown if (c, m) in both]

    def line(self, case: str, metric: str, by: By, n: int, seed: int) -> Line:
        """Compare the means over the seeds, query by query."""
        from benchmark.metrics.statistics import paired

        answers = [[d.answers[case, metric] for d in side] for side in self.details]
        rows = _shared_rows([a for side in answers for a in side], self.found[0][0].path)
        values = [np.stack([_of_rows(a, a.values, rows) for a in side]) for side in answers]
        identity = _of_rows(answers[0][0], answers[0][0].identity, rows)
        means = [v.mean(axis=0) for v in values]
        groups = identity if by == "identity" else None
        result = paired(means[0], means[1], groups, n=n, seed=seed)
        record = self.found[0][0].record
        above = values[0].mean(axis=1) > values[1].mean(axis=1)
        return Line(
            record.protocol, record.track, case, metric, float(means[0].mean()),
            float(means[1].mean()), result.difference, result.low, result.high, result.p_value,
            math.nan, len(rows), len(np.unique(identity)), self.seeds, int(above.sum()),
        )  # fmt: skip


def _details(found: StoredRecord) -> Details:
    details = find_details(found.record, found.path)
    if details is None:
        raise BenchError(
            f"{found.path}: has no results by query (schema {found.record.schema_version}); "
            "run it again"
        )
    return details


def _shared_rows(answers: Sequence[Answers], path: Path) -> NDArray[np.int64]:
    """Queries that all have; they must be the same ones."""
    first = answers[0]
    rows = first.rows
    for other in answers[1:]:
        rows = np.intersect1d(rows, other.rows)
        if other.n_queries != first.n_queries or not np.array_equal(
            _of_rows(first, first.identity, rows), _of_rows(other, other.identity, rows)
        ):
            raise BenchError(f"compare: {path}: the other record has other queries")
    return rows


def _of_rows(answers: Answers, column: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    return column[np.searchsorted(answers.rows, rows)]


def find(what: str, records: Sequence[StoredRecord]) -> list[StoredRecord]:
    """The records that a word means: the path of a file, or a method among ``records``.

    Raises:
        BenchError: If there is none.
    """
    path = Path(what)
    if path.suffix == ".json" or path.is_file():
        return [StoredRecord(read_record(path), path)]
    found = [f for f in records if f.record.method == what]
    if not found:
        raise unknown("method among these records", what, {f.record.method for f in records})
    return found
