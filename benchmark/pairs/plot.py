"""The plot of real models: what a rotation of the queries keeps, beside the gain of the upgrade."""

from collections.abc import Sequence
from functools import partial

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from benchmark.pairs import analysis
from benchmark.pairs.records import PairRecord
from benchmark.report.plots import style


def drawings(records: Sequence[PairRecord]) -> list[style.Drawing]:
    """``pairs-gain``; nothing where no upgrade was measured."""
    some = analysis.upgrades(records)
    return [("pairs-gain", partial(draw, some))] if some else []


def draw(some: Sequence[PairRecord]) -> Figure:
    """A point for each cell, a marker for each corpus."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    corpora = list(dict.fromkeys(r.corpus.title for r in some))
    for title, marker in zip(corpora, style.MARKERS, strict=False):
        its = [r for r in some if r.corpus.title == title]
        x = [analysis.gain(r) for r in its]
        y = [100 * analysis.kept(r, analysis.ROTATION) for r in its]
        axes.plot(x, y, marker, label=title, alpha=0.8)
    ends = axes.get_xlim()
    xs = [ends[0] + (ends[1] - ends[0]) * k / 50 for k in range(51)]
    axes.plot(xs, [100 / max(x, 1e-9) for x in xs], color=style.INK, lw=0.7, label="the old model")
    axes.set_xlabel("re-embedding's nDCG@10 over the old model's")
    axes.set_ylabel("kept by rotated queries (%)")
    axes.legend(frameon=False)
    figure.tight_layout()
    return figure
