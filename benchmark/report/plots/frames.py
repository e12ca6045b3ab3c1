"""Scores as tidy pandas frames, in the unit of a plot's axis: percent for shares."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pandas as pd

from benchmark.records.record import Record
from benchmark.report import colours, notes, numbers, scores, select
from benchmark.report.ranks import front
from benchmark.report.text_table import score_cell

INTERVAL: dict[str, Any] = {"estimator": "median", "errorbar": ("pi", 100)}
"""Seaborn options for :func:`ends`: the middle, between the outer ones; nothing resampled."""


def scale(metric: str) -> float:
    """From a score to the unit of its axis."""
    return 100.0 if numbers.metric(metric).unit == "share" else 1.0


def label(metric: str, case: str = "") -> str:
    """Name an axis: metric, case, unit, and the direction where less is better.

    Example:
        >>> label("map", "new/old")
        'mAP, new/old (%)'
    """
    about = numbers.metric(metric)
    words = about.label + (f", {case}" if case else "") + (" (%)" if about.unit == "share" else "")
    return f"{words}, lower is better" if about.higher_is_better is False else words


def subtitle(records: Sequence[Record], metrics: Sequence[str] = ()) -> str:
    """Protocol, track, seeds, what the intervals are, and methods whose scores say nothing."""
    single = notes.alone(records)
    ways = []
    if len(single) < sum(record.status == "done" for record in records):
        ways.append("Student's t over seeds")
    if single:
        ways.append(f"{notes.over_words(single, metrics) or 'none'} (one seed)")
    words = ", ".join(ways)
    diverged = list(dict.fromkeys(record.method for record in records if record.diverged))
    names = ", ".join(diverged) if len(diverged) < 3 else f"{len(diverged)} methods"
    told = f"; diverged: {names}" if diverged else ""
    return f"{notes.title(records)}; 95 % intervals: {words}{told}"


def means(records: Sequence[Record], metric: str, cases: Sequence[str]) -> pd.DataFrame:
    """Mean scores of each method and case with their 95 % intervals.

    Returns:
        Columns ``method`` (``independent`` last), ``case``, ``score``, ``low``, ``high`` (the score
        itself where no interval is known), ``text`` as tables print it, and ``seeds``, a list of
        the scores of several. A method that lacks a score of a seed has no row.
    """
    methods = scores.by_method(records)
    rows = []
    for method, case in product(sorted(methods, key=lambda m: m == "independent"), cases):
        members = methods[method]
        mean = scores.case_score(members, case, metric)
        if mean.value is not None:
            ends = [scale(metric) * v for v in (mean.value, mean.low, mean.high) if v is not None]
            values = [v for r in members if (v := r.scores[case][metric]) is not None]
            text = score_cell(mean, numbers.metric(metric).unit).whole
            seeds = [scale(metric) * v for v in values] if len(values) > 1 else []
            rows.append((method, case, ends[0], min(ends), max(ends), text, seeds))
    return pd.DataFrame(rows, columns=["method", "case", "score", "low", "high", "text", "seeds"])


def highlighted(records: Sequence[Record], metric: str) -> list[str]:
    """Methods in colour: all but controls, or the best, the front and the next best; eight."""
    cross, own = select.cross_case(records), select.self_case(records)
    data = means(records, metric, [own, cross])
    table = data.pivot(index="method", columns="case", values="score").reindex(columns=[own, cross])
    out = {m for m in table.index if colours.colour(m) == colours.GREY}
    rivals = table.drop(index=[*(out | {*select.unranked(records)}) & {*table.index}])
    higher = numbers.metric(metric).higher_is_better is not False
    ranked = rivals.sort_values(cross, ascending=not higher, kind="stable")
    best = [str(method) for method in ranked.index]
    points = {str(m): (float(x), float(y)) for m, x, y in rivals.dropna().itertuples(name=None)}
    edge = front(points, higher=higher)
    return list(dict.fromkeys([*best[:1], *edge, *best]))[: colours.MOST]


def ends(data: pd.DataFrame) -> pd.DataFrame:
    """Score, low and high below each other as ``value``."""
    kept = [name for name in data.columns if name not in ("score", "low", "high")]
    return data.melt(kept, ["score", "low", "high"], "end", "value")


def bounds(records: Sequence[Record], metric: str) -> dict[str, float]:
    """Lower and upper bounds by name, mean over seeds; without those that were not measured."""
    return {
        row.label: scale(metric) * cell.value
        for row in scores.bounds(records, [metric])
        for cell in row.cells.values()
        if cell.value is not None
    }
