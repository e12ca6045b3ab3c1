"""Tables and sentences of a study of factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmark.metrics.estimate import Estimate
from benchmark.report import numbers
from benchmark.report.text_table import TextCell, TextTable, simple_table
from benchmark.studies.factors.design import FactorStudy
from benchmark.studies.factors.model import FactorEffect, Factors


def tables(study: FactorStudy, found: Sequence[Factors]) -> list[TextTable]:
    """One for each metric and factor."""
    return [_table(study, each, name) for each in found for name in study.factors]


def _table(study: FactorStudy, found: Factors, name: str) -> TextTable:
    factor, label = study.factors[name], numbers.metric(found.metric).label
    effects = [e for e in found.effects if e.factor == name]
    heads = [*factor.levels.values(), "best - worst", "matters"]
    lines = [
        [TextCell(e.method), *(TextCell(_percent(e.shares[level])) for level in heads[:-2]),
         TextCell(_percent(e.widest)), TextCell("yes" if e.matters else "no")]
        for e in effects
    ]  # fmt: skip
    data = [
        {"metric": found.metric, "factor": name, "method": e.method, "level": level,
         "share": s.value, "low": s.low, "high": s.high, "matters": e.matters}
        for e in effects
        for level, s in e.shares.items()
    ]  # fmt: skip
    return simple_table(
        f"{label}: {factor.title}", f"factors-{name}-{found.metric}", ["method"], heads, lines,
        data, notes=(sentence(study, found, name),),
    )  # fmt: skip


def sentence(study: FactorStudy, found: Factors, name: str) -> str:
    """A factor in one sentence, by the study's rule."""
    factor = study.factors[name]
    effects = [e for e in found.effects if e.factor == name]
    told = [words for e in effects if e.matters for words in [_told(e)]]
    same = [e.method for e in effects if not e.matters]
    title = factor.title[0].upper() + factor.title[1:]
    parts = []
    if told:
        parts.append(f"{title} matters: " + "; ".join(told) + ".")
    if same:
        least = f"{100 * study.matters:.0f} points"
        parts.append(f"It does not matter by {least} or more for {', '.join(same)}." if told else
                     f"{title} does not matter by {least} or more for any method.")  # fmt: skip
    if factor.ordered:
        parts += _paying(effects, [*factor.levels.values()])
    return " ".join(parts)


def _told(effect: FactorEffect) -> str:
    best = max(effect.shares, key=lambda level: effect.shares[level].known)
    worst = min(effect.shares, key=lambda level: effect.shares[level].known)
    high, low = (_percent(effect.shares[level]) for level in (best, worst))
    return f"{effect.method} keeps {high} % at {best} and {low} % at {worst}"


def _paying(effects: Sequence[FactorEffect], levels: Sequence[str]) -> Iterator[str]:
    everywhere = [e.method for e in effects if e.pays_from == levels[0]]
    if everywhere:
        yield f"At every level above old/old: {', '.join(everywhere)}."
    for level in levels[1:]:
        names = [e.method for e in effects if e.pays_from == level]
        if names:
            yield f"Above old/old from {level} on: {', '.join(names)}."
    never = [e.method for e in effects if e.pays_from is None]
    if never:
        yield f"Not up to {levels[-1]}: {', '.join(never)}."


def _percent(share: Estimate) -> str:
    if share.value is None or share.low is None or share.high is None:
        return numbers.DASH
    return f"{100 * share.value:z.0f} ({100 * share.low:z.0f} to {100 * share.high:z.0f})"


def summary(found: Factors) -> str:
    """Cells and seeds that the model stands on."""
    return (
        f"{numbers.metric(found.metric).label}: {found.cells} cells of {found.seeds} seeds each; "
        f"{found.without} more have no upgrade to keep."
    )
