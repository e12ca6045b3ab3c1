"""Plots of records, as PNG and SVG; a kind of plot is a module with ``draw``."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from benchmark.records.record import Record
from benchmark.report import numbers, select
from benchmark.report.plots import backfilling, bars, curves, heatmap, style, tradeoff
from benchmark.report.scores import named_groups
from benchmark.report.tables import settings
from benchmark.report.tables.backfilling import curve_metrics

KINDS: dict[str, Callable[[Sequence[Record], str], Figure | None]] = {
    "tradeoff": tradeoff.draw,
    "bars": bars.draw,
    "curves": lambda records, _: curves.draw(records),
    "backfilling": backfilling.draw,
    "heatmap": heatmap.draw,
}
"""Kind -> drawing a metric of records of one protocol and track; None where that says nothing."""


def plot(
    records: Iterable[Record],
    folder: str | Path,
    metrics: select.Names = None,
    *,
    kinds: str | Iterable[str] = tuple(KINDS),
    formats: str | Iterable[str] = style.FORMATS,
) -> list[Path]:
    """Draw records; the same records give the same files, byte for byte.

    Args:
        records: Any; each protocol and track has its own plots.
        folder: Made if missing.
        metrics: Keys; of backfilling by default all that have curves.
        kinds: ``tradeoff`` (cross-test against self-test), ``bars``, ``curves`` (training),
            ``backfilling`` (score while the gallery is backfilled), ``heatmap`` (cross-tests of a
            sequence, and of all settings of a protocol).
        formats: ``png``, ``svg``.

    Returns:
        The files, ``<protocol>-<track>-<kind>[-<metric>].<format>``.

    Raises:
        BenchError: If a metric, kind or format is unknown.
        OSError: If a file cannot be written.
    """
    kinds = numbers.chosen("kind", kinds, list(KINDS))
    formats = numbers.chosen("format", formats, list(style.FORMATS))
    return style.save(_drawings(list(records), kinds, metrics), Path(folder), formats)


def _drawings(
    records: Sequence[Record], kinds: Iterable[str], metrics: select.Names
) -> Iterator[style.Drawing]:
    subjects = [(slug, members, kind) for slug, members in named_groups(records) for kind in kinds]
    for members in settings.setting_groups(records) if "heatmap" in kinds else ():
        first = members[0]
        slug = f"{first.protocol.partition(':')[0]}-{first.track}"
        subjects.append((slug + "-changed" * bool(first.changed), members, "heatmap"))
    select.require([members for _, members in named_groups(records)], metrics, None)
    for slug, members, kind in subjects:
        chosen = select.some(select.metrics, members, metrics)
        if kind == "curves":
            chosen = [""]  # of the loss
        elif kind == "backfilling" and metrics is None:
            chosen = curve_metrics(members)
        for metric in chosen:
            name = "-".join(filter(None, (slug, kind, metric)))
            yield name, partial(KINDS[kind], members, metric)
