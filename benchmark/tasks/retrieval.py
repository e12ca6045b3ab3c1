"""Retrieval: CMC@1, CMC@5 and mAP@1.0; an item never finds itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmark.tasks.base import Options, TaskResult

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from benchmark.data.base import Evaluation

SCORES = ("cmc_at_1", "cmc_at_5", "map")
"""What it scores, by the whole name or how it begins."""


def evaluate(
    query: NDArray[float32], gallery: NDArray[float32], items: Evaluation, options: Options
) -> TaskResult:
    """Rank the stored items for every query item.

    Args:
        query: Vectors of all items by the asking model, ``[n, d]``.
        gallery: Vectors of all items as stored, ``[n, d]``.
        items: Which of them ask, which are stored, and their classes.
        options: ``distance``.
    """
    from benchmark.metrics.retrieval import average_precision, cmc
    from benchmark.ranking.ranks import rank

    q, g = items.query, items.gallery
    ranking = rank(
        query[q], gallery[g], items.labels[q], items.labels[g],
        query_ids=items.ids[q], gallery_ids=items.ids[g], distance=options["distance"],
    )  # fmt: skip
    result = TaskResult()
    who = items.labels[q][ranking.answered]
    for k in (1, 5):
        result.add(f"cmc_at_{k}", cmc(ranking, k), identity=who)
    result.add("map", average_precision(ranking), identity=who)
    result.counts.update(n_query=len(q), n_gallery=len(g), n_query_without_match=ranking.n_excluded)
    return result
