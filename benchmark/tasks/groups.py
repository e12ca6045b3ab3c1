"""CMC@1 of each group of queries in the whole gallery, and the gap between the groups."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.data.base import Evaluation, group_key
from benchmark.metrics.intervals import mean_interval
from benchmark.metrics.retrieval import cmc
from benchmark.tasks.base import CLASSES, Embeddings, Options, Task, TaskResult, mean, rank_items


@dataclass(frozen=True)
class Groups(Task):
    """Rank the gallery for every query item, and average by the query's group.

    A group without a query that has a match is left out.

    Source:
        FCT appendix C (ranges of classes); FastFill section 5.3 (groups of people).
    """

    scores: ClassVar = ("group_",)
    needs: ClassVar = ("groups",)

    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options
    ) -> TaskResult:
        """CMC@1 of each group; with several groups their gap, best minus worst."""
        ranking = rank_items(query, gallery, items, options)
        hits, rows = cmc(ranking, 1), items.query[ranking.answered]
        group, label = items.group[rows], items.labels[rows]
        result = TaskResult()
        for i in np.unique(group):
            name = f"group_{group_key(items.group_names[i])}__cmc_at_1"
            group_hits = hits[group == i]
            result.scores[name] = mean(group_hits)
            result.intervals[name] = mean_interval(group_hits, label[group == i])
            result.over[name] = CLASSES
            result.counts[f"n_query_{name}"] = len(group_hits)
        if len(result.scores) > 1:
            values = list(result.scores.values())
            result.scores["group_gap"] = max(values) - min(values)
        return result
