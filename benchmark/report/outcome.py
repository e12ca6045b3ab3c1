"""Warnings about what was measured: a new model that is no better, methods that help nobody."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from benchmark.config import registry
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.statistics import mean_score
from benchmark.records.record import Record
from benchmark.report import numbers, select
from benchmark.report.ranks import LEAST_MODELS

RAW = "raw-features"
"""The control of boards with frozen backbones."""
_QUESTION = ("cmc_at_1", "map")


def warnings(settings: Mapping[str, Sequence[Record]], metrics: Sequence[str]) -> Iterator[str]:
    """Lines on settings that stand in one table, by name, and on the metrics that are shown."""
    checks = {
        upper_is_lower: "the upper bound lies below the lower one, so no update can gain",
        unsure_upgrade: (
            "the upper bound is not surely above the lower one, so shares of the upgrade say little"
        ),
        raw_words: (
            "training does not pay: the new model alone does not beat the raw features of its "
            "backbone, so there are no ranks and no shares of the upgrade"
        ),
        old_is_best: (
            "none of these methods beats keeping the old model: no cross-test exceeds the lower "
            "bound"
        ),
    }
    for check, words in checks.items():
        for name, records in settings.items():
            keys = [key for key in metrics if check(records, key)]
            if keys:
                labels = ", ".join(numbers.metric(key).label for key in keys)
                yield f"Warning: {f'{name}: ' if name else ''}by {labels} {words}."


def upper_is_lower(records: Sequence[Record], metric: str) -> bool:
    """Compare the upper bound that the gain uses with old/old, mean over the seeds: is it lower?"""
    margins = upgrades(records, metric).values()
    return bool(margins) and fmean(margins) < 0


def unsure_upgrade(records: Sequence[Record], metric: str) -> Estimate | None:
    """The upgrade, where it is above zero, but not surely; None where it is, or nothing is known.

    Over three seeds or more by the interval of their mean. Of fewer by the intervals of the scores
    of a seed, put together as if of other queries each: the queries are the same, so that this one
    is too wide, rather than too narrow.
    """
    margins = upgrades(records, metric)
    if not margins or fmean(margins.values()) < 0:
        return None
    if len(margins) >= LEAST_MODELS:
        mean = mean_score([*margins.values()])
        return None if mean.is_above(0) else mean
    each = [_of_queries(records, seed, metric) for seed in margins]
    return next((one for one in each if one and not one.is_above(0)), None)


def _of_queries(records: Sequence[Record], seed: int, metric: str) -> Estimate | None:
    """The upgrade of one seed; None without intervals of the old and of the independent model."""
    mine = [r for r in records if r.seed == seed and r.upper == "upper"]
    alone = [r for r in mine if r.method == "independent"]
    old, new = select.lower_case(records), select.self_case(records)
    before, after = _interval(mine, old, metric), _interval(alone, new, metric)
    if before.ends is None or after.ends is None:
        return None
    margin = after.known - before.known
    down = math.hypot(after.known - after.ends[0], before.ends[1] - before.known)
    up = math.hypot(after.ends[1] - after.known, before.known - before.ends[0])
    return Estimate(margin, margin - down, margin + up)


def _interval(records: Sequence[Record], case: str, metric: str) -> Estimate:
    """The first score of a case that has an interval."""
    found = (
        Estimate.of(select.score(record, case, metric), span)
        for record in records
        if (span := record.intervals.get(case, {}).get(metric))
    )
    return next(found, Estimate(None))


def upgrades(records: Sequence[Record], metric: str) -> dict[int, float]:
    """Seed -> the upper bound less old/old; none where lower is better, or queries are texts."""
    found: dict[int, float] = {}
    if not _higher_is_better(metric) or select.text_queries(records):  # bounds are of images
        return found
    for record in records:
        upper, lower = (record.bounds.get(name, {}).get(metric) for name in (record.upper, "lower"))
        if upper is not None and lower is not None:
            found[record.seed] = upper - lower
    return found


def raw_words(records: Sequence[Record], metric: str) -> str:
    """That raw features of a frozen backbone are no worse than the model trained behind them.

    With new/new of both, means over the seeds that both have; empty where training beats them, or
    one of them is not there.
    """
    own = select.self_case(records)
    found: dict[str, dict[int, float]] = {RAW: {}, "independent": {}}
    for record in records:
        score = select.score(record, own, metric)
        if record.method in found and score is not None:
            found[record.method][record.seed] = score
    seeds = found[RAW].keys() & found["independent"].keys()
    if not seeds:
        return ""
    raw, trained = (fmean(scores[seed] for seed in seeds) for scores in found.values())
    if raw < trained if _higher_is_better(metric) else raw > trained:
        return ""
    new, kept = (numbers.number(mean, numbers.metric(metric).unit) for mean in (trained, raw))
    return f"the new model alone has {new}, the raw features of its backbone {kept}"


def unpaid(records: Sequence[Record]) -> str:
    """That training does not pay on a board's question; empty where it beats raw features.

    By CMC@1 and mAP, or the first metric where a board has neither: by one of them is enough.
    """
    known = select.metrics(records)
    own = [m for m in _QUESTION if m in known] or known[:1]
    told = {m: raw_words(records, m) for m in own}
    return "; ".join(f"by {numbers.metric(m).label} {words}" for m, words in told.items() if words)


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
