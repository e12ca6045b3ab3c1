"""Plots of factors: the share of the upgrade that each method keeps, by level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from benchmark.report import numbers
from benchmark.report.plots import frames, style
from benchmark.studies.factors.design import FactorStudy
from benchmark.studies.factors.model import Factors
from benchmark.studies.lengths.plot import APART


def plot_factors(
    study: FactorStudy,
    found: Sequence[Factors],
    folder: Path,
    formats: Iterable[str] = style.FORMATS,
) -> list[Path]:
    """Draw a figure for each metric and factor.

    Returns:
        The files, ``factors-<factor>-<metric>.<format>``.
    """
    figures = (
        (f"factors-{name}-{each.metric}", partial(draw, study, each, name))
        for each in found
        for name in study.factors
    )
    return style.save(figures, folder, formats)


def draw(study: FactorStudy, found: Factors, name: str) -> Figure:
    """A line for each method; the levels side by side."""
    factor = study.factors[name]
    levels, effects = [*factor.levels.values()], [e for e in found.effects if e.factor == name]
    rows = [
        (e.method, i + APART * (k - (len(effects) - 1) / 2), 100 * value)
        for k, e in enumerate(effects)
        for i, level in enumerate(levels)
        for s in [e.shares[level]]
        for value in (s.value, s.low, s.high)
        if value is not None
    ]
    data = pd.DataFrame(rows, columns=["method", "place", "share"])
    grid = sns.relplot(
        data, kind="line", x="place", y="share", hue="method", style="method", height=3.6,
        aspect=1.4, err_style="bars", facet_kws={"legend_out": False},
        **frames.INTERVAL, **style.looks(data["method"]),
    )  # fmt: skip
    for axes in grid.axes.flat:
        axes.axhline(0, color=style.INK, lw=0.7)
        axes.set_xticks(range(len(levels)), levels)
    grid.set_axis_labels(factor.title, "share of the upgrade kept, percent")
    sns.move_legend(grid, "upper left", bbox_to_anchor=(1, 1), title=None)
    title = f"{numbers.metric(found.metric).label}: what is kept of the upgrade, by {factor.title}"
    about = f"{found.cells} cells, {found.seeds} seeds; bars: 95 % intervals over seeds"
    style.heading(grid.figure, title, f"{study.protocol} on {study.track}; {about}")
    return grid.figure
