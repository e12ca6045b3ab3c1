"""Re-identification by Market-1501's rules: CMC@1, CMC@5, CMC@10, mAP and mINP across cameras.

It names its scores as retrieval does, so a protocol asks one of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmark.tasks.base import Options, TaskResult

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from benchmark.data.base import Evaluation

NEEDS = ("cameras",)
"""What a dataset must offer for it."""

SCORES = ("cmc_at_1", "cmc_at_5", "cmc_at_10", "map", "minp")
"""What it scores, by the whole name or how it begins."""

JUNK = -1
"""The label of images that count neither for nor against (Market-1501's identity -1)."""


def evaluate(
    query: NDArray[float32], gallery: NDArray[float32], items: Evaluation, options: Options
) -> TaskResult:
    """Rank the stored items for every query item, across cameras.

    Args:
        query: Vectors of all items by the asking model, ``[n, d]``.
        gallery: Vectors of all items as stored, ``[n, d]``.
        items: Which of them ask, which are stored, their identities and cameras.
        options: ``distance``.

    Note:
        For each query, items of its identity and its camera are left out, itself among them. Junk
        is left out for all. Distractors, identities that nobody asks for (Market-1501's identity
        0), stay. Queries without a match are left out and counted.

    Source:
        Zheng et al., Scalable Person Re-identification: A Benchmark (Market-1501).
    """
    from benchmark.metrics.retrieval import average_precision, cmc, inverse_negative_penalty
    from benchmark.ranking.ranks import rank

    q, g = items.query, items.gallery
    junk = items.labels[g] == JUNK
    ranking = rank(
        query[q], gallery[g], items.labels[q], items.labels[g],
        query_cameras=items.camera[q], gallery_cameras=items.camera[g], junk=junk,
        distance=options["distance"],
    )  # fmt: skip
    result = TaskResult()
    who = items.labels[q][ranking.answered]
    for k in (1, 5, 10):
        result.add(f"cmc_at_{k}", cmc(ranking, k), identity=who)
    result.add("map", average_precision(ranking), identity=who)
    result.add("minp", inverse_negative_penalty(ranking), identity=who)
    result.counts.update(
        n_query=len(q), n_gallery=len(g), n_query_without_match=ranking.n_excluded,
        n_junk=int(junk.sum()),
    )  # fmt: skip
    return result
