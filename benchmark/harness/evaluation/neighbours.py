"""The nearest gallery items of some queries, for pages that show them."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.data.base import Evaluation
from benchmark.harness.evaluation.cases import Case
from benchmark.metrics.similarity import unit
from benchmark.records.details import Nearest, kept_rows

_QUERIES = 128  # of which pages choose a dozen: fixed, broken and typical ones
_ITEMS = 5

Ints = NDArray[np.int64]
Vectors = NDArray[np.float32]


class NearestItems:
    """Gathers the nearest items of the same queries, case by case."""

    def __init__(self, items: Evaluation, distance: str, cases: Sequence[str]) -> None:
        self.items, self.distance, self.cases = items, distance, cases
        self.queries = items.query[kept_rows(len(items.query), _QUERIES)]
        self._found: dict[str, Ints] = {}

    def add(self, case: Case) -> None:
        """Keep a case if it is one of those looked at; an item never finds itself."""
        if case.name not in self.cases or case.swapped:
            return
        items, gallery = self.items, self.items.gallery
        own = items.ids[self.queries][:, None] == items.ids[gallery]
        scores = self._scores(case.query, case.gallery)
        if case.second is not None:
            both = scores, self._scores(case.second.query, case.second.gallery)
            scores = case.second.merge.merge(*(np.where(own, np.nan, each) for each in both))
        scores[own] = -np.inf
        count = min(_ITEMS, len(gallery) - 1)
        self._found[case.name] = gallery[np.argsort(-scores, axis=1, kind="stable")[:, :count]]

    def _scores(self, query: Vectors, gallery: Vectors) -> Vectors:
        vectors = query[self.queries], gallery[self.items.gallery]
        return _scores(*(unit(each, self.distance) for each in vectors))

    def found(self) -> Nearest | None:
        """Neighbours gathered; ``None`` without queries, or if there is nothing to find."""
        kept = {name: self._found[name] for name in self.cases if name in self._found}
        nearest = np.stack([*kept.values()]) if kept else np.empty((0, 0, 0), np.int64)
        if not nearest.size:
            return None
        labels = self.items.labels
        right = labels[nearest] == labels[self.queries][:, None]
        return Nearest(tuple(kept), self.queries, nearest, right)


@cache
def _libraries() -> Any:
    """The libraries of products: looking for them takes longer than many a product."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _scores(query: Vectors, gallery: Vectors) -> Vectors:
    """Nearness of each item to each query, ``[n_query, n_gallery]``: larger is nearer."""
    # Sums would depend on the number of threads in their last bits, and so would the order of ties.
    with _libraries().limit(limits=1):
        return 2 * query @ gallery.T - np.einsum("ij,ij->i", gallery, gallery)
