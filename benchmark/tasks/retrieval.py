"""Retrieval: CMC@1, CMC@5 and mAP@1.0; an item never finds itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmark.data.base import Evaluation
from benchmark.metrics.retrieval import average_precision, cmc
from benchmark.tasks.base import Embeddings, Options, Task, TaskResult, rank_items


@dataclass(frozen=True)
class Retrieval(Task):
    """Rank the gallery for every query item."""

    scores: ClassVar = ("cmc_at_1", "cmc_at_5", "map")

    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options
    ) -> TaskResult:
        """CMC and mAP, and how many queries have no match."""
        ranking = rank_items(query, gallery, items, options)
        result = TaskResult()
        identity = items.labels[items.query][ranking.answered]
        for k in (1, 5):
            result.add(f"cmc_at_{k}", cmc(ranking, k), identity=identity)
        result.add("map", average_precision(ranking), identity=identity)
        result.counts.update(
            n_query=len(items.query), n_gallery=len(items.gallery),
            n_query_without_match=ranking.n_excluded,
        )  # fmt: skip
        return result
