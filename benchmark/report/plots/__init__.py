"""Plots of records, as PNG and SVG."""

from benchmark.report.plots.figures import KINDS, plot

__all__ = ["KINDS", "plot"]
