"""Effects of methods on a deployment: how much of the upgrade each keeps, and how they rank.

The share of the upgrade is how far the score of a protocol goes from today's, old/old, to that of
the new model alone: 0 is the old model, 1 the whole upgrade. It is taken within each seed, since
another old model leaves more or less to gain.
"""

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from benchmark.metrics.compatibility import LEAST_UPGRADE, share_of_upgrade
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.statistics import mean_score
from benchmark.records.record import OrderCurves, Record
from benchmark.report import numbers, select
from benchmark.report.outcome import raw_words
from benchmark.report.ranks import LEAST_MODELS, ROUNDING, RankPlace, Values, places
from benchmark.report.scores import by_method
from benchmark.report.tables import sequence
from benchmark.report.tables.backfilling import order

Kind = Literal["area", "chain", "cross"]
PARTS = {
    "share": "upgrade kept", "value": "score", "worst": "worst point",
    "above": "above old/old from", "average": "average compatibility",
}  # fmt: skip
"""Parts of an effect -> names of their columns in downloads."""


@dataclass(frozen=True)
class RankCriterion:
    """The score that a board ranks by, of one metric."""

    # ``area`` under the curve of a backfilled gallery; ``chain``, the last model on the first
    # gallery; ``cross``, the day of the update
    kind: Kind
    metric: str
    case: str  # at its beginning, ``new/old``

    @property
    def higher(self) -> bool:
        """False where a smaller score is better."""
        return numbers.metric(self.metric).higher_is_better is not False

    @property
    def words(self) -> str:
        """The score in words."""
        label = numbers.metric(self.metric).label
        if self.kind == "area":
            return f"{label}, area while backfilling"
        return f"{label}, {self.case}"

    @property
    def own_parts(self) -> tuple[str, ...]:
        """Parts of an effect that have columns of their own, beside the cases."""
        parts = {"area": ("value", "worst", "above"), "chain": ("average",)}
        return parts.get(self.kind, ())

    def value(self, record: Record) -> float | None:
        """The score of a finished record; None where it has none."""
        if record.status != "done":
            return None
        if self.kind == "area":
            curves = order(record)
            return None if curves is None else _finite(curves.area.get(self.metric))
        return _finite(record.scores.get(self.case, {}).get(self.metric))

    def share(self, record: Record) -> float | None:
        """The share of the upgrade that is kept; None where there is none, or it is unknown."""
        value, ends = self.value(record), ends_of(record, self.metric)
        if value is None or ends is None or select.text_queries([record]):
            return None
        lower, upper = ends
        if not self.higher:
            value, lower, upper = -value, -lower, -upper
        return share_of_upgrade(value, lower, upper, LEAST_UPGRADE)


def criterion(records: Sequence[Record], metric: str) -> RankCriterion:
    """The criterion of a board of some records: as the protocol asks."""
    case = select.cross_case(records)
    if any(metric in curves.area for record in records for curves in record.orders.values()):
        return RankCriterion("area", metric, case)
    return RankCriterion("chain" if len(records[0].models) > 2 else "cross", metric, case)


def ends_of(record: Record, metric: str) -> tuple[float, float] | None:
    """Today's score and that of the new model alone, of the same seed."""
    bounds = (record.bounds.get(name, {}).get(metric) for name in ("lower", record.upper))
    lower, upper = map(_finite, bounds)
    return None if lower is None or upper is None else (lower, upper)


def reference(records: Sequence[Record], of: RankCriterion) -> dict[int, float]:
    """Seed -> the score without any method.

    Keeping the old model; where the gallery is backfilled, the new model alone and items in random
    order, and where that was not measured the wait until all is backfilled.
    """
    found: dict[int, float] = {}
    for record in sorted(records, key=lambda r: r.method != "independent"):
        if of.kind != "area":
            value = record.bounds.get("lower", {}).get(of.metric)
        elif record.method == "independent":
            value = of.value(record)
        else:
            about = record.backfilling and record.backfilling.offline.get(of.metric)
            value = about.area if about else None
        if (known := _finite(value)) is not None:
            found.setdefault(record.seed, known)
    return found


_UNKNOWN = Estimate(None)


@dataclass(frozen=True)
class Effect:
    """The effect of one method on one board, by one metric; intervals only from three models on."""

    models: int  # pairs of old and new models that it was measured on
    share: Estimate  # of the upgrade kept
    value: Estimate  # by which the board ranks
    worst: Estimate  # the lowest point while backfilling; otherwise the day of the update
    above: Estimate  # share of the gallery from which on a curve stays above old/old
    average: Estimate  # average compatibility over all pairs of a chain
    hurts: bool  # new/new is below that of the new model alone, beyond the interval
    first_day: Estimate = _UNKNOWN  # share kept on the day of the update, whatever the board's kind
    reached: int = 0  # models whose curve stays above old/old from some share of the gallery on

    @property
    def enough(self) -> bool:
        """Say that there are enough models for an interval and a verdict."""
        return self.models >= LEAST_MODELS


def effects(records: Sequence[Record], of: RankCriterion) -> dict[str, Effect]:
    """Method -> its effect, of records of one board; none of methods that could not be applied."""
    own = select.self_case(records)
    found = {method: _effect(mine, of, own) for method, mine in by_method(records).items()}
    if raw_words(records, of.metric):  # what is no upgrade has no share
        found = {method: replace(effect, share=Estimate(None)) for method, effect in found.items()}
    return found


def _effect(records: Sequence[Record], of: RankCriterion, own: str) -> Effect:
    metric = of.metric
    curves = [order(record) for record in records] if of.kind == "area" else []
    known = [each for each in curves if each is not None]
    first = replace(of, kind="cross")
    worst = [_worst(each, metric) for each in known] or [of.value(r) for r in records]
    above = [_above(each, r, of) for each, r in zip(curves, records, strict=False)]
    return Effect(
        models=len({record.seed for record in records}),
        share=_mean([of.share(record) for record in records]),
        value=_mean([of.value(record) for record in records]),
        worst=_mean(worst),
        above=_mean(above),
        average=_mean([average_compatibility(r, metric) for r in records]),
        hurts=hurts(records, own, metric),
        first_day=_mean([first.share(record) for record in records]),
        reached=sum(share is not None for share in above),
    )


def _worst(curves: OrderCurves, metric: str) -> float | None:
    """The lowest point; older records do not say it, their curves do."""
    said = _finite(curves.worst.get(metric))
    return said if said is not None else min(curves.curves.get(metric, ()), default=None)


def _above(curves: OrderCurves | None, record: Record, of: RankCriterion) -> float | None:
    """The share of the gallery from which on a curve stays above old/old; None if it never does."""
    metric, ends = of.metric, ends_of(record, of.metric)
    if curves is None or ends is None:
        return None
    old = list(record.models)[-2]
    shared = record.scores.get(f"{old}/{old}", {}).get(metric) in (None, ends[0])
    if shared and metric in curves.share_above:  # of an old model of its own it says nothing
        return curves.share_above[metric]
    points = curves.curves.get(metric, ())
    sign = 1.0 if of.higher else -1.0
    under = [i for i, point in enumerate(points) if sign * point <= sign * ends[0]]
    first = under[-1] + 1 if under else 0
    return first / (len(points) - 1) if first < len(points) else None


def _mean(values: Sequence[float | None]) -> Estimate:
    """The mean over models, with an interval from three on."""
    mean = mean_score(values)
    return mean if len(values) >= LEAST_MODELS else Estimate(mean.value)


def hurts(records: Sequence[Record], own: str, metric: str) -> bool:
    """Compare new/new with that of the new model alone: is it worse, beyond the interval?

    Over three models or more that of the difference within a seed; of fewer each record's own.
    """
    sign = -1.0 if numbers.metric(metric).higher_is_better is False else 1.0
    losses, beyond = [], []
    for record in records:
        value = _finite(record.scores.get(own, {}).get(metric))
        upper = _finite(record.bounds.get("upper", {}).get(metric))
        if value is None or upper is None:
            continue
        losses.append(sign * (value - upper))
        span = record.intervals.get(own, {}).get(metric)
        end = value if not span else (span[1] if sign > 0 else span[0])
        beyond.append(sign * (end - upper) < 0)
    if len(losses) >= LEAST_MODELS:
        mean = mean_score(losses)
        return mean.high is not None and mean.high < 0
    return bool(beyond) and all(beyond)


def average_compatibility(record: Record, metric: str) -> float | None:
    """Share of a chain's pairs whose newer model beats the gallery's own; None of two models."""
    return sequence.average(record, metric, sequence.SHARE) if len(record.models) > 2 else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def models_words(n: int) -> str:
    """``1 model``, ``3 models``."""
    return f"{n} model" if n == 1 else f"{n} models"


def percent(score: Estimate) -> str:
    """A share with its interval in whole percent.

    Example:
        >>> percent(Estimate(0.4321, 0.37, 0.49)), percent(Estimate(0.4)), percent(Estimate(None))
        ('43 % ± 6', '40 %', '')
    """
    if score.value is None:
        return ""
    words = f"{100 * score.value:z.0f} %"
    if score.low is None or score.high is None:
        return words
    return f"{words} ± {100 * max(score.value - score.low, score.high - score.value):.0f}"


def keeps(effect: Effect) -> str:
    """The effect in words.

    Example:
        >>> none = Estimate(None)
        >>> keeps(Effect(1, Estimate(-0.12), none, none, none, none, False))
        'is 12 % of the upgrade below the old model (1 model)'
        >>> keeps(Effect(3, Estimate(-0.004, -0.03, 0.022), *[none] * 4, False))
        'keeps 0 % ± 3 of the upgrade'
    """
    score = effect.share
    if score.value is None:
        return "keeps a share that cannot be told"
    few = "" if effect.enough else f" ({models_words(effect.models)})"
    if score.value >= 0 or percent(score).startswith("0 %"):
        return f"keeps {percent(score)} of the upgrade{few}"
    return f"is {percent(score).removeprefix('-')} of the upgrade below the old model{few}"


@dataclass(frozen=True)
class Standing:
    """The methods of a board by one metric."""

    criterion: RankCriterion
    values: Values  # scores, of all methods and controls that have one
    shares: Values  # shares of the upgrade kept
    reference: Mapping[int, float]  # seed -> score without any method
    effects: Mapping[str, Effect]
    places: Mapping[str, RankPlace]  # of the methods that may have a rank
    in_order: tuple[str, ...]  # with a score: by rank, those without one, those of few models

    @property
    def without(self) -> float | None:
        """The score without any method, mean over the seeds that it is known of."""
        return mean_score([*self.reference.values()]).value

    def place(self, method: str) -> RankPlace:
        """A method's place; without a score and a rank where it has none."""
        return self.places.get(method) or RankPlace(method, None, None)

    def below(self, method: str) -> bool:
        """Compare a method with doing without any, over the seeds of both: is it no better?"""
        values = self.values.get(method, {})
        margins = [v - self.reference[seed] for seed, v in values.items() if seed in self.reference]
        sign = 1.0 if self.criterion.higher else -1.0
        return bool(margins) and sign * sum(margins) <= ROUNDING * len(margins)

    def margin(self, method: str, shares: Mapping[int, float]) -> Estimate | None:
        """Difference of a method's shares to others; None of fewer seeds than a rank takes."""
        mine = self.shares.get(method, {})
        margins = [share - shares[seed] for seed, share in mine.items() if seed in shares]
        return mean_score(margins) if len(margins) >= LEAST_MODELS else None

    def above(self, method: str, shares: Mapping[int, float]) -> bool | None:
        """Compare what a method keeps with other shares; None as of :meth:`margin`."""
        margin = self.margin(method, shares)
        return None if margin is None else margin.is_above(0)


def standing(records: Sequence[Record], metric: str, ranked: Container[str]) -> Standing:
    """The standing of methods, of records of one board; see :data:`benchmark.report.ranks.RULE`.

    Only those of ``ranked`` may have a rank.
    """
    of = criterion(records, metric)
    values = _by_seed(records, of.value)
    methods = dict.fromkeys(record.method for record in records)
    without, found = reference(records, of), effects(records, of)
    if raw_words(records, metric):
        ranked = ()
    ranks = places(
        {m: values.get(m, {}) for m in methods if m in ranked}, higher=of.higher, reference=without
    )
    sign = -1.0 if of.higher else 1.0

    def order(method: str) -> tuple[Any, ...]:
        rank = ranks[method].rank if method in ranks else None
        few = not found[method].enough
        score = sign * (found[method].value.value or 0.0)
        return few, rank is None and not few, rank or 0, score, method

    scored = [m for m, e in found.items() if e.value.value is not None and m != "independent"]
    shares = _by_seed(records, of.share)
    return Standing(of, values, shares, without, found, ranks, tuple(sorted(scored, key=order)))


def _by_seed(records: Sequence[Record], number: Callable[[Record], float | None]) -> Values:
    found: dict[str, dict[int, float]] = {}
    for record in records:
        if (value := number(record)) is not None:
            found.setdefault(record.method, {})[record.seed] = value
    return found
