"""CMC@1 of each group of queries among all stored items, and the gap between the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmark.tasks.base import Options, TaskResult

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from benchmark.data.base import Evaluation

NEEDS = ("groups",)
"""What a dataset must offer for it."""

SCORES = ("group_",)
"""What it scores, by the whole name or how it begins."""


def evaluate(
    query: NDArray[float32], gallery: NDArray[float32], items: Evaluation, options: Options
) -> TaskResult:
    """Rank the stored items for every query item, and average by the query's group.

    Args:
        query: Vectors of all items by the asking model, ``[n, d]``.
        gallery: Vectors of all items as stored, ``[n, d]``.
        items: Which of them ask, which are stored, their classes and groups.
        options: ``distance``.

    Note:
        A group without a query that has a match is left out.

    Source:
        FCT appendix C (ranges of classes); FastFill section 5.3 (groups of people).
    """
    from benchmark.metrics.retrieval import cmc
    from benchmark.metrics.statistics import bootstrap
    from benchmark.ranking.ranks import rank

    q, g = items.query, items.gallery
    ranking = rank(
        query[q], gallery[g], items.labels[q], items.labels[g],
        query_ids=items.ids[q], gallery_ids=items.ids[g], distance=options["distance"],
    )  # fmt: skip
    hits, group = cmc(ranking, 1), items.group[q][ranking.answered]
    result = TaskResult()
    for i in np.unique(group):
        name, mine = score_key(items.group_names[i]), hits[group == i]
        result.scores[name] = float(np.mean(mine, dtype=np.float64))
        low, high = bootstrap(mine)
        result.intervals[name] = (float(low), float(high))
        result.counts[f"n_query_{name}"] = len(mine)
    if len(result.scores) > 1:
        values = list(result.scores.values())
        result.scores["group_gap"] = max(values) - min(values)
    return result


def score_key(group: str) -> str:
    """The metric of a group.

    >>> score_key("Box drawing")
    'group_box_drawing__cmc_at_1'
    """
    return f"group_{'_'.join(group.lower().split())}__cmc_at_1"
