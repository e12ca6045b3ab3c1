"""Scores of strategies, query by query: measured where it can be, else estimated and corrected.

Strategies that read only stored vectors are measured on the whole gallery. What needs new vectors
of stored items, of which only a sample may exist, is estimated by the difference estimator of
survey statistics (Särndal et al., Model Assisted Survey Sampling, 1992, 6.3): items without a new
vector get a stand-in, and what stand-ins change is measured, query by query, on the held-out part
of the sample, where the truth is known, and taken away.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics import relevance
from benchmark.metrics.relevance import Judged
from benchmark.metrics.retrieval import cut_off
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.gallery import Block, Blocks
from benchmark.upgrade.search import Found, Relevant, judged_of, score_pairs, search
from benchmark.upgrade.strategies import Plan, Strategy

Values = NDArray[np.float64]
Scores = dict[str, Values]
"""Metric -> one value for each judged query."""

METRICS: Mapping[str, Callable[[Judged], Values]] = {
    "ndcg_at_10": lambda judged: relevance.ndcg(judged, 10),
    "recall_at_1": lambda judged: relevance.recall(judged, 1),
    "recall_at_10": lambda judged: relevance.recall(judged, 10),
    "recall_at_100": lambda judged: relevance.recall(judged, 100),
    "mrr_at_10": lambda judged: relevance.reciprocal_rank(judged, 10),
    "map": relevance.average_precision,
}
AGREEMENT, K = "agreement_at_10", 10


@dataclass(frozen=True)
class Evaluated:
    """What a pass over a gallery says of strategies, by name.

    Attributes:
        scores: By relevance; nothing without judgements.
        nearest: Rows of the ten nearest, ``[n, 10]``; -1 where there are fewer.
        ranks: Of the judged pairs; 0 where one is not found.
    """

    scores: dict[str, Scores]
    nearest: dict[str, Ints]
    ranks: dict[str, Ints]

    def agreement(self, with_: str) -> dict[str, Values]:
        """Agreement of each strategy's ten nearest with those of one of them, ``[n]``."""
        expected = self.nearest[with_]
        k = min(cut_off(K), int((expected[0] >= 0).sum()))
        found = self.nearest.items()
        return {name: relevance.agreement(rows, expected, k) for name, rows in found}


def evaluate(
    blocks: Blocks, relevant: Relevant, known: Block, plan: Plan, strategies: Sequence[Strategy],
    distance: Any, *, keep_nearest: bool = False,
) -> Evaluated:  # fmt: skip
    """Judge strategies on one gallery; arguments as of :func:`benchmark.upgrade.search.search`."""
    tops = dict.fromkeys((name for s in strategies for name in s.uses), K if keep_nearest else 0)
    for each in strategies:
        if each.merge is not None:
            for name in each.uses[: 1 + each.merge.searches]:
                tops[name] = max(tops[name], each.merge.window)
    lists = {name: replace(plan.lists[name], top=top) for name, top in tops.items()}
    found = search(blocks, relevant, known, lists, distance)
    out = Evaluated({}, {}, {})
    for each in strategies:
        if each.merge is None:
            result = found[each.uses[0]]
            ranks, nearest = result.ranks, result.rows[:, :K]
        else:
            ranks, nearest = _merged(blocks, relevant, plan, each, found, distance)
        out.ranks[each.name], out.nearest[each.name] = ranks, nearest
        if len(ranks):
            judged = judged_of(ranks, relevant)
            out.scores[each.name] = {key: score(judged) for key, score in METRICS.items()}
    return out


def _merged(
    blocks: Blocks, relevant: Relevant, plan: Plan, each: Strategy, found: Mapping[str, Found],
    distance: Any,
) -> tuple[Ints, Ints]:  # fmt: skip
    """Ranks of the judged pairs, and the ten nearest, of two lists as one."""
    merge, (first, second) = each.merge, each.uses
    if merge is None:
        raise ValueError("each: expected a strategy of two lists")
    window = merge.window
    rows, a = found[first].rows[:, :window], found[first].scores[:, :window]
    if merge.searches:
        its = found[second].rows[:, :window], found[second].scores[:, :window]
        rows, a, b = _joined(rows, a, *its)
    else:
        b = np.full(a.shape, np.nan, np.float32)
        query, place = np.nonzero(rows >= 0)
        b[query, place] = score_pairs(
            blocks, query, rows[query, place], plan.lists[second], distance
        )
    merged = merge.merge(a, b)
    query, row = relevant.query[relevant.judged], relevant.row[relevant.judged]
    ranks = np.zeros(len(row), np.int64)
    for i, (q, r) in enumerate(zip(query, row, strict=True)):
        own = merged[q][rows[q] == r]
        if len(own):
            ranks[i] = int((merged[q] >= own[0]).sum())
    # Equal ones by row; NaN last.
    order = np.lexsort((rows, np.where(np.isnan(merged), np.inf, -merged)), axis=1)[:, :K]
    return ranks, np.take_along_axis(rows, order, axis=1)


def _joined(rows: Ints, scores: Floats, more: Ints, its: Floats) -> tuple[Ints, Floats, Floats]:
    """Candidates of two lists, each item once, with its score in either; NaN where it has none."""
    n, width = len(rows), rows.shape[1] + more.shape[1]
    out = np.full((n, width), -1, np.int64)
    a, b = (np.full((n, width), np.nan, np.float32) for _ in range(2))
    for i in range(n):
        mine, other = rows[i][rows[i] >= 0], more[i][more[i] >= 0]
        both = np.union1d(mine, other)
        out[i, : len(both)] = both
        a[i, np.searchsorted(both, mine)] = scores[i, : len(mine)]
        b[i, np.searchsorted(both, other)] = its[i, : len(other)]
    return out, a, b
