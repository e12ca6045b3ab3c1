"""Plots of shares of the upgrade that methods keep: by length of training, by level of a factor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from benchmark.config.registry import is_control
from benchmark.metrics.estimate import Estimate
from benchmark.report import numbers
from benchmark.report.plots import frames, style
from benchmark.studies.factors.model import Factors, FactorStudy
from benchmark.studies.lengths.shares import Lengths

T = TypeVar("T")
APART = 0.04
"""Distance of two methods, as a part of the way between two levels."""


def lengths_drawings(found: Sequence[Lengths]) -> list[style.Drawing]:
    """A figure for each protocol, track, seed and metric with a share."""
    return [(each.slug, partial(draw_lengths, each)) for each in found]


def draw_lengths(found: Lengths) -> Figure | None:
    """A line for each method; None without a share."""
    shares = {method: of for method, of in found.shares.items() if not is_control(method)}
    grid = share_lines(shares, found.lengths, "times as long")
    if grid is None:
        return None
    label = numbers.metric(found.metric).label
    title = f"{label}: what is kept of the upgrade, by length of training"
    place = f"{found.protocol} on {found.track}, seed {found.seed}"
    style.heading(grid.figure, title, f"{place}; bars: 95 % intervals over classes")
    return grid.figure


def share_lines(
    shares: Mapping[str, Mapping[T, Estimate]], levels: Sequence[T], about: str
) -> sns.FacetGrid | None:
    """Draw a line of shares by level for each method, side by side; None without a share."""
    rows = [
        (method, levels.index(level) + APART * (i - (len(shares) - 1) / 2), 100 * value)
        for i, (method, of) in enumerate(shares.items())
        for level, share in of.items()
        for value in (share.value, share.low, share.high)
        if value is not None
    ]
    data = pd.DataFrame(rows, columns=["method", "place", "share"])
    if data.empty:
        return None
    grid = sns.relplot(
        data, kind="line", x="place", y="share", hue="method", style="method", height=3.6,
        aspect=1.4, err_style="bars", facet_kws={"legend_out": False},
        **frames.INTERVAL, **style.looks(data["method"]),
    )  # fmt: skip
    for axes in grid.axes.flat:
        axes.axhline(0, color=style.INK, lw=0.7)
        axes.set_xticks(range(len(levels)), [*map(str, levels)])
    grid.set_axis_labels(about, "share of the upgrade kept, percent")
    sns.move_legend(grid, "upper left", bbox_to_anchor=(1, 1), title=None)
    return grid


def factors_drawings(study: FactorStudy, found: Sequence[Factors]) -> Iterator[style.Drawing]:
    """A figure for each metric and factor, ``factors-<factor>-<metric>``."""
    for each in found:
        for name in study.factors:
            yield f"factors-{name}-{each.metric}", partial(draw_factor, study, each, name)


def draw_factor(study: FactorStudy, found: Factors, name: str) -> Figure | None:
    """A line for each method; the levels side by side."""
    factor = study.factors[name]
    shares = {e.method: e.shares for e in found.effects if e.factor == name}
    grid = share_lines(shares, [*factor.levels.values()], factor.title)
    if grid is None:
        return None
    title = f"{numbers.metric(found.metric).label}: what is kept of the upgrade, by {factor.title}"
    about = f"{found.cells} cells, {found.seeds} seeds; bars: 95 % intervals over seeds"
    style.heading(grid.figure, title, f"{study.protocol} on {study.track}; {about}")
    return grid.figure
