"""Scores of strategies, query by query, of what can be searched: on the whole gallery, or a sample.

What needs new vectors of items that have none is told by :mod:`benchmark.upgrade.measure.unseen`.
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
from benchmark.ranking.engine import spans
from benchmark.upgrade.read.gallery import Block, Blocks
from benchmark.upgrade.search.lists import Found, Relevant, judged_of, score_pairs, search
from benchmark.upgrade.search.strategies import NEW_LISTS, Plan, Strategy

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
_ROOM = 1 << 20  # candidates that are joined at a time
_NOBODY = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Evaluated:
    """What a pass over a gallery says of strategies, by name.

    Attributes:
        scores: By relevance; nothing without judgements.
        nearest: Rows of the ten nearest, ``[n, 10]``; -1 where there are fewer.
        ranks: Of the judged pairs; 0 where one is not found.
        found: By name of a list.
    """

    scores: dict[str, Scores]
    nearest: dict[str, Ints]
    ranks: dict[str, Ints]
    found: dict[str, Found]

    def agreement(self, with_: str) -> dict[str, Values]:
        """Agreement of each strategy's ten nearest with those of one of them, ``[n]``."""
        expected = self.nearest[with_]
        k = min(cut_off(K), int((expected[0] >= 0).sum()))
        found = self.nearest.items()
        return {name: relevance.agreement(rows, expected, k) for name, rows in found}


def evaluate(
    blocks: Blocks, relevant: Relevant, known: Block, plan: Plan, strategies: Sequence[Strategy],
    distance: Any, *, keep_nearest: bool = False, new: bool = True,
) -> Evaluated:  # fmt: skip
    """Evaluate strategies on one gallery; arguments as of :func:`search`.

    Without ``new`` vectors of all items those that need them are left out, and only their lists of
    stored vectors are searched.
    """
    tops = dict.fromkeys((name for s in strategies for name in s.uses), K if keep_nearest else 0)
    for each in strategies:
        if each.merge is not None:
            for name in each.uses[: 1 + each.merge.searches]:
                tops[name] = max(tops[name], each.merge.window)
    lists = {
        name: replace(plan.lists[name], top=top)
        for name, top in tops.items() if new or name not in NEW_LISTS
    }  # fmt: skip
    found = search(blocks, relevant, known, lists, distance)
    out = Evaluated({}, {}, {}, found)
    for each in strategies:
        if each.embeds_gallery and not new:
            continue
        if each.merge is None:
            result = found[each.uses[0]]
            ranks, nearest = result.ranks, result.rows[:, :K]
        else:
            ranks, nearest = _merged(blocks, relevant, plan, each, found, distance)
        out.ranks[each.name], out.nearest[each.name] = ranks, nearest
        if len(ranks):
            out.scores[each.name] = scores_of(ranks, relevant)
    return out


def scores_of(ranks: Ints, relevant: Relevant) -> Scores:
    """All metrics of the ranks of the judged pairs."""
    judged = judged_of(ranks, relevant)
    return {key: score(judged) for key, score in METRICS.items()}


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
    ranks = _places(merged, rows, query, row)
    # Equal ones by row; NaN last.
    order = np.lexsort((rows, np.where(np.isnan(merged), np.inf, -merged)), axis=1)[:, :K]
    return ranks, np.take_along_axis(rows, order, axis=1)


def _places(merged: NDArray[Any], rows: Ints, query: Ints, row: Ints) -> Ints:
    """How many of its query's candidates score at least as high as each item; 0 for no candidate.

    ``merged`` and ``rows`` are of the candidates, ``[q, w]``, ``query`` and ``row`` of the items.
    """
    ranks = np.zeros(len(row), np.int64)
    for a, b in spans(len(row), max(1, _ROOM // max(rows.shape[1], 1))):
        its, scores = rows[query[a:b]] == row[a:b, None], merged[query[a:b]]
        own = scores[np.arange(b - a), its.argmax(axis=1)]
        ranks[a:b] = np.where(its.any(axis=1), (scores >= own[:, None]).sum(axis=1), 0)
    return ranks


def _joined(rows: Ints, scores: Floats, more: Ints, its: Floats) -> tuple[Ints, Floats, Floats]:
    """Candidates of two lists, each item once, with its score in either; NaN where it has none.

    They are by row, ``[n, w + v]``; those that are none, -1, come last.
    """
    n, w = rows.shape
    out = np.concatenate([rows, more], axis=1)
    a, b = (np.full(out.shape, np.nan, np.float32) for _ in range(2))
    a[:, :w], b[:, w:] = scores, its
    for first, last in spans(n, max(1, _ROOM // max(out.shape[1], 1))):
        here = slice(first, last)
        key = np.where(out[here] < 0, _NOBODY, out[here])
        order = np.argsort(key, axis=1, kind="stable")  # of the same item, the first list's before
        key, x, y = (np.take_along_axis(each, order, 1) for each in (key, a[here], b[here]))
        query, place = np.nonzero((key[:, 1:] == key[:, :-1]) & (key[:, 1:] < _NOBODY))
        y[query, place] = y[query, place + 1]
        key[query, place + 1] = _NOBODY
        none = key == _NOBODY
        x[none], y[none] = np.nan, np.nan
        order = np.argsort(key, axis=1, kind="stable")
        out[here] = np.take_along_axis(np.where(none, -1, key), order, 1)
        a[here], b[here] = (np.take_along_axis(each, order, 1) for each in (x, y))
    return out, a, b
