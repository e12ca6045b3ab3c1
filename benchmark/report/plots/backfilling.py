"""Backfilling curves: a panel for the methods in one order, and one for the orders of each.

Beside the scores: flips against the unfilled gallery, and the gap between the groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmark.records.record import OrderCurves, Record
from benchmark.report import notes, numbers
from benchmark.report.backfilling import cheating, orders
from benchmark.report.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 2
_OFFLINE = "offline: old until all is refilled"
# A line's look says which kind of order it is: full ones can be deployed, dashed ones cheat.
_STYLES = {False: "-", True: (0, (4, 2))}

Curve = Sequence[float]


def curves(records: Sequence[Record], metric: str) -> dict[str, dict[str, list[float]]]:
    """Method -> order -> values at even points in percent, mean over seeds."""
    found: dict[str, dict[str, list[float]]] = {}
    by_method: dict[str, list[Record]] = {}
    for record in records:
        if record.orders:
            by_method.setdefault(record.method, []).append(record)
    for method, members in by_method.items():
        for order in orders(members):
            known = [_curve(r.orders.get(order), metric) for r in members]
            if all(known):
                found.setdefault(method, {})[order] = _mean([c for c in known if c])
    return found


def _curve(each: OrderCurves | None, metric: str) -> Curve | None:
    """The curve of a score, or of a key of the catalogue that has its own place in the record."""
    if each is None:
        return None
    beside = {
        "flips_positive": each.flips.positive,
        "flips_negative": each.flips.negative,
        "group_gap": each.groups.gap,
    }
    return each.curves.get(metric, beside.get(metric))


def _mean(seeds: Sequence[Curve]) -> list[float]:
    return [100 * sum(values) / len(values) for values in zip(*seeds, strict=True)]


def metrics(records: Sequence[Record]) -> list[str]:
    """Keys that have curves: scores, flips, and the gap between groups."""
    found = [each for r in records for each in r.orders.values()]
    scores = numbers.ordered(metric for each in found for metric in each.curves)
    beside = ("flips_positive", "flips_negative", "group_gap")
    return scores + [key for key in beside if any(_curve(each, key) for each in found)]


def draw(records: Sequence[Record], metric: str) -> Figure | None:
    """The figure; None where no method has a curve."""
    found = curves(records, metric)
    real = [m for m in found if m != "independent"]
    methods = [*real, *(m for m in found if m not in real)]
    if not methods:
        return None
    common = next(
        (o for o in ("random", *found[methods[0]]) if all(o in found[m] for m in methods)), None
    )
    shown = real or methods
    panels = len(shown) + (common is not None)
    rows = -(-panels // _COLUMNS)
    height = 1.35 + 2.6 * rows
    figure = style.figure(height, width=9.0)
    grid = figure.subplots(rows, _COLUMNS, squeeze=False, sharex=True, sharey=True)
    figure.subplots_adjust(
        left=0.075, right=0.76, top=1 - 0.95 / height, bottom=0.6 / height, wspace=0.13,
        hspace=0.28,
    )  # fmt: skip
    flat = [axes for line in grid for axes in line]
    names = orders(records)
    colours = {order: style.PALETTE[i % len(style.PALETTE)] for i, order in enumerate(names)}
    before = _offline(records, metric)
    if common is not None:
        looks = style.looks(methods)
        _panel(flat[0], f"Methods, {common} order", {}, before)
        for i, method in enumerate(methods):
            # Markers, at places of their own, also tell lines apart that lie on one another.
            curve = found[method][common]
            step = len(curve) // 5
            _line(
                flat[0], method, curve, color=looks[method][0], marker=looks[method][1],
                markersize=4, markevery=(i * step // len(methods), step),
            )  # fmt: skip
    for axes, method in zip(flat[panels - len(shown) :], shown, strict=False):
        lines = {
            order: (curve, colours[order], _STYLES[cheating(order)])
            for order, curve in found[method].items()
        }
        _panel(axes, f"{method}: orders", lines, before)
    about = numbers.metric(metric)
    _finish(figure, flat, panels, names, f"{about.label}, %", compared=common is not None)
    style.heading(figure, f"{about.label} while the gallery is refilled", notes.title(records))
    return figure


def _finish(
    figure: Figure,
    flat: Sequence[Axes],
    panels: int,
    names: Sequence[str],
    upright: str,
    *,
    compared: bool,
) -> None:
    """Axes' names, empty places, legends at the right."""
    for i, axes in enumerate(flat):
        axes.set_visible(i < panels)
        if i < panels and i + _COLUMNS >= panels:
            axes.set_xlabel("refilled, % of the gallery")
            axes.tick_params(labelbottom=True)
        if i % _COLUMNS == 0:
            axes.set_ylabel(upright)
    height = figure.get_size_inches()[1]
    top = 1 - 0.9 / height
    handles: dict[str, Any] = {}
    for axes in flat[1 if compared else 0 : panels]:
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    if compared:
        mine = dict(zip(*reversed(flat[0].get_legend_handles_labels()), strict=True))
        mine.pop(_OFFLINE, None)
        figure.add_artist(_legend(figure, mine, "Methods", top))
        top -= (0.42 + 0.2 * len(mine)) / height
    offline = handles.pop(_OFFLINE, None)
    handles = {name: handles[name] for name in names if name in handles}
    if offline is not None:
        handles["offline"] = offline
    figure.add_artist(_legend(figure, handles, "Orders (dashed: cheating)", top))


def _legend(figure: Figure, handles: Mapping[str, Any], title: str, top: float) -> Any:
    made = figure.legend(
        list(handles.values()), list(handles), loc="upper left", bbox_to_anchor=(0.765, top),
        title=title, alignment="left", frameon=False, fontsize=9, title_fontsize=9.5,
        handlelength=1.8, labelspacing=0.35,
    )  # fmt: skip
    made.remove()
    return made


def _offline(records: Sequence[Record], metric: str) -> Sequence[float] | None:
    """Before and after of a deployment that waits, mean over the seeds of one method."""
    found = [r for r in records if r.backfilling and metric in r.backfilling.offline]
    found = [r for r in found if r.method == found[0].method]
    if not found:
        return None
    ends = [r.backfilling.offline[metric] for r in found if r.backfilling]
    return _mean([(e.before, e.after) for e in ends])


def _panel(
    axes: Axes,
    title: str,
    lines: Mapping[str, tuple[Curve, str, Any]],
    offline: Sequence[float] | None,
) -> None:
    if offline is not None:
        axes.step(
            [0, 100, 100], [offline[0], offline[0], offline[1]], where="post",
            color=style.FAINT, linewidth=1.2, linestyle=":", label=_OFFLINE,
        )  # fmt: skip
    for name, (curve, colour, dashes) in lines.items():
        _line(axes, name, curve, color=colour, linestyle=dashes)
    axes.set_title(title, fontsize=10.5)
    axes.set_xlim(0, 100)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)


def _line(axes: Axes, name: str, curve: Curve, **look: Any) -> None:
    at = [100 * i / (len(curve) - 1) for i in range(len(curve))]
    axes.plot(at, curve, linewidth=1.5, label=name, **look)
