"""One sentence on what records of a run found: shares of the upgrade, and on which classes."""

from collections.abc import Iterator, Sequence

from benchmark.config import registry
from benchmark.metrics.estimate import Estimate
from benchmark.records.record import TOO_SHORT, Record
from benchmark.report import numbers, select
from benchmark.report.effects import Effect, criterion, effects, keeps, percent
from benchmark.report.notes import diverged
from benchmark.report.outcome import raw_words, unsure_upgrade, upper_is_lower
from benchmark.report.scenarios import CLASSES, scenario
from benchmark.report.scores import group

_MOST = 4
"""Methods of a sentence."""


def found(records: Sequence[Record]) -> Iterator[str]:
    """A sentence for each protocol and setting, by the metric that stands first there.

    A method "keeps 40 % ± 5 of the upgrade", where 0 % is the old model and 100 % the new one with
    everything embedded again; intervals only from three seeds on. Nothing of controls, and of
    boards whose new model alone is hardly better.
    """
    groups = group(records)
    for members in groups:
        name = f"{members[0].protocol}: by" if len(groups) > 1 else "By"
        if told := [r for r in members if r.method == "independent" and r.diverged]:
            short = any(why.endswith(TOO_SHORT) for r in told for why in r.diverged.values())
            yield (
                f"Nothing was found: trainings diverged or ended too early ({diverged(told)}); "
                f"{'raise recipe.epochs' if short else 'lower recipe.lr'}."
            )
            continue
        metric, *_ = select.metrics(members)
        about = scenario(members[0])
        where = f" on {CLASSES[about.classes]}" if about.classes else ""
        by = f"{name} {numbers.metric(metric).label}{where}"
        if words := raw_words(members, metric):
            yield f"{by}, training does not pay: {words}."
            continue
        if upper_is_lower(members, metric):
            yield f"{by}, no share can be told: the new model alone is below the old one."
            continue
        if unsure := unsure_upgrade(members, metric):
            yield (
                f"{by}, no share can be told: the new model alone is {_points(unsure)} above the "
                "old one, which may be chance. More queries or seeds tell."
            )
            continue
        of = criterion(members, metric)
        known = {
            method: effect
            for method, effect in effects(members, of).items()
            if effect.share.value is not None and method != "independent"
            if not registry.is_control(method)
            if not any(r.diverged for r in members if r.method == method)
        }
        if not known:
            continue
        best = sorted(known, key=lambda m: (-(known[m].share.value or 0.0), m))
        words = "; ".join(f"{method} {_told(known[method])}" for method in best[:_MOST])
        more = f"; {len(best) - _MOST} others keep less" if len(best) > _MOST else ""
        few = all(not known[m].enough for m in best)
        beside = " A share has no interval below three seeds (--seeds 0-2)." if few else ""
        yield f"{by}, {words}{more}.{beside}"


def _points(margin: Estimate) -> str:
    """A difference of scores with its interval."""
    wide = numbers.spread(margin.value, margin.low, margin.high)
    return f"{numbers.number(margin.value)} {wide}".rstrip()


def _told(effect: Effect) -> str:
    """The effect in words; of one whose interval holds 0, that it cannot be told."""
    ends = effect.share.ends
    if ends is not None and ends[0] <= 0 <= ends[1]:
        return f"cannot be told from the old model ({percent(effect.share)} of the upgrade)"
    return keeps(effect)
