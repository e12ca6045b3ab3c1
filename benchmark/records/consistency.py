"""Contradictions within a record: bounds, verdicts, curves, details."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise

import numpy as np

from benchmark.config import registry
from benchmark.metrics.catalog import describe
from benchmark.records.details import Details, QueryResults
from benchmark.records.layout import verdicts
from benchmark.records.record import Record
from benchmark.records.stage_titles import has_own_first
from benchmark.tasks.base import RankingTask, measurable
from benchmark.tasks.verification import Verification

_NEAR = 1e-9
_OF_CURVES = 1e-4
"""Curves are kept to four decimals."""
_OF_ROUNDING = 1e-3
"""Share of queries that may find items in another order whose scores are equal but for rounding."""
Scores = Mapping[str, float | None]


def contradictions(record: Record, details: Details | None) -> Iterator[str]:
    """Gaps and contradictions of a record that is done, and its details with results by query."""
    try:
        datetime.fromisoformat(record.run.finished or "none")
    except ValueError:
        yield f"run.finished: expected a date and a time, got {record.run.finished!s:.60}"
    yield from _missing(record)
    yield from _of_scores(record)
    yield from _of_bounds(record)
    yield from _of_backfilling(record)
    if details is None:
        yield "details: missing, though a finished record has them"
        return
    for (case, metric), results in details.results.items():
        score = record.scores.get(case, {}).get(metric)
        if score is None:
            yield f"details: {case} {metric}: of a score that the record has not"
        elif (reason := _apart(score, results)) is not None:
            yield f"{case} {metric}: {reason}"


def _missing(record: Record) -> Iterator[str]:
    """Cases and metrics that the protocol asks for and the record lacks."""
    names, models = list(record.models), record.models
    if record.parameters is None:
        yield "parameters: missing"
        return
    far = record.parameters.track.far
    tasks = [registry.task(name) for name in record.parameters.protocol.tasks]
    texts = any(task.text_queries for task in tasks)
    for i, newer in enumerate(names):
        if f"{newer}/{newer}" not in record.scores:
            yield f"scores: case {newer}/{newer} is missing"
        for older in names[:i]:
            comparable = models[newer].dim == models[older].dim and not texts
            if comparable and f"{newer}/{older}" not in record.scores:
                yield f"scores: case {newer}/{older} is missing"
    cases = [] if texts else [case for case in record.scores if not _swapped(case, names)]
    for name, task in zip(record.parameters.protocol.tasks, tasks, strict=True):
        for case in cases:
            if _merged(record, case) and not isinstance(task, RankingTask):
                continue
            trials = record.counts.get(case, {}).get("n_impostor", math.inf)
            if task.scores == Verification.scores and not measurable(far, trials):
                continue  # of fewer pairs than tell an error rate
            if task.scores and not any(m.startswith(task.scores) for m in record.scores[case]):
                yield f"scores: {case} has none of task {name}: {', '.join(task.scores)}"
    if "backfilling" in record.parameters.protocol.tasks and record.backfilling is None:
        yield "backfilling: missing, though the protocol asks for it"


def _merged(record: Record, case: str) -> bool:
    """Tell a case that ranks two lists: of both indexes, or rescored by the new model."""
    query, _, gallery = case.partition("/")
    return "+" in case or (bool(record.cost.new_embeddings) and query != gallery)


def _swapped(case: str, names: Sequence[str]) -> bool:
    """Tell a case whose queries are of an older model than its gallery."""
    query, _, gallery = case.partition(" ")[0].replace("'", "").partition("/")
    return query in names and gallery in names and names.index(query) < names.index(gallery)


def _of_scores(record: Record) -> Iterator[str]:
    for case, scores in record.scores.items():
        for metric, value in scores.items():
            try:
                about = describe(metric)
            except ValueError as error:
                yield f"{case}: {error}"
                continue
            low, high = about.low, about.high
            if value is None:
                continue
            span = record.intervals.get(case, {}).get(metric)
            for said in (value, *(span or ())):
                if (low is not None and said < low) or (high is not None and said > high):
                    yield f"{case} {metric}: expected {low} to {high}, got {said}"
            if span is not None and not span[0] - _NEAR <= value <= span[1] + _NEAR:
                yield f"{case} {metric}: {value:.6g} lies outside of its interval {list(span)}"
        for (lower, first), (upper, second) in _rising(scores):
            if first > second + _NEAR:
                yield f"{case}: {lower} {first:.6g} is above {upper} {second:.6g}"


def _rising(scores: Scores) -> Iterator[tuple[tuple[str, float], tuple[str, float]]]:
    """Neighbours, by cut-off, among scores that must not fall as it rises."""
    families: dict[str, list[tuple[float, str, float]]] = {}
    for metric, value in scores.items():
        with suppress(ValueError):  # no known metric, which is told elsewhere
            about = describe(metric)
            if about.rises and about.cut_off is not None and value is not None:
                families.setdefault(about.family, []).append((about.cut_off, metric, value))
    for found in families.values():
        yield from pairwise((metric, value) for _, metric, value in sorted(found))


def _of_bounds(record: Record) -> Iterator[str]:
    names, bounds = list(record.models), record.bounds
    if not {"lower", "upper", record.upper} <= bounds.keys():
        yield f"bounds: expected lower, upper and {record.upper:.60}, got {', '.join(bounds):.200}"
        return
    rules = record.parameters.protocol if record.parameters else None
    if rules is not None and record.upper != rules.upper_bound:
        yield f"upper: {record.upper:.60}, of a protocol whose upper bound is of {rules.upper} data"
    lower = record.scores.get(f"{names[0]}/{names[0]}", {})
    if not has_own_first(record) and dict(lower) != dict(bounds["lower"]):
        yield f"bounds: lower is not {names[0]}/{names[0]}, whose model it is"
    own = record.scores.get(f"{names[-1]}/{names[-1]}", {})
    if record.method == "independent" and dict(own) != dict(bounds["upper"]):
        yield f"bounds: upper is not {names[-1]}/{names[-1]} of independent, whose model it is"
    try:
        expected = verdicts(record.scores, bounds, bounds[record.upper], names)
    except (ValueError, KeyError) as error:
        yield f"bounds: {error}"
        return
    for field, values in expected.items():
        found = getattr(record, field)
        for metric in sorted(values.keys() | found.keys()):
            if values.get(metric, "none") != found.get(metric, "none"):
                yield (
                    f"{field}: {metric}: expected {values.get(metric, 'none')} as the scores say, "
                    f"got {found.get(metric, 'none')}"
                )


def _of_backfilling(record: Record) -> Iterator[str]:
    names = list(record.models)
    cost = record.cost
    # In one index of longer vectors a query's scores of old items are smaller by a factor of its
    # own: their order is that of the cross-test but for rounding, a threshold for all is not.
    longer = cost is not None and (cost.bytes_new or 0) > (cost.bytes_after or 0)
    ends = [record.scores.get(f"{names[-1]}/{name}", {}) for name in (names[-2:][0], names[-1])]
    for order, curves in record.orders.items():
        for metric, curve in curves.curves.items():
            told = curves.area.get(metric), curves.worst.get(metric)
            found = sum(curve) / len(curve), min(curve)
            for name, value, other in zip(("area", "worst"), told, found, strict=True):
                if value is not None and abs(value - other) > _OF_CURVES:
                    yield (
                        f"backfilling: {order} {metric} {name}: expected {other:.4f} as the curve "
                        f"says, got {value:.6g}"
                    )
            for end, scores, words in zip((0, -1), ends, ("begins", "ends"), strict=True):
                score = scores.get(metric)
                if end == 0 and longer and metric.startswith("tpir"):
                    continue
                most = _OF_ROUNDING if end == 0 and longer else _OF_CURVES
                if score is not None and abs(curve[end] - score) > most:
                    yield (
                        f"backfilling: {order} {metric} {words} at {curve[end]:.6g}, "
                        f"the score there is {score:.6g}"
                    )


def _apart(score: float, results: QueryResults) -> str | None:
    """Reason that a score is not the mean of its queries' values; ``None`` if it is.

    Values in steps are rounded at random, and of many queries some are kept: six deviations are
    allowed then, beyond which chance explains nothing. Of rare hits none may be among those kept,
    so the deviation is at least what the score itself allows.
    """
    values, n = results.values, len(results.values)
    if n == 0:
        return None
    allowed = _NEAR + 3 * results.step / float(np.sqrt(n))
    if n < results.n_queries:
        rare = np.sqrt(np.clip(score * (1 - score), 0, None))
        allowed += 6 * float(max(values.std(), rare)) / float(np.sqrt(n)) + 1 / n
    mean = float(values.mean())
    if abs(mean - score) <= allowed:
        return None
    return f"expected {mean:.6g} as its queries say, got {score:.6g}"
