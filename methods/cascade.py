"""Cascade: the old index finds the first items, which the new model embeds and sorts anew."""

from dataclasses import dataclass

from benchmark.contract import Pairs, RescoredList, ResultLists, Trainer


@dataclass(frozen=True)
class Cascade(ResultLists):
    """The first N of the old query are rescored by their new vectors and the new query.

    One index, never rewritten; items that are filled have another, of new vectors. Each query costs
    N new embeddings, less what is kept of them. It finds nothing that the old model does not have
    among its first N. Here the new vectors that the gallery would get are used. Read in rebasis,
    docs/cascade-band.md at commit 094d3ee; N 200 is from there.
    """

    paper = "rebasis, docs/cascade-band.md: a cascade over a drifted index"
    fidelity = "paper"
    fitted = False
    indexes = 1
    variants = {
        "top-10": {"top": 10}, "top-20": {"top": 20}, "top-50": {"top": 50},
        "top-100": {"top": 100}, "top-500": {"top": 500}, "top-1000": {"top": 1000},
    }  # fmt: skip
    ranges = {"top": "[1, inf)"}

    top: int = 200  # N, the published configuration of rebasis

    @property
    def new_embeddings(self) -> int:
        """All that are rescored, where none was kept from an earlier query."""
        return self.top

    def fit_merge(self, pairs: Pairs, trainer: Trainer) -> RescoredList:
        """Nothing is fitted."""
        return RescoredList(self.top)
