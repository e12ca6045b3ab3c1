"""Plots of records, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.records.record import Record
from benchmark.report import numbers, select
from benchmark.report.plots import style
from benchmark.report.table import group, make_table, slugs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("tradeoff", "bars", "curves", "backfilling")


def plot(
    records: Iterable[Record],
    folder: str | Path,
    metrics: str | Iterable[str] | None = None,
    *,
    kinds: str | Iterable[str] = KINDS,
    formats: str | Iterable[str] = style.FORMATS,
) -> list[Path]:
    """Draw records; the same records give the same SVG, byte for byte.

    Args:
        records: Any records; each protocol and track has its own plots.
        folder: Where the files go; made if missing.
        metrics: Keys, as a list or with commas between; ``all``; by default the main ones.
        kinds: ``tradeoff`` (cross-test against self-test), ``bars``, ``curves`` (training),
            ``backfilling`` (score while the gallery is refilled).
        formats: ``png``, ``svg``.

    Returns:
        The files, ``<protocol>-<track>-<kind>[-<metric>].<format>``.

    Raises:
        BenchError: If a metric, kind or format is unknown.
        OSError: If a file cannot be written.
    """
    chosen_kinds = numbers.chosen("kind", kinds, list(KINDS))
    chosen_formats = numbers.chosen("format", formats, list(style.FORMATS))
    asked = metrics if metrics is None or isinstance(metrics, str) else list(metrics)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    groups = group(records)
    with style.styled():
        for slug, members in zip(slugs(groups), groups, strict=True):
            for name, figure in _figures(members, asked, chosen_kinds):
                paths += style.save(figure, folder, f"{slug}-{name}", chosen_formats)
    return paths


def _figures(
    records: Sequence[Record], metrics: str | Iterable[str] | None, kinds: Sequence[str]
) -> Iterable[tuple[str, Figure]]:
    from benchmark.report.plots import backfilling, bars, curves, tradeoff

    cross, own = select.cross_case(records), select.self_case(records)
    table = make_table(records, metrics)
    for kind, draw in (("tradeoff", tradeoff.draw), ("bars", bars.draw)):
        for metric in table.metrics if kind in kinds else ():
            figure = draw(table, metric, cross, own)
            if figure is not None:
                yield f"{kind}-{metric}", figure
    if "curves" in kinds:
        figure = curves.draw(records)
        if figure is not None:
            yield "curves", figure
    known = backfilling.metrics(records) if "backfilling" in kinds else []
    for metric in known if metrics is None else [m for m in table.metrics if m in known]:
        figure = backfilling.draw(records, metric)
        if figure is not None:
            yield f"backfilling-{metric}", figure
