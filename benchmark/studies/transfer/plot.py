"""Plots of transfer: tau of each pair of places with its ceiling, and agreement of pairs by gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from benchmark.config.grouping import grouped
from benchmark.report import numbers
from benchmark.report.colours import GREY, PALETTE
from benchmark.report.plots import style
from benchmark.studies.transfer.compare import GapShare, Transfer, gap_shares
from benchmark.studies.transfer.orders import TransferRules

_COLOURS = {"transfers": "#0072B2", "does not transfer": "#D55E00", "open": GREY}
_MARKERS = {"transfers": "o", "does not transfer": "X", "open": "D"}


def drawings(found: Sequence[Transfer], rules: TransferRules) -> Iterator[style.Drawing]:
    """Correlations by metric and value, ``transfer-<metric>[-area]``, and ``transfer-gaps``."""
    measured = (each for each in found if each.tau.value is not None and not each.left.published)
    by_score = grouped(((each.left.metric, each.left.value), each) for each in measured)
    for (metric, value), known in by_score.items():
        name = f"transfer-{metric}" + ("" if value == "cross-test" else f"-{value}")
        yield name, partial(draw_taus, known, rules)
    if shares := gap_shares(found, rules):
        yield "transfer-gaps", partial(draw_gaps, shares, rules)


def draw_taus(found: Sequence[Transfer], rules: TransferRules) -> Figure:
    """A line a pair: tau-b with its interval, the ceiling as a tick, the threshold as a line."""
    figure, axes = plt.subplots(figsize=(6.0, 0.8 + 0.3 * len(found)))
    for y, t in enumerate(reversed(found)):
        colour = _COLOURS[t.verdict]
        if t.tau.low is not None and t.tau.high is not None:
            axes.plot([t.tau.low, t.tau.high], [y, y], color=colour, lw=1.6, solid_capstyle="butt")
        assert t.tau.value is not None  # left out above
        axes.plot(t.tau.value, y, marker=_MARKERS[t.verdict], color=colour, ls="", ms=6)
        if t.ceiling is not None:
            axes.plot(t.ceiling, y, marker="|", color=style.INK, ls="", ms=11, mew=1.6)
    axes.axvline(rules.tau, color=GREY, ls=":", lw=1)
    axes.axvline(0, color=GREY, lw=0.7)
    names = [f"{t.left.protocol}: {t.left.place}, {t.right.place}" for t in reversed(found)]
    axes.set_yticks(range(len(found)), names)
    axes.set(xlim=(-1.05, 1.05), ylim=(-0.6, len(found) - 0.4), xlabel="Kendall's tau-b")
    handles = [
        mpl.lines.Line2D([], [], color=_COLOURS[v], marker=_MARKERS[v], lw=1.6, label=v)
        for v in dict.fromkeys(t.verdict for t in found)
    ]
    if any(t.ceiling is not None for t in found):
        handles.append(
            mpl.lines.Line2D(
                [], [], color=style.INK, marker="|", ls="", ms=11, mew=1.6,
                label="what seeds alone allow",
            )
        )  # fmt: skip
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    first = found[0].left
    label = numbers.metric(first.metric).label
    what = label if first.value == "cross-test" else f"{label}, area while backfilling"
    below = f"95 % intervals over seeds and methods; dotted: {rules.tau:g}, the least that counts."
    style.heading(figure, f"{what}: is the order of methods the same?", below)
    return figure


def draw_gaps(shares: Sequence[GapShare], rules: TransferRules) -> Figure:
    """Share of pairs in the same order against their gap, a line for each two kinds of images."""
    figure, axes = plt.subplots(figsize=(6.0, 3.4))
    names = [_gap(low, high) for low, high in dict.fromkeys((s.low, s.high) for s in shares)]
    kinds = list(dict.fromkeys((s.source, s.target) for s in shares))
    for i, (source, target) in enumerate(kinds):
        mine = [s for s in shares if (s.source, s.target) == (source, target)]
        at = [(x, 100 * s.share, s.pairs) for x, s in enumerate(mine) if s.share is not None]
        axes.plot(
            [x for x, *_ in at], [y for _, y, _ in at], color=PALETTE[i % 8],
            marker=style.MARKERS[i % len(style.MARKERS)], label=f"{source} to {target}",
        )  # fmt: skip
    axes.axhline(50, color=GREY, lw=0.7)
    axes.axhline(100 * rules.agreement, color=GREY, ls=":", lw=1)
    axes.set_xticks(range(len(names)), names)
    axes.set(ylim=(-2, 102), xlabel="gap of two methods, points", ylabel="pairs that agree, %")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    below = "Share of pairs of methods that another track has in the same order; 50 % is chance."
    style.heading(figure, "Which differences transfer?", below)
    return figure


def _gap(low: float, high: float | None) -> str:
    return f"{100 * low:g}+" if high is None else f"{100 * low:g} to {100 * high:g}"
