"""Plots of lengths: each method's share of the upgrade against the length of training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from benchmark.config.registry import is_control
from benchmark.report import numbers
from benchmark.report.plots import frames, style
from benchmark.studies.lengths.shares import Lengths

APART = 0.04
"""Distance of two methods, as a part of the way between two levels."""


def plot_lengths(
    found: Sequence[Lengths], folder: Path, formats: Iterable[str] = style.FORMATS
) -> list[Path]:
    """Draw a figure for each protocol, track, seed and metric with a share.

    Returns:
        The files, ``lengths-<protocol>-<track>-<metric>.<format>``.
    """
    return style.save(((each.slug, partial(draw, each)) for each in found), folder, formats)


def frame(found: Lengths) -> pd.DataFrame:
    """Columns ``method``, ``place``, ``share`` in percent: mean and ends in rows of their own.

    Places are those of the lengths, the methods beside each other so that no bar hides another.
    """
    methods = [method for method in found.shares if not is_control(method)]
    rows = [
        (method, found.lengths.index(n) + APART * (i - (len(methods) - 1) / 2), 100 * value)
        for i, method in enumerate(methods)
        for n, share in found.shares[method].items()
        for value in (share.value, share.low, share.high)
        if value is not None
    ]
    return pd.DataFrame(rows, columns=["method", "place", "share"])


def draw(found: Lengths) -> Figure | None:
    """A line for each method; None without a share."""
    data = frame(found)
    if data.empty:
        return None
    grid = share_lines(data, [str(n) for n in found.lengths], "times as long")
    label = numbers.metric(found.metric).label
    title = f"{label}: what is kept of the upgrade, by length of training"
    place = f"{found.protocol} on {found.track}, seed {found.seed}"
    style.heading(grid.figure, title, f"{place}; bars: 95 % intervals over classes")
    return grid.figure


def share_lines(data: pd.DataFrame, levels: Sequence[str], about: str) -> sns.FacetGrid:
    """Draw shares as :func:`frame` has them, a line for each method; places are of levels."""
    grid = sns.relplot(
        data, kind="line", x="place", y="share", hue="method", style="method", height=3.6,
        aspect=1.4, err_style="bars", facet_kws={"legend_out": False},
        **frames.INTERVAL, **style.looks(data["method"]),
    )  # fmt: skip
    for axes in grid.axes.flat:
        axes.axhline(0, color=style.INK, lw=0.7)
        axes.set_xticks(range(len(levels)), levels)
    grid.set_axis_labels(about, "share of the upgrade kept, percent")
    sns.move_legend(grid, "upper left", bbox_to_anchor=(1, 1), title=None)
    return grid
