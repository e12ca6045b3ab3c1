"""Training curves: a small panel for each trained part, a line for each seed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmark.records.record import Record
from benchmark.report import notes
from benchmark.report.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3


def panels(records: Sequence[Record]) -> dict[str, dict[int, Sequence[float]]]:
    """Panel -> seed -> loss of each epoch; parts that several methods share appear once."""
    found: dict[str, dict[int, Sequence[float]]] = {}
    for record in sorted(records, key=lambda r: (r.method != "independent", r.method, r.seed)):
        for title, parts in record.curves.items():
            for part, curve in parts.items():
                loss = _losses(curve)
                if loss:
                    found.setdefault(name(title, part), {}).setdefault(record.seed, loss)
    return found


def name(title: str, part: str) -> str:
    """A stage's title as a reader would say it.

    Example:
        >>> name("train old model (seed 0)", "model"), name("fit fct (seed 1)", "map")
        ('old model', 'fct: map')
    """
    words = re.sub(r"\s*\(seed \d+\)$", "", title)
    words = re.sub(r"^(train|fit)\s+", "", words)
    return words if part == "model" else f"{words}: {part}"


def _losses(curve: Any) -> list[float]:
    loss = curve.loss
    return [float(x) if x is not None else math.nan for x in loss]


def draw(records: Sequence[Record]) -> Figure | None:
    """The figure; None where nothing was trained."""
    found = panels(records)
    if not found:
        return None
    columns = min(_COLUMNS, len(found))
    rows = -(-len(found) // columns)
    height = 0.85 + 1.95 * rows
    figure = style.figure(height)
    grid = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(
        left=0.075,
        right=0.985,
        top=1 - 0.95 / height,
        bottom=0.55 / height,
        wspace=0.28,
        hspace=0.62,
    )
    seeds = sorted({record.seed for record in records})
    colours = {s: style.PALETTE[i % len(style.PALETTE)] for i, s in enumerate(seeds)}
    flat = [axes for line in grid for axes in line]
    for i, axes in enumerate(flat):
        if i >= len(found):
            axes.set_visible(False)
            continue
        title = list(found)[i]
        _panel(axes, title, found[title], colours)
        if i + columns >= len(found):
            axes.set_xlabel("epoch")
    style.heading(figure, "Training loss of each trained part", _below(records))
    return figure


def _below(records: Sequence[Record]) -> str:
    several = len({record.seed for record in records}) > 1
    return notes.title(records) + (", a line for each seed" if several else "")


def _panel(
    axes: Axes, title: str, seeds: Mapping[int, Sequence[float]], colours: Mapping[int, str]
) -> None:
    for seed, loss in seeds.items():
        mark = "o" if len(loss) == 1 else ""
        epochs = range(1, len(loss) + 1)
        axes.plot(epochs, loss, color=colours[seed], linewidth=1.6, marker=mark)
    axes.set_title(title, fontsize=10.5)
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="x", integer=True, nbins=5)
    axes.locator_params(axis="y", nbins=4)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
