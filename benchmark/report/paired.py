"""Two methods on the same queries: differences with intervals and p-values, from details files."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benchmark.config import registry
from benchmark.errors import BenchError, unknown
from benchmark.metrics.statistics import holm, paired
from benchmark.records.details import Details, QueryResults, find_details
from benchmark.records.files import StoredRecord, read_record

if TYPE_CHECKING:
    from numpy.typing import NDArray

By = Literal["identity", "query"]

RESAMPLES = 10_000


@dataclass(frozen=True)
class Difference:
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
) -> list[Difference]:
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
    differences = []
    for setting, by_seed in groups[0].items():
        seeds = sorted(by_seed.keys() & groups[1].get(setting, {}).keys())
        if seeds:
            pair = _Pair([[side[setting][seed] for seed in seeds] for side in groups])
            for case, metric in pair.columns(cases, metrics):
                differences.append(pair.difference(case, metric, by, n, seed))
    if not differences:
        methods = [dict.fromkeys(s.record.method for s in side) for side in (left, right)]
        names = " and ".join(", ".join(side) or "no record" for side in methods)
        raise BenchError(f"compare: {names}: no protocol, track and seed that both were run on")
    adjusted = holm([d.p_value for d in differences])
    return [replace(d, adjusted=float(p)) for d, p in zip(differences, adjusted, strict=True)]


def _grouped(side: Sequence[StoredRecord]) -> dict[tuple[Any, ...], dict[int, StoredRecord]]:
    """Seed -> record, for each setting whose scores may be compared."""
    groups: dict[tuple[Any, ...], dict[int, StoredRecord]] = {}
    methods = {*registry.method_files(), *(s.record.method.partition(":")[0] for s in side)}
    for stored in sorted(side, key=lambda s: str(s.path)):
        r = stored.record
        if r.status != "done":
            raise BenchError(f"compare: {r.method} on {r.protocol}: not applicable: {r.reason}")
        # Parameters of methods may differ: they are what is compared.
        changed = {k: v for k, v in r.changed.items() if re.split("[.:]", k)[0] not in methods}
        setting = (
            r.protocol, r.protocol_version, r.track, r.track_version,
            repr(sorted(changed.items())), r.dataset.fingerprint,
        )  # fmt: skip
        other = groups.setdefault(setting, {}).setdefault(r.seed, stored)
        if other is not stored:
            raise BenchError(
                f"compare: {other.path} and {stored.path}: two records of one seed; name one"
            )
    return groups


class _Pair:
    """Two methods in one setting.

    Args:
        sides: The records of each, by seed.
    """

    def __init__(self, sides: Sequence[Sequence[StoredRecord]]) -> None:
        self.sides = sides
        self.details = [[_details(stored) for stored in side] for side in sides]

    def columns(self, cases: Sequence[str], metrics: Sequence[str]) -> list[tuple[str, str]]:
        """Cases and metrics that both have, in the order asked for."""
        every = [details.results.keys() for side in self.details for details in side]
        both = [key for key in every[0] if all(key in keys for keys in every)]
        known = [list(dict.fromkeys(names)) for names in zip(*both, strict=True)] or [[], []]
        for kind, chosen, there in zip(("case", "metric"), (cases, metrics), known, strict=True):
            for name in chosen:
                if name not in there:
                    raise unknown(f"{kind} with results by query in both", name, there)
        names = list(self.sides[0][0].record.models)
        usual = [f"{names[-1]}/{names[0]}", f"{names[-1]}/{names[-1]}"]
        cases = cases or [case for case in usual if case in known[0]] or known[0]
        metrics = metrics or [m for m in ("cmc_at_1", "map") if m in known[1]] or known[1]
        return [(case, m) for case in cases for m in metrics if (case, m) in both]

    def difference(self, case: str, metric: str, by: By, n: int, seed: int) -> Difference:
        """Compare the means over the seeds, query by query."""
        first = self.sides[0][0]
        answers = [[details.results[case, metric] for details in side] for side in self.details]
        rows = _shared_rows([a for side in answers for a in side], first.path)
        values = [np.stack([_of_rows(a, a.values, rows) for a in side]) for side in answers]
        identity = _of_rows(answers[0][0], answers[0][0].identity, rows)
        means = [v.mean(axis=0) for v in values]
        drawn = identity if by == "identity" else None
        result = paired(means[0], means[1], drawn, n=n, seed=seed)
        above = values[0].mean(axis=1) > values[1].mean(axis=1)
        return Difference(
            first.record.protocol, first.record.track, case, metric,
            float(means[0].mean()), float(means[1].mean()),
            result.difference, result.low, result.high, result.p_value, math.nan,
            len(rows), len(np.unique(identity)),
            tuple(stored.record.seed for stored in self.sides[0]), int(above.sum()),
        )  # fmt: skip


def _details(stored: StoredRecord) -> Details:
    details = find_details(stored.record, stored.path)
    if details is None:
        raise BenchError(
            f"{stored.path}: has no results by query (schema {stored.record.schema_version}); "
            "run it again"
        )
    return details


def _shared_rows(answers: Sequence[QueryResults], path: Path) -> NDArray[np.int64]:
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


def _of_rows(answers: QueryResults, column: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    return column[np.searchsorted(answers.rows, rows)]


def find(name: str, records: Sequence[StoredRecord]) -> list[StoredRecord]:
    """The records that a word means: the path of a file, or a method among ``records``.

    Raises:
        BenchError: If there is none.
    """
    path = Path(name)
    if path.suffix == ".json" or path.is_file():
        return [StoredRecord(read_record(path), path)]
    chosen = [stored for stored in records if stored.record.method == name]
    if not chosen:
        raise unknown("method among these records", name, {s.record.method for s in records})
    return chosen
