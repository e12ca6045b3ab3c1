"""Plots of factors: the share of the upgrade that each method keeps, by level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from matplotlib.figure import Figure

from benchmark.report import numbers
from benchmark.report.plots import style
from benchmark.studies.factors.model import Factors, FactorStudy
from benchmark.studies.lengths.plot import share_lines


def drawings(study: FactorStudy, found: Sequence[Factors]) -> Iterator[style.Drawing]:
    """A figure for each metric and factor, ``factors-<factor>-<metric>``."""
    for each in found:
        for name in study.factors:
            yield f"factors-{name}-{each.metric}", partial(draw, study, each, name)


def draw(study: FactorStudy, found: Factors, name: str) -> Figure | None:
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
