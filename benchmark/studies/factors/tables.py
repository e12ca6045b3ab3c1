"""Tables and sentences of a study of factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmark.config.registry import is_control
from benchmark.metrics.estimate import Estimate
from benchmark.report import numbers
from benchmark.report.text_table import TextTable, simple_table
from benchmark.studies.factors.model import FactorEffect, Factors, FactorStudy


def tables(study: FactorStudy, found: Sequence[Factors]) -> list[TextTable]:
    """One for each metric and factor."""
    return [_table(study, each, name) for each in found for name in study.factors]


def _table(study: FactorStudy, found: Factors, name: str) -> TextTable:
    factor, label = study.factors[name], numbers.metric(found.metric).label
    effects = [e for e in found.effects if e.factor == name]
    heads = [*factor.levels.values(), "best - worst", "matters"]
    lines = [
        [e.method, *(_percent(e.shares[level]) for level in heads[:-2]), _percent(e.widest),
         "yes" if e.surely else "unsure" if e.matters else "no"]
        for e in effects
    ]  # fmt: skip
    data = [
        {"metric": found.metric, "factor": name, "method": e.method, "level": level,
         "share": s.value, "low": s.low, "high": s.high, "margin": e.margins[level],
         "matters": e.matters, "surely": e.surely}
        for e in effects
        for level, s in e.shares.items()
    ]  # fmt: skip
    return simple_table(
        f"{label}: {factor.title}", f"factors-{name}-{found.metric}", ["method"], heads, lines,
        data, notes=(sentence(study, found, name),),
    )  # fmt: skip


def sentence(study: FactorStudy, found: Factors, name: str) -> str:
    """A factor in one sentence, by the study's rule; its table has the numbers."""
    factor = study.factors[name]
    effects = [e for e in found.effects if e.factor == name]
    same = [e.method for e in effects if not e.matters]
    title = _capital(factor.title)
    parts = []
    if len(same) < len(effects):
        alone = [e.method for e in effects if e.matters and not e.surely]
        sure = any(e.matters and e.surely and not is_control(e.method) for e in effects)
        matters = "matters" if sure else "may matter"
        parts.append(f"{title} {matters}: {'; '.join(_ends(effects))}.")
        if alone:
            parts.append(
                f"For {', '.join(alone)} that is unsure: cells differ from the additive model by "
                "as much."
            )
    if same:
        least = f"{100 * study.matters:.0f} points"
        matter = f"was not found to matter by {least} or more for"
        parts.append(
            f"It {matter} {', '.join(same)}." if parts else f"{title} {matter} any method."
        )
    if factor.ordered:
        parts += _paying(effects, [*factor.levels.values()])
    return " ".join(parts)


def _ends(effects: Sequence[FactorEffect]) -> Iterator[str]:
    """Methods for which a factor matters, by the levels where they keep most and least."""
    groups: dict[tuple[str, str], list[str]] = {}
    for effect in (e for e in effects if e.matters):
        shares = {level: share.known for level, share in effect.shares.items()}
        ends = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
        groups.setdefault(ends, []).append(effect.method)
    for (best, worst), methods in groups.items():
        keep = "keeps" if len(methods) == 1 else "keep"
        yield f"{', '.join(methods)} {keep} most at {best} and least at {worst}"


def answer(study: FactorStudy, found: Factors) -> str:
    """The levels at which a method is above the old model, other settings weighing alike."""

    def those(*, surely: bool, control: bool = False) -> str:
        places = []
        for name, factor in study.factors.items():
            for level in factor.levels.values():
                shares = [
                    f"{e.method} {_percent(e.shares[level])} %"
                    for e in found.effects if e.factor == name
                    and is_control(e.method) == control
                    and e.shares[level].is_above(0.0) and (level in e.sure_at) == surely
                ]  # fmt: skip
                places += [f"{factor.title}, {level}: {', '.join(shares)}"] if shares else []
        return "; ".join(places)

    by = f"By {numbers.metric(found.metric).label}, on average over the other settings,"
    sure, unsure, control = (
        those(surely=True),
        those(surely=False),
        those(surely=True, control=True),
    )
    told = [f"{by} no method is surely above the old model at any level."]
    if sure:
        told = [f"{by} methods are surely above the old model only here. {_capital(sure)}."]
    if unsure:
        told.append(
            f"By these seeds{' also' * bool(sure)}, but no further than cells differ from the "
            f"additive model: {unsure}."
        )
    if control:
        told.append(f"The control surely is: {control}.")
    return " ".join(told)


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _paying(effects: Sequence[FactorEffect], levels: Sequence[str]) -> Iterator[str]:
    everywhere = [e.method for e in effects if e.pays_from == levels[0]]
    if everywhere:
        yield f"By these seeds above old/old at every level: {', '.join(everywhere)}."
    for level in levels[1:]:
        names = [e.method for e in effects if e.pays_from == level]
        if names:
            yield f"By these seeds above old/old from {level} on: {', '.join(names)}."
    never = [e.method for e in effects if e.pays_from is None]
    if never:
        yield f"Not above old/old at {levels[-1]}: {', '.join(never)}."


def _percent(share: Estimate) -> str:
    return numbers.with_ends(share, 100, 0)


def summary(found: Factors) -> str:
    """Cells and seeds that the model stands on, and how near it comes to single cells."""
    explained, misfit = (
        " to ".join(dict.fromkeys(f"{100 * of:.0f}" for of in (min(its), max(its))))
        for its in (found.explained.values(), found.misfit.values())
    )
    return (
        f"{numbers.metric(found.metric).label}: {found.cells} cells of {found.seeds} seeds each; "
        f"{found.without} more have no upgrade to keep. The additive model explains {explained} % "
        f"of what varies between cells, by method; single cells lie around it with a standard "
        f"deviation of {misfit} points, which intervals over seeds do not hold."
    )
