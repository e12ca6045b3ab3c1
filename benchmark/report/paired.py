"""Two methods on the same queries: differences with intervals and p-values, from details files."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benchmark.config import registry
from benchmark.errors import BenchError, PassedOverWarning, unknown
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.intervals import Spread, drawn_spread, mean_difference, mean_spread
from benchmark.metrics.statistics import holm, t_test
from benchmark.records.details import Details, QueryResults
from benchmark.records.details_files import find_details
from benchmark.records.files import StoredRecord
from benchmark.records.record import Record
from benchmark.records.stage_titles import old_model
from benchmark.report import notes, numbers
from benchmark.report.comparable import mixed_settings, of_another_old_model
from benchmark.report.ranks import LEAST_MODELS

if TYPE_CHECKING:
    from numpy.typing import NDArray

By = Literal["identity", "query"]

_REMEDY = "; `bench results details` writes those by query"


@dataclass(frozen=True)
class Difference:
    """One case and metric of two methods."""

    protocol: str
    track: str
    case: str
    metric: str
    left: float  # the first method's mean over the shared queries and seeds
    right: float  # the second's
    # left minus right; without an interval, as without a p-value, for a single identity and where
    # too few impostors decide a threshold, or none are known
    difference: Estimate
    # two-sided, of the same construction as the interval
    p_value: float | None
    adjusted: float | None  # the same after Holm's correction for all results of the comparison
    n_queries: int  # shared queries
    n_identities: int  # identities that they belong to
    seeds: tuple[int, ...]  # seeds that both have; a query's value is its mean over them
    wins: int  # on how many seeds left is above right
    seeds_p: float | None  # by Student's t over the seeds; None below three
    tested: int | None = None  # the result, numbered, that Holm's correction counts once
    one_model: bool = False  # one and the same model searches by itself: nothing is compared


def compare(
    left: Sequence[StoredRecord],
    right: Sequence[StoredRecord],
    *,
    cases: Sequence[str] = (),
    metrics: Sequence[str] = (),
    by: By = "identity",
) -> list[Difference]:
    """Compare two methods wherever both were run.

    Args:
        left: Records of one method: any protocols, tracks and seeds.
        right: Records of the other.
        cases: By default the cross-test, the self-test of the last generation and, where both
            convert the gallery, the converted gallery searched by itself. ``["all"]`` are all.
        metrics: By default CMC@1 and mAP, where they are; otherwise all, as with ``["all"]``.
        by: What the intervals are over: identities, or queries as if they were independent; scores
            at a threshold are always over identities.

    Returns:
        A line for each protocol, track, case and metric.

    Raises:
        BenchError: If there is nothing to compare, or the queries are not the same.
    """
    groups = [_grouped(_applicable(side)) for side in (left, right)]
    differences = []
    places: dict[tuple[bytes, ...], int] = {}  # of results, which protocols may share
    for setting, by_seed in groups[0].items():
        seeds = sorted(by_seed.keys() & groups[1].get(setting, {}).keys())
        if seeds:
            first = by_seed[seeds[0]]
            details = [[_details(side[setting][seed]) for seed in seeds] for side in groups]
            for column in _columns([*first.record.models], [*chain(*details)], cases, metrics):
                answers = [[each.results[column] for each in side] for side in details]
                found = _difference(first, seeds, column, answers, by)
                pairs = [[side[setting][seed].record for side in groups] for seed in seeds]
                if _is_of_one_model(column[0], answers, pairs):
                    found = replace(
                        found, difference=Estimate(0.0), p_value=None, seeds_p=None, one_model=True
                    )
                elif found.p_value is not None:
                    values = (a.values.tobytes() for a in chain(*answers))
                    number = places.setdefault((repr(column).encode(), *values), len(places))
                    found = replace(found, tested=number)
                differences.append(found)
    if not differences:
        methods = [dict.fromkeys(s.record.method for s in side) for side in (left, right)]
        names = " and ".join(", ".join(side) or "no record" for side in methods)
        raise BenchError(
            f"compare: {names}: no protocol, track, seed and data that both were run on"
        )
    known = {d.tested: d.p_value for d in differences if d.p_value is not None}
    adjusted = dict(zip(known, holm([*known.values()]).tolist(), strict=True)) if known else {}
    return [replace(d, adjusted=adjusted.get(d.tested)) for d in differences]


def _is_of_one_model(
    case: str, answers: Sequence[Sequence[QueryResults]], pairs: Sequence[Sequence[Record]]
) -> bool:
    """True where both search by one and the same model in its own embeddings, unconverted."""
    query, gallery = case.split("/")
    models = pairs[0][0].models
    if query != gallery or query not in models:
        return False
    weights = old_model if query == next(iter(models)) else lambda record: record.checkpoints
    found = zip(*answers, strict=True)
    return all(np.array_equal(a.values, b.values) for a, b in found) and all(
        weights(left) == weights(right) for left, right in pairs
    )


def doubts(left: Sequence[StoredRecord], right: Sequence[StoredRecord]) -> list[str]:
    """Reasons why differences of :func:`compare` may not be those of the methods, in words."""
    sides = [[s.record for s in side if _is_done(s)] for side in (left, right)]
    one, other = ({(r.protocol, r.track, r.seed) for r in side} for side in sides)
    compared = [r for r in chain(*sides) if (r.protocol, r.track, r.seed) in one & other]
    found = [*notes.divergence(compared), *mixed_settings(compared)]
    if elsewhere := of_another_old_model(compared):
        seeds = notes.seed_words(sorted({record.seed for record in elsewhere}))
        found.append(
            f"Warning: not of one old model, or not of the same data ({seeds}): a difference holds "
            "that, too."
        )
    return found


def _is_done(stored: StoredRecord) -> bool:
    return stored.record.status == "done"


def _applicable(side: Sequence[StoredRecord]) -> list[StoredRecord]:
    """Records that have scores; where a method is not applicable, that is told by a warning."""
    for r in (stored.record for stored in side if not _is_done(stored)):
        words = f"passed over {r.method} on {r.protocol}: not applicable: {r.reason}"
        warnings.warn(PassedOverWarning(words), stacklevel=3)
    return [stored for stored in side if _is_done(stored)]


def _grouped(side: Sequence[StoredRecord]) -> dict[tuple[Any, ...], dict[int, StoredRecord]]:
    """Seed -> record, for each setting whose scores may be compared."""
    groups: dict[tuple[Any, ...], dict[int, StoredRecord]] = {}
    methods = {*registry.method_files(), *(s.record.method.partition(":")[0] for s in side)}
    for stored in sorted(side, key=lambda s: str(s.path)):
        r = stored.record
        # Parameters of methods may differ: they are what is compared.
        changed = {k: v for k, v in r.changed.items() if re.split("[.:]", k)[0] not in methods}
        setting = (
            r.protocol, r.protocol_version, r.track, r.track_version,
            repr(sorted(changed.items())), r.dataset.fingerprint,
        )  # fmt: skip
        other = groups.setdefault(setting, {}).setdefault(r.seed, stored)
        if other is not stored:
            raise BenchError(
                f"compare: {other.path} and {stored.path}: two records of one seed; name one, or "
                "the folder of one setting's records"
            )
    return groups


def _details(stored: StoredRecord) -> Details:
    details = find_details(stored.record, stored.path)
    if details is None:
        raise BenchError(
            f"{stored.path}: has no results by query (schema {stored.record.schema_version}); "
            "run it again"
        )
    return details


def _columns(
    models: Sequence[str], details: Sequence[Details], cases: Sequence[str], metrics: Sequence[str]
) -> list[tuple[str, str]]:
    """Cases and metrics that all details have, in the order of the chosen ones."""
    both = [key for key in details[0].results if all(key in each.results for each in details)]
    known = [list(dict.fromkeys(each)) for each in zip(*both, strict=True)] or [[], []]
    cases, metrics = (
        numbers.chosen(f"{kind} with results by query in both", names, there, _REMEDY)
        if names else []
        for kind, names, there in zip(("case", "metric"), (cases, metrics), known, strict=True)
    )  # fmt: skip
    old, new, converted = models[0], models[-1], models[0] + "'" * (len(models) - 1)
    usual = [f"{q}/{g}" for q, g in ((new, old), (new, new), (converted, converted))]
    cases = cases or [case for case in usual if case in known[0]] or known[0]
    metrics = metrics or [m for m in ("cmc_at_1", "map") if m in known[1]] or known[1]
    return [(case, m) for case in cases for m in metrics if (case, m) in both]


def _difference(
    first: StoredRecord,
    seeds: Sequence[int],
    column: tuple[str, str],
    answers: Sequence[Sequence[QueryResults]],
    by: By,
) -> Difference:
    """Compare the means over the seeds, query by query; ``answers`` are each side's, by seed."""
    one = answers[0][0]
    rows: NDArray[np.int64] = reduce(np.intersect1d, [a.rows for a in chain(*answers)])
    identity = _of_rows(one, one.identity, rows)
    for other in chain(*answers):
        same = np.array_equal(identity, _of_rows(other, other.identity, rows))
        if other.n_queries != one.n_queries or not same:
            raise BenchError(f"compare: {first.path}: the other record has other queries")
    values = [np.stack([_of_rows(a, a.values, rows) for a in side]) for side in answers]
    left, right = (v.mean(axis=0) for v in values)
    n_identities = len(np.unique(identity))
    if numbers.metric(column[1]).threshold:
        spread = _drawn([_mean_draws(side) for side in answers], left - right, identity)
        span = None if spread is None else spread.interval(share=False)
        p_value = None if spread is None or span is None else spread.p_value()
    else:
        found = mean_difference(left - right, identity if by == "identity" else None)
        span = found.interval()
        p_value = None if span is None else found.p_value()
    by_seed = values[0].mean(axis=1) - values[1].mean(axis=1)
    return Difference(
        first.record.protocol, first.record.track, *column, float(left.mean()), float(right.mean()),
        Estimate.of(float((left - right).mean()), span), p_value, None, len(rows), n_identities,
        tuple(seeds), int((by_seed > 0).sum()),
        t_test(by_seed) if len(seeds) >= LEAST_MODELS else None,
    )  # fmt: skip


def _mean_draws(side: Sequence[QueryResults]) -> NDArray[np.float64] | None:
    """Scores in draws of identities, mean over the seeds; None where one has none."""
    draws = [each.draws for each in side if each.draws is not None]
    same = len({len(each) for each in draws}) == 1 and len(draws) == len(side)
    return np.mean(draws, axis=0) if same else None


def _drawn(
    draws: Sequence[NDArray[np.float64] | None],
    differences: NDArray[np.float64],
    identity: NDArray[np.int64],
) -> Spread | None:
    """The spread of a difference of scores at thresholds, draw by draw; None without draws."""
    left, right = draws
    if left is None or right is None or len(left) != len(right):
        return None
    kept = mean_spread(differences, identity)
    return drawn_spread(kept.value, left - right, kept.n_groups, kept)


def _of_rows(answers: QueryResults, column: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    return column[np.searchsorted(answers.rows, rows)]


def is_place(name: str) -> bool:
    """True of a record's file, or of a folder whose path has a slash, or that no method is."""
    path = Path(name)
    named = "/" in name or name.partition(":")[0] not in registry.method_files()
    return path.suffix == ".json" or (named and path.is_dir())


def find(name: str, records: Sequence[StoredRecord]) -> list[StoredRecord]:
    """The records of a method among ``records``; BenchError if there is none."""
    name = name.strip()
    chosen = [stored for stored in records if stored.record.method == name]
    if not chosen:
        raise unknown("method among these records", name, {s.record.method for s in records})
    return chosen
