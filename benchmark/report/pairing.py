"""Two records compared query by query, from the details files beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from benchmark.errors import BenchError
from benchmark.records.record import Record
from benchmark.report.scores import Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmark.records.details import Details, QueryResults

Find = Callable[[Record], "Details | None"]


class PairedIntervals:
    """Intervals of differences, by a bootstrap that draws the same identities for all records.

    One resampling a record serves all its pairs: each difference's interval is the very one that
    :func:`benchmark.metrics.statistics.paired` gives.
    """

    def __init__(self, find: Find) -> None:
        self._find = find
        # By identity, since a record's fields are mappings; the record keeps its identity alive.
        self._details: dict[int, tuple[Record, Details | None]] = {}
        self._drawn: dict[tuple[int, str, str], NDArray[np.float64]] = {}

    def __call__(self, left: Record, right: Record, case: str, metric: str) -> Span | None:
        """The 95 % interval of left minus right; None where one has no results by query."""
        a, b = (self._answers(record, case, metric) for record in (left, right))
        if a is None or b is None or not _same_queries(a, b):
            return None
        drawn = [self._means(r, case, metric, x) for r, x in ((left, a), (right, b))]
        low, high = np.quantile(drawn[0] - drawn[1], [0.025, 0.975])
        return float(low), float(high)

    def _answers(self, record: Record, case: str, metric: str) -> QueryResults | None:
        if id(record) not in self._details:
            self._details[id(record)] = record, self._read(record)
        details = self._details[id(record)][1]
        return None if details is None else details.results.get((case, metric))

    def _read(self, record: Record) -> Details | None:
        """A damaged file counts as none; whoever reads records says so."""
        try:
            return self._find(record)
        except BenchError:
            return None

    def _means(
        self, record: Record, case: str, metric: str, answers: QueryResults
    ) -> NDArray[np.float64]:
        from benchmark.metrics.statistics import resampled

        key = (id(record), case, metric)
        if key not in self._drawn:
            self._drawn[key] = resampled(answers.values, answers.identity)
        return self._drawn[key]


def _same_queries(a: QueryResults, b: QueryResults) -> bool:
    return (
        a.n_queries == b.n_queries
        and np.array_equal(a.rows, b.rows)
        and np.array_equal(a.identity, b.identity)
    )
