"""One ranking of two lists: reciprocal rank fusion, and rescoring what one of them has found."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.contract.lists import Scores, TwoLists, ranks


@dataclass(frozen=True)
class RankFusion(TwoLists):
    """Sum over the lists of 1 / (k + rank).

    Source: Cormack et al., Reciprocal Rank Fusion, SIGIR 2009.

    Example:
        >>> RankFusion().merge(np.array([[0.9, 0.8]]), np.array([[0.1, np.nan]])).round(4)
        array([[0.0328, 0.0161]])
    """

    k: float = 60.0  # Cormack et al., section 2

    def merge(self, first: Scores, second: Scores) -> Scores:
        """An item in one list only has that list's part."""
        parts = [1.0 / (self.k + ranks(scores)) for scores in (first, second)]
        total = np.nansum(parts, axis=0)
        return np.where(np.isnan(parts[0]) & np.isnan(parts[1]), np.nan, total)


@dataclass(frozen=True)
class Cascade(TwoLists):
    """The first ``window`` of one list, sorted anew by the scores of the other.

    The items behind them are not in the result.
    """

    searches: ClassVar[bool] = False

    window: int = 200  # ours

    def merge(self, first: Scores, second: Scores) -> Scores:
        """The second list's scores of what the first has found."""
        return np.where(np.isnan(first), np.nan, second)
