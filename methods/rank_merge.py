"""Rank-merge: old queries over unfilled items, new ones over filled items, sorted by distance."""

from dataclasses import dataclass

from benchmark import contract
from benchmark.contract import Pairs, ResultLists, Trainer


@dataclass(frozen=True)
class RankMerge(ResultLists):
    """Both models run on a query; the lists are merged by raw scores, and nothing is fitted.

    Raw scores of two models differ in scale: where one model's cosines are all higher, its side
    wins. The paper was not found: this follows a summary of it (rebasis, docs/related-work.md at
    commit 094d3ee). Its metric-compatible training and its reverse-query map are not built here;
    for the latter see the ``query`` variants of the maps.
    """

    paper = "Seo et al., Online Backfilling with No Regret for Large-Scale Image Retrieval, 2023"
    fidelity = "second-hand"
    fitted = False

    def fit_merge(self, pairs: Pairs, trainer: Trainer) -> contract.RankMerge:
        """Scores as they are."""
        return contract.RankMerge()
