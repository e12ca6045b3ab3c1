"""Heatmaps of cross-tests: each update of a sequence, or each setting of a protocol, by method."""

from collections.abc import Iterator, Sequence

import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from benchmark.records.record import Record
from benchmark.report import colours, notes, numbers, select
from benchmark.report.plots import frames, style
from benchmark.report.tables import settings

_READING = "mean over seeds; colour: difference to the older generation by itself, blue is better"


def frame(records: Sequence[Record], metric: str) -> pd.DataFrame:
    """Cross-tests of a sequence of three generations or more, or of several settings.

    Returns:
        Columns ``row`` (the case, by the number of updates, or the setting), ``method``, ``score``
        and ``change``: less the self-test of the case's older generation. Percent for shares.
    """
    found = []
    for row, members, case in _rows(records):
        older = min(case.split()[0].split("/"), key=select.generations(members).index)
        own = f"{older}/{older}"
        scores = frames.means(members, metric, [case, own])
        scores = scores.pivot(index="method", columns="case", values="score")
        scores = scores.reindex(columns=[case, own])
        # Of the first generation the shared lower bound, whatever a method has in its place.
        if own == select.lower_case(members):
            scores[own] = frames.bounds(members, metric).get("lower bound")
        columns = scores.index, scores[case], scores[case] - scores[own]
        found += [(row, *each) for each in zip(*columns, strict=True)]
    return pd.DataFrame(found, columns=["row", "method", "score", "change"]).dropna()


def _rows(records: Sequence[Record]) -> Iterator[tuple[str, Sequence[Record], str]]:
    """Name, records and case of each row."""
    if len({record.protocol for record in records}) > 1:
        for title, members in settings.by_setting(records).items():
            yield title, members, select.cross_case(members)
        return
    names = select.generations(records)
    known = {case for record in records for case in record.scores}
    for steps in range(1, len(names) if len(names) > 2 else 1):
        for old, new in zip(names, names[steps:], strict=False):
            cases = f"{new}/{old}", f"{new}/{old} direct"
            yield from ((case, records, case) for case in cases if case in known)


def draw(records: Sequence[Record], metric: str) -> Figure | None:
    """Draw the heatmap; None for two generations in one setting."""
    data = frame(records, metric)
    if data.empty:
        return None
    about = numbers.metric(metric)
    methods = sorted(data["method"].unique(), key=lambda m: (m == "independent", m))
    grid = data.pivot(index="row", columns="method")  # [("score", method), ("change", method)]
    grid = grid.loc[data["row"].unique()]
    rivals = data.loc[data["method"].map(colours.colour) != colours.GREY, "change"]
    reach = max(1.0, rivals.abs().max())
    figure, axes = plt.subplots(figsize=(1 + 0.55 * len(methods), 0.6 + 0.27 * len(grid)))
    sns.heatmap(
        grid["change"][methods], annot=grid["score"][methods], fmt=".1f", vmin=-reach, vmax=reach,
        cmap="vlag" if about.higher_is_better is False else "vlag_r", linewidths=0.5, ax=axes,
        cbar_kws={"label": "difference" + (" (points)" if about.unit == "share" else "")},
    )  # fmt: skip
    axes.set(xlabel="", ylabel="")
    axes.tick_params(length=0)
    axes.set_xticklabels(methods, rotation=45, ha="right", rotation_mode="anchor")
    several = len({record.protocol for record in records}) > 1
    below = settings.title(records) if several else notes.title(records)
    style.heading(figure, f"Cross-tests: {frames.label(metric)}", f"{below}; {_READING}")
    return figure
