"""Retrieval: CMC@1, CMC@5 and mAP@1.0; an item never finds itself."""

from dataclasses import dataclass
from typing import ClassVar

from benchmark.data.base import Evaluation
from benchmark.tasks import base
from benchmark.tasks.base import Embeddings, Options, RankingTask, SecondList, TaskResult


@dataclass(frozen=True)
class Retrieval(RankingTask):
    """Rank the gallery for every query item."""

    scores: ClassVar = ("cmc_at_1", "cmc_at_5", "map")

    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options,
        second: SecondList | None = None,
    ) -> TaskResult:  # fmt: skip
        """CMC and mAP, and how many queries have no match."""
        ranking = base.rank_items(query, gallery, items, options, second)
        return base.ranking_result(ranking, items.labels[items.query], len(items.gallery))
