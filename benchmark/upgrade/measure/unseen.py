"""Ranks by strategies that need new vectors of all items, of which only a sample has some."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmark.contract.fusion import RankFusion, RescoredList
from benchmark.ranking.arrays import Ints
from benchmark.upgrade.measure.list_estimate import ListEstimate, PartlyEmbedded
from benchmark.upgrade.measure.windows import Window
from benchmark.upgrade.read.gallery import PassJob
from benchmark.upgrade.search.lists import ListResult
from benchmark.upgrade.search.strategies import NEW_LISTS, Strategy, StrategyPlan


class Unseen:
    """Estimates for the strategies that search a list of new vectors."""

    def __init__(self, known: PartlyEmbedded, plan: StrategyPlan) -> None:
        """Take what is known, and a plan with the lists."""
        names = {name for each in plan.strategies for name in each.uses if name in NEW_LISTS}
        self._lists = {name: ListEstimate(known, plan.lists[name]) for name in sorted(names)}

    @property
    def jobs(self) -> list[PassJob[Any]]:
        """Work of a pass over the gallery, whose results :meth:`take` needs."""
        return [job for each in self._lists.values() for job in each.jobs]

    def take(self, results: Sequence[Any]) -> None:
        """Take the results of the jobs, in their order."""
        for each, start in zip(self._lists.values(), range(0, len(results), 2), strict=True):
            each.take(*results[start : start + 2])

    def window(self, each: Strategy, found: Mapping[str, ListResult]) -> Window | None:
        """The window of a strategy of two lists; None for one of a single list.

        ``found`` are the lists of stored vectors.
        """
        if each.merge is None:
            return None
        first = found[each.uses[0]]
        return Window(self._of(each), first.rows[:, : each.merge.window], first.ranks)

    def ranks(self, each: Strategy, window: Window | None) -> Ints:
        """Ranks of the counted pairs in each draw, ``[DRAWS, pairs]``; 0 for those not found."""
        its = self._of(each)
        if window is None:
            return np.stack([its.ranks(draw) for draw in its.draws])
        if isinstance(each.merge, RescoredList):
            return window.rescored(its.draws)
        if isinstance(each.merge, RankFusion):
            return np.stack([window.fused(draw, each.merge) for draw in its.draws])
        raise ValueError(f"each: expected a strategy that is estimated, got {each.name}")

    def _of(self, each: Strategy) -> ListEstimate:
        return self._lists[next(name for name in each.uses if name in NEW_LISTS)]
