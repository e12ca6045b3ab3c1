"""Cross-test against self-test: what compatibility costs in quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from benchmark.report import numbers
from benchmark.report.plots import labels, style
from benchmark.report.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# A level stretch of the front shorter than this, in pixels, has no room for its name.
_NAMED_FRONT = 190


@dataclass(frozen=True)
class Point:
    """A method: self-test ``x``, cross-test ``y``, with their intervals, as printed."""

    method: str
    x: float
    y: float
    xs: tuple[float, float]
    ys: tuple[float, float]


def front(points: Sequence[Point], *, higher: bool = True) -> list[Point]:
    """The points that no other one beats in both tests, by rising self-test.

    Example:
        >>> at = lambda name, x, y: Point(name, x, y, (x, x), (y, y))
        >>> [p.method for p in front([at("a", 1, 3), at("b", 2, 2), at("c", 1, 1)])]
        ['a', 'b']
    """
    sign = 1 if higher else -1
    kept = [
        p
        for p in points
        if not any(
            sign * q.x >= sign * p.x and sign * q.y >= sign * p.y and (q.x, q.y) != (p.x, p.y)
            for q in points
        )
    ]
    return sorted(kept, key=lambda p: (p.x, p.y, p.method))


def draw(table: Table, metric: str, cross: str, own: str) -> Figure | None:
    """The figure; None where no method has both tests."""
    about = numbers.metric(metric)
    factor = 100.0 if about.unit == "share" else 1.0
    points = [p for row in table.rows if (p := _point(row, metric, cross, own, factor))]
    methods = [p for p in points if p.method != "independent"]
    if not points:
        return None
    higher = about.higher_is_better is not False
    lower, uppers = _bounds(table, metric, cross, own, factor)
    figure = style.figure(5.0)
    axes = figure.add_subplot()
    style.margins(axes, 0.8, 1.25, 0.65, 1.05)
    _limits(axes, methods or points, lower, uppers)
    _bound_lines(axes, lower, uppers, table, higher=higher)
    looks = style.looks([row.method for row in table.rows if row.kind == "method"])
    _front_line(axes, front(methods, higher=higher), higher=higher)
    inside = [_draw_point(axes, p, *looks.get(p.method, (style.FAINT, "o"))) for p in points]
    _write(axes, points, inside, looks)
    unit = " (%)" if about.unit == "share" else ""
    axes.set_xlabel(f"self-test: {about.label}, {own}{unit}")
    axes.set_ylabel(f"cross-test: {about.label}, {cross}{unit}")
    style.heading(figure, f"{about.label}: cross-test against self-test", table.title)
    return figure


def _point(row: Row, metric: str, cross: str, own: str, factor: float) -> Point | None:
    x, y = row.cells.get((metric, own)), row.cells.get((metric, cross))
    if row.kind not in ("method", "independent") or x is None or y is None:
        return None
    if x.value is None or y.value is None:
        return None
    ends = [
        (
            factor * (cell.value if cell.low is None else cell.low),  # type: ignore[operator]
            factor * (cell.value if cell.high is None else cell.high),  # type: ignore[operator]
        )
        for cell in (x, y)
    ]
    return Point(row.method, factor * x.value, factor * y.value, ends[0], ends[1])


def _bounds(
    table: Table, metric: str, cross: str, own: str, factor: float
) -> tuple[float | None, dict[str, float]]:
    """The lower bound, and upper bounds by label."""
    lower, uppers = None, {}
    for row in table.rows:
        cell = row.cells.get((metric, cross if row.kind == "lower" else own))
        if cell is None or cell.value is None:
            continue
        if row.kind == "lower":
            lower = factor * cell.value
        elif row.kind == "upper":
            uppers[row.label] = factor * cell.value
    return lower, uppers


def _limits(
    axes: Axes, points: Sequence[Point], lower: float | None, uppers: dict[str, float]
) -> None:
    """Room for the methods and the bounds; what lies far below them is drawn at the edge."""
    xs = [v for p in points for v in p.xs] + list(uppers.values())
    ys = [v for p in points for v in p.ys] + ([] if lower is None else [lower])
    for values, limit in ((xs, axes.set_xlim), (ys, axes.set_ylim)):
        room = max(max(values) - min(values), 2.0)
        limit(min(values) - 0.18 * room, max(values) + 0.18 * room)


def _bound_lines(
    axes: Axes, lower: float | None, uppers: dict[str, float], table: Table, *, higher: bool
) -> None:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    if lower is not None:
        edge = top if higher else bottom
        axes.fill_between([left, right], lower, edge, color=style.SHADE, zorder=0, linewidth=0)
        axes.axhline(lower, color=style.INK, linewidth=1.2, linestyle=(0, (5, 3)), zorder=1)
        case = next((row.detail for row in table.rows if row.kind == "lower"), "")
        axes.text(
            1.015, lower, f"lower bound\n{case} {lower:.1f}", transform=axes.get_yaxis_transform(),
            va="center", fontsize=9.5, color=style.INK,
        )  # fmt: skip
        axes.text(
            0.012, 0.985 if higher else 0.015, "compatible", transform=axes.transAxes,
            va="top" if higher else "bottom", fontsize=9.5, color=style.FAINT, style="italic",
        )  # fmt: skip
    for value in uppers.values():
        axes.axvline(value, color=style.INK, linewidth=1.2, linestyle=(0, (1, 1.6)), zorder=1)
    named = [(value, f"{label} {value:.1f}") for label, value in uppers.items()]
    style.name_uprights(axes, named)


def _front_line(axes: Axes, points: Sequence[Point], *, higher: bool) -> None:
    """The staircase of what is reachable."""
    if len(points) < 2:
        return
    where: Literal["pre", "post"] = "pre" if higher else "post"
    axes.step(
        [p.x for p in points], [p.y for p in points], where=where, color=style.FAINT, linewidth=1.0,
        zorder=2,
    )  # fmt: skip
    first, second = max(pairwise(points), key=lambda ends: ends[1].x - ends[0].x)
    ends = axes.transData.transform([(first.x, 0), (second.x, 0)])
    if ends[1][0] - ends[0][0] < _NAMED_FRONT:
        return
    axes.annotate(
        "Pareto front", ((first.x + second.x) / 2, second.y if where == "pre" else first.y),
        xytext=(0, -3), textcoords="offset points", ha="center", va="top", fontsize=9,
        color=style.FAINT, style="italic",
    )  # fmt: skip


def _draw_point(axes: Axes, point: Point, colour: str, marker: str) -> tuple[float, float]:
    """Draw a point with its intervals, or an arrow at the edge it lies beyond."""
    bottom, top = axes.get_ylim()
    left, right = axes.get_xlim()
    y = min(max(point.y, bottom), top)
    x = min(max(point.x, left), right)
    if (x, y) != (point.x, point.y):
        away = "v" if point.y < bottom else "^" if point.y > top else "<" if point.x < left else ">"
        axes.plot([x], [y], marker=away, color=colour, markersize=8, clip_on=False, zorder=5)
        return x, y
    axes.errorbar(
        [x], [y],
        xerr=[[max(x - point.xs[0], 0.0)], [max(point.xs[1] - x, 0.0)]],
        yerr=[[max(y - point.ys[0], 0.0)], [max(point.ys[1] - y, 0.0)]],
        fmt=marker, color=colour, markersize=7.5, elinewidth=1.3, capsize=0, zorder=5,
        markeredgecolor="white", markeredgewidth=0.8,
    )  # fmt: skip
    return x, y


def _write(
    axes: Axes,
    points: Sequence[Point],
    drawn: Sequence[tuple[float, float]],
    looks: dict[str, tuple[str, str]],
) -> None:
    texts = []
    taken = [labels.Box(*text.get_window_extent().extents) for text in axes.texts]
    for line in axes.lines:
        ends = line.get_transform().transform(_corners(line))
        taken += [_segment(a, b) for a, b in pairwise(ends.tolist())]
    for point, (x, y) in zip(points, drawn, strict=True):
        px, py = axes.transData.transform((x, y))
        low = axes.transData.transform((point.xs[0], point.ys[0]))
        high = axes.transData.transform((point.xs[1], point.ys[1]))
        taken += [
            labels.Box(px - 9, py - 9, px + 9, py + 9),
            _segment((low[0], py), (high[0], py)),
            _segment((px, low[1]), (px, high[1])),
        ]
        words = point.method
        if (x, y) != (point.x, point.y):
            words += f" ({point.x:.1f}, {point.y:.1f})" if x != point.x else f" at {point.y:.1f}"
        texts.append(labels.Label(x, y, words, looks.get(point.method, (style.FAINT, ""))[0]))
    labels.place(axes, texts, taken)


def _corners(line: Line2D) -> list[tuple[float, float]]:
    """The line's points with the corners of its steps."""
    xy: Any = line.get_xydata()
    ends = [(float(x), float(y)) for x, y in xy]
    steps = str(line.get_drawstyle())
    if not steps.startswith("steps"):
        return ends
    found = ends[:1]
    for (x, y), (u, v) in pairwise(ends):
        found += [(x, v) if steps == "steps-pre" else (u, y), (u, v)]
    return found


def _segment(a: Sequence[float], b: Sequence[float]) -> labels.Box:
    """Pixels of a level or upright line."""
    return labels.Box(
        min(a[0], b[0]) - 2, min(a[1], b[1]) - 2, max(a[0], b[0]) + 2, max(a[1], b[1]) + 2
    )
