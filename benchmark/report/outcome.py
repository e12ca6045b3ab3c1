"""Warnings about what was measured: a new model that is no better, methods that help nobody."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from benchmark.config import registry
from benchmark.records.record import Record
from benchmark.report import numbers, select


def warnings(records: Sequence[Record], metrics: Sequence[str]) -> Iterator[str]:
    """Lines on records of one protocol and track, by the metrics that are shown."""
    yield from of_settings({"": records}, metrics)


def of_settings(settings: Mapping[str, Sequence[Record]], metrics: Sequence[str]) -> Iterator[str]:
    """Lines on some settings, by name, that stand in one table."""
    checks = {
        upper_is_lower: "the upper bound lies below the lower one, so no update can gain",
        old_is_best: "no method beats keeping the old model: no cross-test exceeds the lower bound",
    }
    for check, words in checks.items():
        for name, records in settings.items():
            keys = [key for key in metrics if check(records, key)]
            if keys:
                labels = ", ".join(numbers.metric(key).label for key in keys)
                yield f"Warning: {f'{name}: ' if name else ''}by {labels} {words}."


def upper_is_lower(records: Sequence[Record], metric: str) -> bool:
    """Compare the upper bound that the gain uses with old/old, mean over the seeds: is it lower?"""
    if not _higher_is_better(metric) or select.text_queries(records):  # it is of images
        return False
    margins: dict[int, float] = {}
    for record in records:
        upper, lower = (record.bounds.get(name, {}).get(metric) for name in (record.upper, "lower"))
        if upper is not None and lower is not None:
            margins[record.seed] = upper - lower
    return bool(margins) and fmean(margins.values()) < 0


def old_is_best(records: Sequence[Record], metric: str) -> bool:
    """Compare every method's cross-test with old/old, mean over the seeds: does none exceed it?

    Controls and the independent model are no methods.
    """
    if not _higher_is_better(metric):
        return False
    cross, margins = select.cross_case(records), dict[str, list[float]]()
    for record in records:
        score = select.score(record, cross, metric)
        lower = record.bounds.get("lower", {}).get(metric)
        if score is not None and lower is not None and not registry.is_control(record.method):
            margins.setdefault(record.method, []).append(score - lower)
    return bool(margins) and all(fmean(margin) <= 0 for margin in margins.values())


def _higher_is_better(metric: str) -> bool:
    return numbers.metric(metric).higher_is_better is True
