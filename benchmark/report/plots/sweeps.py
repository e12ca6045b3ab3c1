"""Plots of a sweep: score against the first swept value, a panel for each case."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from benchmark.config.sweep import Axis
from benchmark.report import colours, numbers
from benchmark.report.plots import frames, style
from benchmark.report.tables.sweep import SweepTable


def drawings(table: SweepTable) -> Iterator[style.Drawing]:
    """A figure for each metric with scores, ``sweep-<field>-<metric>``."""
    name = f"sweep-{table.axes[0].key.replace(':', '+')}"
    for metric in dict.fromkeys(key for key, _ in table.columns):
        yield f"{name}-{metric}", partial(draw, table, metric)


def frame(table: SweepTable, metric: str) -> pd.DataFrame:
    """The scores of a metric in percent.

    Returns:
        Columns ``line`` (method, or ``lower bound``, and the values of further swept fields),
        ``case``, ``place`` on the axis, ``value``: score and ends of its interval in rows below
        each other. What the field does not concern is the same at both ends of the axis.
    """
    cases = [case for key, case in table.columns if key == metric]
    places = _places(table.axes[0])
    rows = []
    for each in table.lines:
        others = ", ".join(str(value) for value in each.values[1:] if value is not None)
        value = each.values[0]
        at = [min(places.values()), max(places.values())] if value is None else [places[value]]
        for case in cases:
            mean = each.cells.get((metric, case))
            lower = case == cases[0] and len(cases) > 1
            if mean is None or mean.value is None or (lower and each.method != "independent"):
                continue
            name, panel = ("lower bound", cases[1]) if lower else (each.method, case)
            line = f"{name} ({others})" if others else name
            known = [v for v in (mean.low, mean.value, mean.high) if v is not None]
            ends = [frames.scale(metric) * v for v in (mean.value, min(known), max(known))]
            rows += [(line, panel, x, value) for x in at for value in ends]
    return pd.DataFrame(rows, columns=["line", "case", "place", "value"])


def _places(axis: Axis) -> dict[Any, float]:
    """Numbers stand where they are, names one beside the other."""
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in axis.values)
    return {v: float(v) if numeric else float(i) for i, v in enumerate(axis.values)}


def _best(data: pd.DataFrame, metric: str) -> list[str]:
    """The lines that reach the best scores; at most eight."""
    higher = numbers.metric(metric).higher_is_better is not False
    lines = data[data["line"].map(colours.colour) != colours.GREY].groupby("line")["value"]
    reached = lines.max() if higher else lines.min()
    ranked = reached.sort_values(ascending=not higher, kind="stable").index
    return [str(line) for line in ranked[: colours.MOST]]


def draw(table: SweepTable, metric: str) -> Figure | None:
    """Draw a line for each method in a panel for each case; None without a score."""
    data = frame(table, metric)
    if data.empty:
        return None
    grid = sns.relplot(
        data, kind="line", x="place", y="value", col="case", hue="line", style="line", height=3,
        aspect=1.2, err_style="bars", facet_kws={"sharey": False, "legend_out": False},
        **frames.INTERVAL, **style.looks(data["line"], _best(data, metric)),
    )  # fmt: skip
    axis = table.axes[0]
    grid.set(xticks=list(_places(axis).values()), xticklabels=list(map(str, axis.values)))
    grid.set_titles("{col_name}").set_axis_labels(axis.key, frames.label(metric))
    sns.move_legend(grid, "upper left", bbox_to_anchor=(1, 1), title=None)
    title = f"{numbers.metric(metric).label} against {axis.key}"
    style.heading(grid.figure, title, f"{table.title}; bars: 95 % intervals")
    return grid.figure
