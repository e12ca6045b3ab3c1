"""Ways to make two result lists one: by raw scores, by ranks, by scaled scores, one after another.

One definition serves the adapters, the harness and :mod:`benchmark.upgrade`.
"""

import numpy as np
import torch
from torch import nn

from benchmark.contract.lists import Scores, TwoLists, ranks
from benchmark.ranking.score_scale import Scale


class RankMerge(TwoLists):
    """Items sorted by their scores as they are; a filled item has its new score.

    Example:
        >>> RankMerge().merge(np.array([[0.9, 0.8]]), np.array([[np.nan, 0.1]]))
        array([[0.9, 0.1]])
    """

    places_by = "score"
    fused_by = "second"

    def merge(self, first: Scores, second: Scores) -> Scores:
        """The second list's score where an item is in it."""
        return np.where(np.isnan(second), first, second)


class RankFusion(TwoLists):
    """Sum over the lists of 1 / (k + rank).

    Of lists without a common item it makes one in which they take turns, whatever ``k`` is.

    Source: Cormack et al., Reciprocal Rank Fusion, SIGIR 2009.

    Example:
        >>> RankFusion().merge(np.array([[0.9, 0.8]]), np.array([[0.1, np.nan]])).round(4)
        array([[0.0328, 0.0161]])
    """

    places_by = "rank"
    fused_by = "ranks"

    def __init__(self, window: int = 1000, k: float = 60.0) -> None:
        """``k``: 60 in Cormack et al., section 2."""
        super().__init__(window)
        self.k = k

    def merge(self, first: Scores, second: Scores) -> Scores:
        """An item in one list only has that list's part."""
        parts = [1.0 / (self.k + ranks(scores)) for scores in (first, second)]
        total = np.nansum(parts, axis=0)
        return np.where(np.isnan(parts[0]) & np.isnan(parts[1]), np.nan, total)


class ScoreMerge(TwoLists):
    """The mean of the scores that an item has, the first list's on the scale of the second.

    The scale is a monotone map, ``knots`` places from ``low`` on, ``step`` apart; ``values`` has
    their images.
    """

    places_by = "score"
    fused_by = "mean"

    def __init__(
        self, window: int = 1000, knots: int = 2, low: float = 0.0, step: float = 1.0
    ) -> None:
        """The identity, until ``values`` are set."""
        super().__init__(window)
        self.low, self.step = low, step
        places = torch.arange(knots, dtype=torch.float64) * step + low
        self.values = nn.Parameter(places, requires_grad=False)

    @classmethod
    def of(cls, scale: Scale, window: int = 1000) -> "ScoreMerge":
        """Build it for a scale."""
        merge = cls(window, len(scale.values), scale.low, scale.step)
        with torch.no_grad():
            merge.values.copy_(torch.from_numpy(scale.values))
        return merge

    @property
    def scale(self) -> Scale:
        """The first list's scores on the scale of the second."""
        return Scale.checked(self.low, self.step, self.values.numpy())

    def merge(self, first: Scores, second: Scores) -> Scores:
        """An item in one list only has that list's score."""
        known = ~np.isnan(first)
        scaled = np.full(first.shape, np.nan)
        scaled[known] = self.scale(first[known])
        both = 0.5 * (scaled + second)
        return np.where(np.isnan(both), np.where(known, scaled, second), both)


class RescoredList(TwoLists):
    """The first ``window`` of one list, sorted anew by the scores of the other.

    What the first list has behind them follows in its order. Items of the second list alone, which
    have been embedded already, are sorted in among the first.
    """

    searches = False
    fused_by = "window"

    def __init__(self, window: int = 200) -> None:
        """``window``: items that are rescored; 200 as in rebasis, docs/cascade-band.md."""
        super().__init__(window)

    def merge(self, first: Scores, second: Scores) -> Scores:
        """Places counted from the front, and negative."""
        place = ranks(first)
        behind = place > self.window
        in_front = ranks(np.where(behind, np.nan, second))
        last = in_front.shape[1] + place
        return -np.where(behind, last, in_front)
