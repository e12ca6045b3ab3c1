"""Plots of factors: the share of the upgrade that each method keeps, by level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from benchmark.report import numbers
from benchmark.report.plots import style
from benchmark.studies.factors.design import FactorStudy
from benchmark.studies.factors.model import Factors
from benchmark.studies.lengths.plot import APART, share_lines


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
    grid = share_lines(data, levels, factor.title)
    title = f"{numbers.metric(found.metric).label}: what is kept of the upgrade, by {factor.title}"
    about = f"{found.cells} cells, {found.seeds} seeds; bars: 95 % intervals over seeds"
    style.heading(grid.figure, title, f"{study.protocol} on {study.track}; {about}")
    return grid.figure
