"""The report as one HTML file: nothing is loaded from anywhere, and every text is escaped."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.errors import printable
from benchmark.upgrade.decide import models, verdict
from benchmark.upgrade.read.request import KEEP, MIXED, REEMBED
from benchmark.upgrade.show import sections, tables, wording
from benchmark.upgrade.show.sections import ordered
from benchmark.upgrade.show.wording import Document

Point = tuple[float, float, float, float]
"""x, and a score with the ends of its interval."""


@dataclass(frozen=True)
class LineChart:
    """A line chart as the page draws it: places in a box of 340 x 180."""

    title: str
    x_title: str
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    lines: Sequence[tuple[str, str, str, Sequence[tuple[float, float]]]]
    """Label, points of the line, points around its interval, dots."""
    bounds: Sequence[tuple[float, str]]


def render(document: Document) -> str:
    """The page."""
    rows = _rows(document)
    return str(_template().render(
        d=document, w=wording, more=sections, rows=rows, curves=_curves(document),
        tiles=_tiles(document), rule=verdict.rule(),
        parts=tables, histograms=_histograms(document), metric=wording.label(document),
        heads=list(rows[0]["cells"]), models_rule=models.RULE,
    ))  # fmt: skip


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )  # fmt: skip
    return environment.from_string(Path(__file__).with_name("page.html").read_text())


def _rows(document: Document) -> list[dict[str, Any]]:
    """Strategies with the places of their score and its interval on a line of 160."""
    strategies = ordered(document)
    ends = [e for s in strategies for e in _span(s["score"])]
    scale = _scale(min(ends), max(ends), 4, 156)
    bounds = [
        (scale(s["score"]["value"]), name)
        for name in (KEEP, REEMBED)
        if (s := wording.of(document, name)) is not None
    ]
    return [
        {
            "s": s, "at": scale(s["score"]["value"]), "span": tuple(map(scale, _span(s["score"]))),
            "bounds": bounds, "chosen": s["name"] == document["verdict"]["strategy"],
            "next": s["name"] == document["verdict"]["runner_up"], "cells": _cells(document, s),
        }
        for s in strategies
    ]  # fmt: skip


def _cells(document: Document, s: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Heading -> text and small print of a strategy's row."""
    cost, ends = s["cost"], wording.bracketed(s["score"]).strip()
    waiting = f"+ {cost['embedded']}" if cost["embedded"] else ""
    return {
        wording.label(document): (
            wording.score(s["score"]), ends + " est." * s["estimated"]
        ),
        tables.whole_head(document): (tables.whole(document, s), ""),
        **({} if s["fixed"] is None else {
            "fixed / broken": (f"{s['fixed']:,} / {s['broken']:,}", ""),
        }),
        "time": (wording.hours(cost["hours"]), ""),
        "money": (wording.money(cost["money"], document), ""),
        "a query": (f"{cost['runs']} model{'s' * (cost['runs'] > 1)}", waiting),
        "1,000 queries": (wording.money(cost["money_per_1000_queries"], document), ""),
        "vectors": (wording.size(cost["index_bytes"]), "new" if cost["rebuild"] else ""),
    }  # fmt: skip


def _tiles(document: Document) -> list[tuple[str, str]]:
    """The three figures that a reader looks for first, and what they are."""
    name = document["verdict"]["strategy"]
    chosen, again = wording.of(document, name), wording.of(document, REEMBED)
    if chosen is None:
        return []
    if again is None:
        cost, now = chosen["cost"], (wording.score(chosen["score"]), wording.label(document))
        once = wording.money(cost["money"], document), "once"
        return [now, (wording.hours(cost["hours"]), "to get there"), once]
    share = wording.kept(chosen["kept"])
    of = f"of {document['verdict']['share_of']} kept"
    if name == KEEP:
        share, of = wording.score(chosen["score"]), f"{wording.label(document)}, as now"
    tiles, cost, its = [(share, of)], chosen["cost"], again["cost"]
    spent = [wording.money(each["money"], document) for each in (cost, its)]
    for mine, other, what in (
        (wording.hours(cost["hours"]), wording.hours(its["hours"]), "to get there"),
        (*spent, "once"),
    ):
        tiles.append((mine, what + ("" if name == REEMBED else f", instead of {other}")))
    return tiles


def _curves(document: Document) -> list[LineChart]:
    label, curves = wording.label(document), []
    held = f"{document['inputs']['held']:,} held-out items"
    if (pairs := document["pairs"]) is not None and len(pairs["points"]) > 1:
        points = [(math.log10(p["pairs"]), *_whole(p)) for p in pairs["points"]]
        ticks = [(math.log10(p["pairs"]), f"{p['pairs']:,}") for p in pairs["points"]]
        # Names of the last two may lie on each other.
        if len(ticks) > 2 and ticks[-1][0] - ticks[-2][0] < 0.2:
            del ticks[-2]
        bounds = [(e["value"], name) for name, e in pairs["bounds"].items()]
        title = f"{label} by pairs, {held}"
        curves.append(_curve(title, "pairs fitted on", ticks, [(pairs["map"], points)], bounds))
    ways = ("while backfilling", "order", False), ("of a mixed index", "start", True)
    for what, key, mixed in ways:
        lines = [
            (each[key], [(p["filled"], *_whole(p)) for p in each["points"]])
            for each in document["backfilling"] or [] if (each["start"] in MIXED) == mixed
        ]  # fmt: skip
        if lines:
            ticks = [(x, wording.percent(x)) for x in (0.0, 0.5, 1.0)]
            title = f"{label} {what}, {held}"
            curves.append(_curve(title, "of the gallery embedded again", ticks, lines, []))
    return curves


def _histograms(document: Document) -> list[LineChart]:
    """Scores of pairs, of the old model and of what is recommended or embeds again."""
    found = document["thresholds"]
    if found is None:
        return []
    name = document["verdict"]["strategy"]
    second = name if name in found["histograms"] and name != KEEP else REEMBED
    charts = []
    for each in (KEEP, second):
        shape = found["histograms"][each]
        middles = [(a + b) / 2 for a, b in itertools.pairwise(shape["ends"])]
        lines = [
            (label, [(x, y, y, y) for x, y in zip(middles, shape[key], strict=True)])
            for label, key in (("other pairs", "other"), ("belong together", "true"))
            if any(shape[key])
        ]
        ends = (shape["ends"][0], shape["ends"][-1])
        ticks = [(x, f"{x:.2f}") for x in (ends[0], sum(ends) / 2, ends[1])]
        charts.append(_curve(f"Scores, {each}: percent of pairs", "score", ticks, lines, []))
    return charts


def _curve(
    title: str, x_title: str, ticks: Sequence[tuple[float, str]],
    lines: Sequence[tuple[str, Sequence[Point]]], bounds: Sequence[tuple[float, str]],
) -> LineChart:  # fmt: skip
    xs = [p[0] for _, points in lines for p in points]
    ys = [y for _, points in lines for p in points for y in p[1:]] + [y for y, _ in bounds]
    margin = 0.08 * max(max(ys) - min(ys), 0.02)
    low, high = min(ys) - margin, max(ys) + margin
    x, y = _scale(min(xs), max(xs), 38, 322), _scale(low, high, 144, 18)
    drawn = []
    for name, points in lines:
        line = [(x(p[0]), y(p[1])) for p in points]
        around = [(x(p[0]), y(p[2])) for p in points] + [(x(p[0]), y(p[3])) for p in points[::-1]]
        drawn.append((name, _path(line), _path(around), line))
    return LineChart(
        title, x_title, [(x(at), text) for at, text in ticks],
        [(y(v), f"{100 * v:.0f}") for v in _round_numbers(low, high)], drawn,
        [(y(v), name) for v, name in bounds],
    )  # fmt: skip


def _scale(low: float, high: float, first: float, last: float) -> Callable[[float], float]:
    """Numbers to places on a line; what is beyond its ends is cut off."""
    ends = low, max(high, low + 1e-12)
    return lambda value: round(float(np.interp(value, ends, (first, last))), 1)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _round_numbers(low: float, high: float) -> list[float]:
    """Up to five round numbers between two."""
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if (high - low) / s <= 5 or s == 0.5)
    first = math.ceil(low / step)
    return [k * step for k in range(first, math.floor(high / step) + 1)]


def _span(estimate: Mapping[str, Any]) -> tuple[float, float]:
    value = estimate["value"]
    low, high = estimate["low"], estimate["high"]
    return (value if low is None else low, value if high is None else high)


def _whole(estimate: Mapping[str, Any]) -> tuple[float, float, float]:
    return (estimate["value"], *_span(estimate))
