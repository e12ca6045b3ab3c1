"""Cross-test against self-test: what compatibility costs in quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmark.records.record import Record
from benchmark.report import colours, numbers, select
from benchmark.report.plots import frames, style
from benchmark.report.ranks import front

Values = NDArray[np.float64]
_NEAR = 33
"""Pixels from its point within which a name needs no line to it."""
_ORDERS = 30
"""Drawn orders in which names are placed, beside that of the scores; the best stays."""


def draw(records: Sequence[Record], metric: str) -> Figure | None:
    """Draw a point with both intervals for each method; None where no method has both tests."""
    cross, own = select.cross_case(records), select.self_case(records)
    lit = frames.highlighted(records, metric)
    data = _frame(frames.means(records, metric, [own, cross]), own, cross, lit)
    if data.empty:
        return None
    about = numbers.metric(metric)
    figure, axes = plt.subplots(figsize=(7.6, 4.2))
    unranked = data["method"].isin([*select.unranked(records)])
    rivals = data[(data["colour"] != colours.GREY) & ~unranked]
    higher = about.higher_is_better is not False
    _draw_area(axes, data if rivals.empty else rivals, frames.bounds(records, metric), higher)
    _draw_front(axes, rivals, higher)
    rest = data["colour"] == colours.REST
    _draw_rest(axes, data[rest])
    data = data[~rest].copy()
    inside = data[_to_edges(axes, data)]
    axes.set_prop_cycle(color=list(inside["colour"]))
    axes.plot(inside[["low_x", "high_x"]].T, inside[["y", "y"]].T, lw=1.2)
    axes.plot(inside[["x", "x"]].T, inside[["low_y", "high_y"]].T, lw=1.2)
    sns.scatterplot(
        data, x="x", y="y", hue="name", style="name", palette=list(data["colour"]), s=60, zorder=5,
        markers=list(data["marker"]), legend=False, clip_on=False, ax=axes,
    )  # fmt: skip
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=4)
    _write_names(axes, data)
    axes.set_xlabel(f"self-test: {frames.label(metric, own)}")
    axes.set_ylabel(f"cross-test: {frames.label(metric, cross)}")
    below = frames.subtitle(records, [metric])
    style.heading(figure, f"{about.label}: cross-test against self-test", below)
    return figure


def _frame(scores: pd.DataFrame, own: str, cross: str, lit: Sequence[str]) -> pd.DataFrame:
    """A row for each method with both tests, best cross-test first; how it looks in its columns."""
    tests = [scores[scores["case"] == case] for case in (own, cross)]
    data = tests[0].merge(tests[1], on="method").sort_values("score_y", ascending=False)
    looks = style.looks(sorted(data["method"]), lit)
    return data.rename(columns={"score_x": "x", "score_y": "y"}).assign(
        name=data["method"],
        colour=data["method"].map(looks["palette"]),
        marker=data["method"].map(looks["markers"]),
    )


def _draw_area(axes: Axes, shown: pd.DataFrame, bounds: Mapping[str, float], higher: bool) -> None:
    """Set limits with room for some methods and the bounds, and draw the bounds."""
    for side, limit in (("x", axes.set_xlim), ("y", axes.set_ylim)):
        lines = [v for name, v in bounds.items() if name.startswith("lower") == (side == "y")]
        values = [*shown[f"low_{side}"], *shown[f"high_{side}"], *lines]
        room = 0.15 * max(max(values) - min(values), 2.0)
        limit(min(values) - room, max(values) + room)
    for name, value in bounds.items():
        line = axes.axhline if name.startswith("lower") else axes.axvline
        words = f"{name} {value:.1f}"
        line(value, ls=style.BOUNDS[name], lw=1.2, color=style.INK, zorder=1, label=words)
    if "lower bound" in bounds:
        edge = axes.get_ylim()[1 if higher else 0]
        axes.axhspan(bounds["lower bound"], edge, color=style.SHADE, zorder=0, label="compatible")


def _draw_front(axes: Axes, rivals: pd.DataFrame, higher: bool) -> None:
    """The staircase of what is reachable."""
    tests = zip(rivals["x"], rivals["y"], strict=True)
    points = dict(zip(rivals["method"], tests, strict=True))
    steps = [points[method] for method in front(points, higher=higher)]
    corners = steps[:1]
    for (left, above), (right, below) in pairwise(steps):
        corners += [(left, below) if higher else (right, above), (right, below)]
    if len(steps) > 1:
        axes.plot(*zip(*corners, strict=True), color=colours.GREY, lw=1, label="Pareto front")


def _draw_rest(axes: Axes, rest: pd.DataFrame) -> None:
    """Points of the methods that are not highlighted, where they lie within the limits."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    shown = rest[rest["x"].between(left, right) & rest["y"].between(bottom, top)]
    if not shown.empty:
        words = f"{len(shown)} other method{'s' * (len(shown) > 1)}"
        axes.scatter(shown["x"], shown["y"], s=22, color=colours.REST, zorder=4, label=words)


def _to_edges(axes: Axes, data: pd.DataFrame) -> pd.Series[bool]:
    """Make arrows at the edge, with their values in words, of points beyond the limits.

    Returns:
        Which points lie within.
    """
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    x, y = data["x"], data["y"]
    inside = x.between(left, right) & y.between(bottom, top)
    words = [f"{m} ({a:.1f}, {b:.1f})" for m, a, b in zip(data["method"], x, y, strict=True)]
    arrows = np.select([y < bottom, y > top, x < left], ["v", "^", "<"], ">")
    data["name"] = data["name"].where(inside, words)
    data["marker"] = data["marker"].where(inside, arrows)
    data["x"], data["y"] = x.clip(left, right), y.clip(bottom, top)
    return inside


def _write_names(axes: Axes, data: pd.DataFrame) -> None:
    """Write names beside points, where they cover least; far ones get a thin line.

    The adjustText library left more names on intervals and on each other.
    """
    pixels = axes.transData
    points = pixels.transform(data[["x", "y"]].to_numpy())
    lines = [line.get_transform().transform(line.get_xydata()) for line in axes.lines]
    ends = [[*np.minimum(a, b) - 2, *np.maximum(a, b) + 2] for x in lines for a, b in pairwise(x)]
    dots = [pixels.transform(each.get_offsets()) for each in axes.collections]
    marks = [(points, 9), *((found, 5) for found in dots if len(found))]
    around = [np.hstack([found - size, found + size]) for found, size in marks]
    taken = np.array([*ends, *np.vstack(around)])  # left, bottom, right, top
    texts = [
        axes.text(0, 0, name, color=colour, weight="bold", ha="center", va="center")
        for name, colour in zip(data["name"], data["colour"], strict=True)
    ]
    halves = np.array([text.get_window_extent().size for text in texts]) / 2
    room = np.array(axes.get_window_extent().extents)
    rng = np.random.default_rng(0)
    orders = [np.arange(len(points)), *(rng.permutation(len(points)) for _ in range(_ORDERS))]
    tried = [_placed(order, points, halves, taken, room) for order in orders]
    middles, sides, far = min(tried, key=lambda each: each[1])[0]
    for k, text in enumerate(texts):
        text.set_position(tuple(pixels.inverted().transform(middles[k])))
        if far[k]:
            leader = pixels.inverted().transform([points[k], sides[k]])
            axes.plot(*leader.T, color=text.get_color(), lw=0.7)


def _placed(
    order: NDArray[np.int_], points: Values, halves: Values, taken: Values, room: Values
) -> tuple[tuple[Values, Values, NDArray[np.bool_]], float]:
    """Middles of names, where lines to them end, which need one, and the cost of one order.

    Each name in turn, ``halves`` its half width and height, takes the place that costs least.
    All in pixels; ``taken`` are boxes ``[m, 4]`` as left, bottom, right and top, as ``room`` is.
    """
    angles = np.radians(np.tile([0, 180, 90, 270, 45, 315, 135, 225], 7))
    ways = np.round(np.stack([np.cos(angles), np.sin(angles)], 1), 6)
    away = np.repeat([19, 26, 33, 43, 54, 83, 121], 8)
    written, drawn = np.empty((0, 4)), np.empty((0, 2))  # names, and points of lines to them
    middles, ends, far = points.copy(), points.copy(), np.zeros(len(points), bool)
    total = 0.0
    for k in order:
        # The name's nearest side or corner, not its middle, is this far from the point.
        places = points[k] + ways * away[:, None] + np.sign(ways) * halves[k]
        boxes = np.hstack([places - halves[k] - 3, places + halves[k] + 3])
        covered = _covered(boxes, taken) + 10 * _covered(boxes, written)
        beyond = ((boxes[:, :2] < room[:2]) | (boxes[:, 2:] > room[2:])).any(axis=1)
        sides = np.clip(points[k], places - halves[k], places + halves[k])
        leaders = points[k] + np.linspace(0, 1, 40)[:, None] * (sides - points[k])[:, None]
        crossed = (away > _NEAR) & _within(leaders[:, :, None], written).any(axis=(1, 2))
        crossed |= _within(drawn[:, None], boxes).any(axis=0)
        # A thin line through a name covers little of it, and disturbs.
        costs = 30 * covered + away + 1e5 * crossed + 1e6 * beyond
        best = int(np.argmin(costs))
        total += float(costs[best])
        middles[k], ends[k], far[k] = places[best], sides[best], away[best] > _NEAR
        written = np.vstack([written, boxes[best]])
        if far[k]:
            drawn = np.vstack([drawn, leaders[best]])
    return (middles, ends, far), total


def _covered(boxes: Values, taken: Values) -> Values:
    """Area of each box ``[n, 4]`` that others ``[m, 4]`` cover, ``[n]``."""
    low = np.maximum(boxes[:, None, :2], taken[:, :2])
    high = np.minimum(boxes[:, None, 2:], taken[:, 2:])
    area: Values = np.prod(np.clip(high - low, 0, None), axis=2).sum(axis=1)
    return area


def _within(points: Values, boxes: Values) -> NDArray[np.bool_]:
    """Tell which points ``[..., 1, 2]`` lie in which boxes ``[m, 4]``, ``[..., m]``."""
    return np.all((points > boxes[:, :2]) & (points < boxes[:, 2:]), axis=-1)
