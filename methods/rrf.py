"""RRF: reciprocal rank fusion of the old query's list and the new query's list."""

from dataclasses import dataclass

from benchmark.contract import Pairs, RankFusion, ResultLists, Trainer


@dataclass(frozen=True)
class RRF(ResultLists):
    """An item scores the sum over the lists of 1 / (k + rank), ranks from 1.

    Meant for two lists of the same items. While a gallery is backfilled the lists have no common
    item: then they take turns, whatever ``k`` is, and about half of the results come from each,
    however many items are filled. That is the control which a merge by scores has to beat. The
    formula and the 60 were read in the documentation of databases, not in the paper.
    """

    paper = (
        "Cormack, Clarke and Büttcher, Reciprocal Rank Fusion outperforms Condorcet and individual "
        "Rank Learning Methods, SIGIR 2009"
    )
    fidelity = "second-hand"
    fitted = False
    ranges = {"k": "[0, inf)", "window": "[1, inf)"}

    k: float = 60.0  # Cormack et al., section 2
    # where indexes are searched; the harness ranks whole lists
    window: int = 1000  # ours: items taken from each list

    def fit_merge(self, pairs: Pairs, trainer: Trainer) -> RankFusion:
        """Nothing is fitted."""
        return RankFusion(self.window, self.k)
