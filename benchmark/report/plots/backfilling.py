"""Backfilling curves: a panel for the methods in one order, and one for the orders of each.

Beside the scores: flips against the gallery before backfilling, and the gap between the groups.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.metrics.backfill_orders import is_oracle
from benchmark.records.record import Record
from benchmark.report import colours, notes, numbers
from benchmark.report.plots import frames, style
from benchmark.report.tables.backfilling import OFFLINE, curves, orders

_READING = (
    "offline: old queries in the old gallery until all is backfilled; dashed orders: oracles, "
    "which sort by what only backfilling tells"
)


def frame(records: Sequence[Record], metric: str) -> pd.DataFrame:
    """All curves of a metric in percent.

    Returns:
        Columns ``panel`` (``methods by <order>``, where all have one, or the method), ``line``
        (the method, ``by <order>``, or ``offline``), ``share`` that is backfilled, ``score``.
    """
    by_method = curves(records, metric)
    methods = sorted(by_method, key=lambda method: method == "independent")
    panels: dict[str, dict[str, Sequence[float]]] = {}
    common = [order for order in orders(records) if all(order in by_method[m] for m in methods)]
    if methods and common:
        panels[f"methods by {common[0]}"] = {m: by_method[m][common[0]] for m in methods}
    for method in [m for m in methods if m != "independent"] or methods:
        panels[method] = {f"by {order}": curve for order, curve in by_method[method].items()}
    rows = [
        (panel, line, 100 * i / (len(curve) - 1), score)
        for panel, lines in panels.items()
        for line, curve in lines.items()
        for i, score in enumerate(curve)
    ]
    of = {panel: [panel] if panel in by_method else methods for panel in panels}
    rows += [(p, OFFLINE, *step) for p in panels for step in _offline(records, metric, of[p])]
    return pd.DataFrame(rows, columns=["panel", "line", "share", "score"])


def _offline(
    records: Sequence[Record], metric: str, methods: Sequence[str]
) -> list[tuple[float, float]]:
    """Corners of a deployment that waits, mean over the seeds; empty if unknown.

    Of the independent model, or else of the only method of a panel: others end elsewhere.
    """
    known: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        if record.backfilling and (end := record.backfilling.offline.get(metric)):
            known.setdefault(record.method, []).append((end.before, end.after))
    own = known.get(methods[0]) if len(methods) == 1 else None
    ends = known.get("independent") or own
    if not ends:
        return []
    before, after = (100 * sum(values) / len(values) for values in zip(*ends, strict=True))
    return [(0, before), (100, before), (100, after)]


def draw(records: Sequence[Record], metric: str) -> Figure | None:
    """Draw the curves; None where no method has one."""
    data = frame(records, metric)
    if data.empty:
        return None
    lit = _best(data, numbers.metric(metric).higher_is_better is not False)
    looks = _looks(list(data["line"].unique()), orders(records), lit)
    grid = sns.relplot(
        data, kind="line", x="share", y="score", col="panel", col_wrap=3, hue="line", style="line",
        hue_order=list(looks["palette"]), style_order=list(looks["palette"]), sort=False,
        palette=looks["palette"], dashes=looks["dashes"], estimator=None, height=2.3, aspect=1.15,
        facet_kws={"sharey": False, "xlim": (0, 100), "legend_out": False},
    )  # fmt: skip
    grid.set_titles("{col_name}")
    grid.set_axis_labels("backfilled, % of the gallery", frames.label(metric).replace(", ", ",\n"))
    _write_legend(grid)
    title = f"{numbers.metric(metric).label} while the gallery is backfilled"
    style.heading(grid.figure, title, f"{notes.title(records)}; {_READING}")
    return grid.figure


def _write_legend(grid: Any) -> None:
    """Methods, which are the lines of the first panel, then orders, those of each other panel."""
    lines = {text.get_text(): line for line, text in
             zip(grid.legend.legend_handles, grid.legend.texts, strict=True)}  # fmt: skip
    orders = [name for name in lines if name.startswith("by ") or name == OFFLINE]
    heads = {"first panel:": [n for n in lines if n not in orders], "other panels:": orders}
    shown = [(head, Line2D([], [], alpha=0)) for head in heads]
    parts = ([head, *((name, lines[name]) for name in names)]
             for head, names in zip(shown, heads.values(), strict=True) if names)  # fmt: skip
    labels, handles = zip(*(each for part in parts for each in part), strict=True)
    grid.legend.remove()
    axes = grid.axes.flat[min(2, len(grid.axes.flat) - 1)]
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.05, 1.1))


def _best(data: pd.DataFrame, higher: bool) -> list[str]:
    """The methods with the best areas in the order that all have; at most eight."""
    areas = data[data["panel"].str.startswith("methods by ")].groupby("line")["score"].mean()
    ranked = areas.sort_values(ascending=not higher, kind="stable").index
    names = [line for line in map(str, ranked) if line != OFFLINE]
    return [name for name in names if colours.colour(name) != colours.GREY][: colours.MOST]


def _looks(
    lines: Sequence[str], names: Sequence[str], lit: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Seaborn's ``palette`` and ``dashes`` of methods, then orders, then the offline deployment."""
    methods = [line for line in lines if not line.startswith("by ") and line != OFFLINE]
    looks = style.looks(methods, lit)
    for i, name in enumerate(names):
        is_lit = i < colours.MOST
        looks["palette"][f"by {name}"] = colours.PALETTE[i] if is_lit else colours.REST
        looks["dashes"][f"by {name}"] = colours.DASHES[1] if is_oracle(name) else ""
    if OFFLINE in lines:
        looks["palette"][OFFLINE], looks["dashes"][OFFLINE] = colours.GREY, colours.DASHES[2]
    return looks
