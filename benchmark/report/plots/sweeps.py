"""Plots of a sweep: score against the first swept value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.config.sweep import Axis
from benchmark.report import numbers
from benchmark.report.derived import AVG
from benchmark.report.plots import style
from benchmark.report.sweeps import Line, SweepTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_sweep(
    table: SweepTable, folder: Path, formats: Iterable[str] = style.FORMATS
) -> list[Path]:
    """A figure for each metric: score against the first swept field.

    Returns:
        The files, ``sweep-<field>-<metric>.<format>``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with style.styled():
        for metric in dict.fromkeys(key for key, _ in table.columns):
            name = f"sweep-{table.axes[0].key.replace(':', '+')}-{metric}"
            paths += style.save(_figure(table, metric), folder, name, formats)
    return paths


def _figure(table: SweepTable, metric: str) -> Figure:
    figure = style.figure(4.6)
    axes = figure.subplots()
    style.margins(axes, 0.75, 2.1, 0.6, 0.75)
    series: dict[tuple[str, tuple[Any, ...]], list[Line]] = {}
    for line in table.lines:
        series.setdefault((line.method, line.values[1:]), []).append(line)
    looks = style.looks([_name(*key) for key in series])
    cases = [case for key, case in table.columns if key == metric]
    for key, lines in series.items():
        colour, marker = looks[_name(*key)]
        for case in cases:
            _draw(axes, table, lines, (metric, case), (colour, marker, _name(*key), cases))
    _finish(axes, table, metric, cases)
    style.heading(figure, f"{label(metric)} against {table.axes[0].key}", table.title)
    return figure


def _name(method: str, others: tuple[Any, ...]) -> str:
    known = [str(v) for v in others if v is not None]
    return f"{method} ({', '.join(known)})" if known else method


def _draw(
    axes: Axes, table: SweepTable, lines: Sequence[Line], column: tuple[str, str], look: Any
) -> None:
    colour, marker, name, cases = look
    places = _places(table.axes[0])
    if len(cases) == 3 and column[1] == cases[0] and name.partition(" ")[0] != "independent":
        return  # the lower bound is everybody's
    style_of = dict(zip(cases, (":", "-", "--"), strict=False))
    found = [(line.values[0], line.cells.get(column)) for line in lines]
    xs, ys = [], []
    for value, score in found:
        if score is None or score.value is None:
            continue
        # A method that the field does not concern is a level line.
        at = [places[value]] if value is not None else [min(places.values()), max(places.values())]
        xs += at
        ys += [100 * score.value] * len(at)
    if xs:
        label = name if column[1] in ("", cases[len(cases) // 2]) else None
        dots = marker if len(found) > 1 else ""
        axes.plot(
            xs, ys, style_of[column[1]], color=colour, marker=dots, label=label, linewidth=1.6
        )


def _places(axis: Axis) -> dict[Any, float]:
    """Numbers stand where they are, names one beside the other."""
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in axis.values)
    return {v: float(v) if numeric else float(i) for i, v in enumerate(axis.values)}


def _finish(axes: Axes, table: SweepTable, metric: str, cases: Sequence[str]) -> None:
    places = _places(table.axes[0])
    axes.set_xticks(list(places.values()), [str(v) for v in places])
    axes.set_xlabel(table.axes[0].key)
    axes.set_ylabel(f"{label(metric)}, %")
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    handles, labels = axes.get_legend_handles_labels()
    if len(cases) == 3:
        for case, dash in zip(cases, (":", "-", "--"), strict=True):
            handles += axes.plot([], [], dash, color=style.FAINT)
            labels.append(case)
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.02, 1.0), frameon=False,
                fontsize=9.5)  # fmt: skip


def label(metric: str) -> str:
    """What the score's axis is called."""
    return "AVG" if metric == AVG else numbers.metric(metric).label
