"""Training curves: a small panel for each trained part, a line for each seed."""

from collections.abc import Sequence

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from benchmark.records.record import Record
from benchmark.report import colours, notes
from benchmark.report.plots import style


def frame(records: Sequence[Record]) -> pd.DataFrame:
    """The losses of each epoch; parts that several methods share appear once.

    Returns:
        Columns ``part``, ``method`` (the first that has the part), ``seed``, ``epoch`` from 1,
        ``loss`` (NaN where a training diverged).
    """
    found: dict[tuple[str, int], tuple[str, Sequence[float | None]]] = {}
    for record in sorted(records, key=lambda r: (r.method != "independent", r.method, r.seed)):
        for title, parts in record.curves.items():
            for part, curve in parts.items():
                found.setdefault(
                    (notes.stage_name(title, part), record.seed), (record.method, curve.loss)
                )
    rows = [
        (part, method, seed, epoch, loss)
        for (part, seed), (method, losses) in found.items()
        for epoch, loss in enumerate(losses, 1)
    ]
    data = pd.DataFrame(rows, columns=["part", "method", "seed", "epoch", "loss"])
    return data.astype({"loss": float})


def draw(records: Sequence[Record]) -> Figure | None:
    """Draw the losses; None where nothing was trained, or nothing without diverging."""
    data = frame(records)
    data = data[data["loss"].notna().groupby(data["part"]).transform("any")]
    if data.empty:
        return None
    grid = sns.relplot(
        data, kind="line", x="epoch", y="loss", col="part", col_wrap=4, hue="method", units="seed",
        estimator=None, palette=style.looks(data["method"])["palette"], legend=False, marker="o",
        markersize=3, height=1.7, aspect=1.35, facet_kws={"sharex": False, "sharey": False},
    )  # fmt: skip
    grid.set_titles("{col_name}", size=9).refline(y=0, color=colours.GREY, lw=0.5)
    for axes in grid.axes.flat:
        axes.locator_params(axis="x", integer=True, nbins=5)
        axes.locator_params(axis="y", nbins=4)
    several = "; a line for each seed" if data["seed"].nunique() > 1 else ""
    style.heading(grid.figure, "Training loss of each part", notes.title(records) + several)
    return grid.figure
