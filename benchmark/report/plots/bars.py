"""Cross-test and self-test of each method as bars with intervals, beside the bounds."""

from collections.abc import Sequence

import seaborn as sns
from matplotlib.figure import Figure

from benchmark.records.record import Record
from benchmark.report import numbers, select
from benchmark.report.plots import frames, style


def draw(records: Sequence[Record], metric: str) -> Figure | None:
    """Draw a panel for each test, a dot for each of several seeds; None without a score."""
    tests = {select.cross_case(records): "cross-test", select.self_case(records): "self-test"}
    data = frames.means(records, metric, list(tests))
    if data.empty:
        return None
    methods = list(dict.fromkeys(data["method"]))
    lit = frames.highlighted(records, metric)
    height = 1.0 + 0.27 * len(methods)  # of the heads of both panels, and of bars
    grid = sns.catplot(
        frames.ends(data), kind="bar", x="value", y="method", col="case", hue="method",
        order=methods, palette=style.looks(methods, lit)["palette"], saturation=1,
        width=0.7, height=height, aspect=4.2 / height, err_kws={"color": style.INK, "lw": 1.2},
        **frames.INTERVAL,
    )  # fmt: skip
    bounds = frames.bounds(records, metric)
    for case, axes in grid.axes_dict.items():
        rows = data[data["case"] == case]
        sns.stripplot(
            rows.explode("seeds", ignore_index=True), x="seeds", y="method", order=methods,
            jitter=False, size=3.5, color="white", edgecolor=style.INK, linewidth=0.7, zorder=5,
            ax=axes,
        )  # fmt: skip
        right = axes.get_yaxis_transform()
        for method, text in zip(rows["method"], rows["text"], strict=True):
            axes.text(1.02, methods.index(method), text, va="center", fontsize=9, transform=right)
        for name, value in bounds.items():
            if name.startswith("lower") == (tests[case] == "cross-test"):
                words = f"{name} {value:.1f}"
                axes.axvline(value, ls=style.BOUNDS[name], lw=1.2, color=style.INK, label=words)
        axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 1), ncols=2)
        axes.set_title(f"{tests[case]}, {case}", pad=24)
        axes.set_xlim(left=0)
    grid.set_axis_labels(frames.label(metric), "").tick_params(axis="y", length=0)
    grid.figure.subplots_adjust(wspace=0.42)
    dots = "; dots: single seeds" if data["seeds"].any() else ""
    title = f"{numbers.metric(metric).label}: cross-test and self-test of each method"
    style.heading(grid.figure, title, frames.subtitle(records, [metric]) + dots)
    return grid.figure
