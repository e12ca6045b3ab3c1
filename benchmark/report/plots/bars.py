"""Cross-test and self-test of each method as bars, between the bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmark.report import numbers
from benchmark.report.plots import style
from benchmark.report.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HALF = 0.36


@dataclass(frozen=True)
class _What:
    """What a figure shows: metric, its cases, and the factor to percent."""

    metric: str
    cases: tuple[str, str]
    factor: float


def draw(table: Table, metric: str, cross: str, own: str) -> Figure | None:
    """The figure; None where no method has a value."""
    about = numbers.metric(metric)
    rows = [row for row in table.rows if row.kind == "method" and row.reason is None]
    rows += [row for row in table.rows if row.kind == "independent"]
    rows = [
        row for row in rows if any(_value(row, metric, case) is not None for case in (cross, own))
    ]
    if not rows:
        return None
    what = _What(metric, (cross, own), 100.0 if about.unit == "share" else 1.0)
    figure = style.figure(1.95 + 0.62 * len(rows))
    axes = figure.add_subplot()
    longest = max(len(row.label) for row in rows)
    style.margins(axes, 0.35 + 0.095 * longest, 1.0, 0.62, 1.05)
    reach = 0.0
    for place, row in enumerate(reversed(rows)):
        for case, up, colour in ((cross, _HALF / 2, style.CROSS), (own, -_HALF / 2, style.SELF)):
            reach = max(reach, _bar(axes, row, what, case, y=place + up, colour=colour))
    axes.set_yticks(range(len(rows)), [row.label for row in reversed(rows)])
    axes.tick_params(axis="y", length=0, labelsize=11)
    axes.set_ylim(-0.55, len(rows) - 0.4)
    axes.set_xlim(0, reach * 1.02)
    _bound_lines(axes, table, what)
    _name_bars(axes, rows[0], what, len(rows) - 1)
    unit = " (%)" if about.unit == "share" else ""
    worse = ", lower is better" if about.higher_is_better is False else ""
    axes.set_xlabel(f"{about.label}{unit}{worse}")
    style.heading(figure, f"{about.label}: {cross} and {own}", table.title)
    return figure


def _value(row: Row, metric: str, case: str) -> float | None:
    cell = row.cells.get((metric, case))
    return None if cell is None else cell.value


def _bar(axes: Axes, row: Row, what: _What, case: str, *, y: float, colour: str) -> float:
    """One bar with its interval, its number at the right edge; returns how far it reaches."""
    cell = row.cells.get((what.metric, case))
    if cell is None or cell.value is None:
        return 0.0
    factor = what.factor
    value = factor * cell.value
    low, high = (value if end is None else factor * end for end in (cell.low, cell.high))
    axes.barh(y, value, height=_HALF, color=colour, zorder=2)
    axes.plot([low, high], [y, y], color=style.INK, linewidth=1.4, zorder=4, solid_capstyle="butt")
    unit = numbers.metric(what.metric).unit
    spread = numbers.spread(cell.value, cell.low, cell.high, unit)
    axes.text(
        1.03, y, f"{numbers.number(cell.value, unit)} {spread}", va="center", fontsize=9.5,
        transform=axes.get_yaxis_transform(),
    )  # fmt: skip
    return max(value, high)


def _bound_lines(axes: Axes, table: Table, what: _What) -> None:
    found = []
    for row in table.rows:
        cell = next((c for (key, _), c in row.cells.items() if key == what.metric), None)
        if row.kind in ("lower", "upper") and cell is not None and cell.value is not None:
            found.append((what.factor * cell.value, row))
    for value, row in found:
        dash = (0, (5, 3)) if row.kind == "lower" else (0, (1, 1.6))
        axes.axvline(value, color=style.INK, linewidth=1.2, linestyle=dash, zorder=3)
    reach = max([axes.get_xlim()[1], *(value * 1.02 for value, _ in found)])
    axes.set_xlim(0, reach)
    style.name_uprights(axes, [(value, f"{row.label} {value:.1f}") for value, row in found])


def _name_bars(axes: Axes, row: Row, what: _What, place: int) -> None:
    """The first method's bars say which is which."""
    for case, up in zip(what.cases, (_HALF / 2, -_HALF / 2), strict=True):
        value = _value(row, what.metric, case)
        if value is None:
            continue
        wide = what.factor * value > 0.22 * axes.get_xlim()[1]
        cell = row.cells[what.metric, case]
        end = what.factor * (value if cell.high is None else max(value, cell.high))
        # White behind a name beside its bar, where a bound's line may pass.
        axes.annotate(
            case, (0 if wide else end, place + up), xytext=(6, 0), textcoords="offset points",
            va="center", fontsize=9.5, fontweight="bold", zorder=6,
            color="white" if wide and up > 0 else style.INK,
            bbox=None if wide else {"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )  # fmt: skip
