"""Warnings about what was measured: a new model that is no better, methods that help nobody."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from benchmark.config import registry
from benchmark.records.record import Record
from benchmark.report import numbers, select

RAW = "raw-features"
"""The control of boards with frozen backbones."""
_QUESTION = ("cmc_at_1", "map")


def warnings(settings: Mapping[str, Sequence[Record]], metrics: Sequence[str]) -> Iterator[str]:
    """Lines on settings that stand in one table, by name, and on the metrics that are shown."""
    checks = {
        upper_is_lower: "the upper bound lies below the lower one, so no update can gain",
        raw_words: (
            "training does not pay: the new model alone does not beat the raw features of its "
            "backbone, so there are no ranks and no shares of the upgrade"
        ),
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
