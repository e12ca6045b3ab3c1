"""Ranks by strategies that need new vectors of all items, of which only a sample has some."""

from collections.abc import Mapping

import numpy as np

from benchmark.contract.fusion import RankFusion, RescoredList
from benchmark.ranking.arrays import Ints
from benchmark.upgrade.measure.list_estimate import Known, ListEstimate
from benchmark.upgrade.measure.windows import Window
from benchmark.upgrade.search.lists import Found
from benchmark.upgrade.search.strategies import NEW_LISTS, Plan, Strategy


class Unseen:
    """Estimates for the strategies that search a list of new vectors."""

    def __init__(self, known: Known, plan: Plan) -> None:
        """Take what is known, and a plan with the lists."""
        self.known, self.plan = known, plan
        self._lists: dict[str, ListEstimate] = {}

    def ranks(self, each: Strategy, found: Mapping[str, Found]) -> Ints:
        """Ranks of the judged pairs in each draw, ``[DRAWS, pairs]``; 0 where one is not found.

        ``found`` are the lists of stored vectors, with the windows of merged ones.
        """
        name = next(name for name in each.uses if name in NEW_LISTS)
        its = self._list(name)
        if each.merge is None:
            return np.stack([its.ranks(draw) for draw in its.draws])
        first = found[each.uses[0]]
        rows = first.rows[:, : each.merge.window]
        window = Window(its, rows, first.ranks)
        if isinstance(each.merge, RescoredList):
            return window.rescored(its.draws)
        if isinstance(each.merge, RankFusion):
            return np.stack([window.fused(draw, each.merge) for draw in its.draws])
        raise ValueError(f"each: expected a strategy that is estimated, got {each.name}")

    def _list(self, name: str) -> "ListEstimate":
        if name not in self._lists:
            self._lists[name] = ListEstimate(self.known, self.plan.lists[name])
        return self._lists[name]
