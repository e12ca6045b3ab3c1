"""Backfilling curves: a panel for the methods in one order, and one for the orders of each.

Beside the scores: flips against the gallery before backfilling, and the gap between the groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from benchmark.metrics.backfill_orders import is_oracle
from benchmark.records.record import OrderCurves, Record
from benchmark.report import notes, numbers
from benchmark.report.plots import frames, style
from benchmark.report.tables.backfilling import orders

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_BESIDE = ("flips_positive", "flips_negative", "group_gap")
_READING = (
    "offline: old queries in the old gallery until all is backfilled; dashed orders: oracles, "
    "which sort by what only backfilling tells"
)


def curves(records: Sequence[Record], metric: str) -> dict[str, dict[str, list[float]]]:
    """Method -> order -> values at even points in percent, mean over seeds."""
    found: dict[str, dict[str, list[float]]] = {}
    for method in dict.fromkeys(record.method for record in records if record.orders):
        members = [r for r in records if r.orders and r.method == method]
        for order in orders(members):
            known = [_curve(r.orders[order], metric) for r in members if order in r.orders]
            if all(known) and len(known) == len(members):
                found.setdefault(method, {})[order] = _mean(known)
    return found


def _curve(each: OrderCurves, metric: str) -> Sequence[float]:
    """The curve of a score, or of a key that has its own place in the record; empty without."""
    beside = (each.flips.positive, each.flips.negative, each.groups.gap)
    return each.curves.get(metric) or dict(zip(_BESIDE, beside, strict=True)).get(metric, ())


def _mean(seeds: Sequence[Sequence[float]]) -> list[float]:
    return [100 * sum(values) / len(values) for values in zip(*seeds, strict=True)]


def metrics(records: Sequence[Record]) -> list[str]:
    """Keys that have curves: scores, flips, and the gap between groups."""
    found = [each for record in records for each in record.orders.values()]
    scores = numbers.ordered(metric for each in found for metric in each.curves)
    return scores + [key for key in _BESIDE if any(_curve(each, key) for each in found)]


def frame(records: Sequence[Record], metric: str) -> pd.DataFrame:
    """All curves of a metric in percent.

    Returns:
        Columns ``panel`` (``methods by <order>``, where all have one, or the method), ``line``
        (the method, ``by <order>``, or ``offline``), ``share`` that is backfilled, ``score``.
    """
    import pandas as pd

    found = curves(records, metric)
    methods = sorted(found, key=lambda method: method == "independent")
    panels: dict[str, dict[str, Sequence[float]]] = {}
    common = [order for order in orders(records) if all(order in found[m] for m in methods)]
    if methods and common:
        panels[f"methods by {common[0]}"] = {m: found[m][common[0]] for m in methods}
    for method in [m for m in methods if m != "independent"] or methods:
        panels[method] = {f"by {order}": curve for order, curve in found[method].items()}
    rows = [
        (panel, line, 100 * i / (len(curve) - 1), score)
        for panel, lines in panels.items()
        for line, curve in lines.items()
        for i, score in enumerate(curve)
    ]
    rows += [(panel, "offline", *step) for panel in panels for step in _offline(records, metric)]
    return pd.DataFrame(rows, columns=["panel", "line", "share", "score"])


def _offline(records: Sequence[Record], metric: str) -> list[tuple[float, float]]:
    """Corners of a deployment that waits, mean over the seeds of one method; empty if unknown."""
    found = [r for r in records if r.backfilling and metric in r.backfilling.offline]
    ends = [
        (r.backfilling.offline[metric].before, r.backfilling.offline[metric].after)
        for r in found
        if r.backfilling and r.method == found[0].method
    ]
    before, after = _mean(ends) or (0, 0)
    return [(0, before), (100, before), (100, after)] if ends else []


def draw(records: Sequence[Record], metric: str) -> Figure | None:
    """Draw the curves; None where no method has one."""
    import seaborn as sns

    data = frame(records, metric)
    if data.empty:
        return None
    looks = _looks(data["line"].unique(), orders(records))
    grid = sns.relplot(
        data, kind="line", x="share", y="score", col="panel", col_wrap=3, hue="line", style="line",
        hue_order=list(looks["palette"]), style_order=list(looks["palette"]), sort=False,
        palette=looks["palette"], dashes=looks["dashes"], estimator=None, height=2.3, aspect=1.15,
        facet_kws={"sharey": False, "xlim": (0, 100)},
    )  # fmt: skip
    grid.set_titles("{col_name}")
    grid.set_axis_labels("backfilled, % of the gallery", frames.label(metric))
    sns.move_legend(grid, "upper left", bbox_to_anchor=(1, 1), title=None)
    title = f"{numbers.metric(metric).label} while the gallery is backfilled"
    style.heading(grid.figure, title, f"{notes.title(records)}; {_READING}")
    return grid.figure


def _looks(lines: Iterable[str], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Seaborn's ``palette`` and ``dashes`` of methods, then orders, then the offline deployment."""
    found = style.looks(line for line in lines if not line.startswith("by ") and line != "offline")
    for i, name in enumerate(names):
        again, place = divmod(i, len(style.PALETTE))
        found["palette"][f"by {name}"] = style.PALETTE[place]
        found["dashes"][f"by {name}"] = style.DASHES[1 if is_oracle(name) else 2 * again]
    found["palette"]["offline"], found["dashes"]["offline"] = style.GREY, style.DASHES[2]
    return found
