"""Re-identification by Market-1501's rules: CMC@1, CMC@5, CMC@10, mAP and mINP across cameras."""

from dataclasses import dataclass
from typing import ClassVar

from benchmark.data.base import JUNK, Evaluation
from benchmark.metrics.retrieval import inverse_negative_penalty
from benchmark.tasks.base import (
    IDENTITIES,
    Embeddings,
    Options,
    RankingTask,
    SecondList,
    TaskResult,
    rank_lists,
    ranking_result,
)


@dataclass(frozen=True)
class Reidentification(RankingTask):
    """Rank the gallery for every query item, across cameras.

    For each query, items of its identity and its camera are left out, itself among them. Junk is
    left out for all. Distractors, identities without a query (Market-1501's identity 0), stay.
    Queries without a match are left out and counted.

    Source:
        Zheng et al., Scalable Person Re-identification: A Benchmark (Market-1501).
    """

    scores: ClassVar = ("cmc_at_1", "cmc_at_5", "cmc_at_10", "map", "minp")
    needs: ClassVar = ("cameras",)

    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options,
        second: SecondList | None = None,
    ) -> TaskResult:  # fmt: skip
        """CMC, mAP and mINP, and how many items are junk."""
        q, g = items.query, items.gallery
        junk = items.labels[g] == JUNK
        ranking = rank_lists(
            query, gallery, items, second, query_cameras=items.camera[q],
            gallery_cameras=items.camera[g], junk=junk, distance=options["distance"],
        )  # fmt: skip
        result = ranking_result(ranking, items.labels[q], len(g), (1, 5, 10), IDENTITIES)
        identity = result.identities["map"]
        result.add("minp", inverse_negative_penalty(ranking), identity, IDENTITIES)
        result.counts["n_junk"] = int(junk.sum())
        return result
