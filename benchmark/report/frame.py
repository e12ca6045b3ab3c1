"""Records as a pandas frame, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from benchmark.records.record import Record
from benchmark.report.notes import changed_words
from benchmark.report.select import cross_case

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "protocol", "track", "method", "seed", "status", "case", "metric",
    "value", "low", "high", "gain", "compatible", "changed", "diverged",
)  # fmt: skip


def frame(records: Iterable[Record]) -> pd.DataFrame:
    """A row for each record, case and metric.

    A record whose method is not applicable has one row, without case and metric.

    Returns:
        Columns as in ``COLUMNS``; areas and worst points of backfilling curves have the case
        ``new/old by random``; ``gain`` and ``compatible`` on the rows of the cross-test (queries of
        the last generation in a gallery of the first; with text queries the other way), null
        elsewhere; ``changed``: what was set of protocol, track and methods, as ``key=value``, comma
        between; ``diverged``: a training did, so that scores say nothing of the method.
    """
    import pandas as pd

    rows = [
        (*row, changed_words(record), bool(record.diverged))
        for record in records
        for row in _rows(record)
    ]
    floats = dict.fromkeys(("value", "low", "high", "gain"), "float64")
    types = {**floats, "seed": "int64", "compatible": "boolean", "diverged": "bool"}
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(types)


def _rows(record: Record) -> Iterator[tuple[Any, ...]]:
    head = (record.protocol, record.track, record.method, record.seed, record.status)
    cross = cross_case([record])
    if not record.scores:
        yield (*head, *[None] * 7)
    for case, scores in record.scores.items():
        for metric, value in scores.items():
            span = record.intervals.get(case, {}).get(metric) or (None, None)
            verdict = record.update_gain.get(metric), record.compatible.get(metric)
            yield (*head, case, metric, value, *span, *(verdict if case == cross else (None, None)))
    for order, curves in record.orders.items():
        about = record.backfilling
        case = f"{about.new}/{about.old} by {order}" if about else ""
        parts = {"area_": curves.area, "worst_": curves.worst, "share_above_": curves.share_above}
        for prefix, scores in parts.items():
            for metric, value in scores.items():
                key = metric if prefix == "area_" else prefix + metric
                span = curves.intervals.get(key) or (None, None)
                yield (*head, case, prefix + metric, value, *span, None, None)
