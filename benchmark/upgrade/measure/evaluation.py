"""Scores of strategies, query by query, of what can be searched: on the whole gallery, or a sample.

Strategies that need new vectors of items that have none are estimated by
:mod:`benchmark.upgrade.measure.unseen`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.contract.fusion import RankFusion, RescoredList
from benchmark.contract.lists import TwoLists
from benchmark.metrics import relevance, retrieval
from benchmark.metrics.kept_share import Scored, measured
from benchmark.metrics.relevance import RelevantRanks
from benchmark.metrics.retrieval import cut_off
from benchmark.ranking.arrays import Floats, Ints, Values
from benchmark.ranking.engine import spans
from benchmark.upgrade.read.gallery import Blocks, EmbeddedSample, GalleryBlock, one_pass
from benchmark.upgrade.read.qrels import RelevantPairs
from benchmark.upgrade.read.request import REEMBED
from benchmark.upgrade.search.lists import ListResult, ListsSearch, PairScores, relevant_ranks
from benchmark.upgrade.search.strategies import NEW_LISTS, Strategy, StrategyPlan

Scores = dict[str, Values]
"""Metric -> one value for each evaluated query."""

METRICS: Mapping[str, Callable[[RelevantRanks], Values]] = {
    "ndcg_at_10": lambda found: relevance.ndcg(found, 10),
    "recall_at_1": lambda found: relevance.recall(found, 1),
    "recall_at_10": lambda found: relevance.recall(found, 10),
    "recall_at_100": lambda found: relevance.recall(found, 100),
    "mrr_at_10": lambda found: retrieval.reciprocal_rank(found, 10),
    "map": retrieval.average_precision,
}
AGREEMENT, K = "agreement_at_10", 10
_ROOM = 1 << 20  # candidates that are joined at a time
_NOBODY = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Evaluated:
    """Results of strategies on a gallery, by name."""

    scores: dict[str, Scores] = field(default_factory=dict)  # nothing without judgements
    nearest: dict[str, Ints] = field(default_factory=dict)  # rows, [n, 10]; -1: there are fewer
    ranks: dict[str, Ints] = field(default_factory=dict)  # of counted pairs; 0: one is not found

    def agreement(self, with_: str, k: int) -> dict[str, Values]:
        """Agreement of each strategy's ``k`` nearest with those of one of them, ``[n]``."""
        expected = self.nearest[with_]
        k = min(cut_off(k), int((expected[0] >= 0).sum()))
        found = self.nearest.items()
        return {name: relevance.agreement(rows, expected, k) for name, rows in found}


class StrategyEvaluation:
    """The evaluation of strategies on a gallery, which takes two passes: :func:`evaluate`."""

    def __init__(
        self, relevant: RelevantPairs, known: GalleryBlock, plan: StrategyPlan, distance: str, *,
        keep_nearest: bool = False, new: bool = True, threads: int | None = None,
    ) -> None:  # fmt: skip
        """Prepare it; arguments are those of :class:`ListsSearch`.

        Without ``new`` vectors of all items the strategies that need them are left out, and only
        their lists of stored vectors are searched.
        """
        self.relevant, self.plan, self.distance = relevant, plan, distance
        self.strategies = [s for s in plan.strategies if new or not s.embeds_gallery]
        uses = (name for s in plan.strategies for name in s.uses)
        tops = dict.fromkeys(uses, K if keep_nearest else 0)
        for each in plan.strategies:
            if each.merge is not None:
                for name in each.uses[: 1 + each.merge.searches]:
                    tops[name] = max(tops[name], each.merge.window)
        lists = {
            name: replace(plan.lists[name], top=top)
            for name, top in tops.items() if new or name not in NEW_LISTS
        }  # fmt: skip
        # the job of the first pass
        self.search = ListsSearch(relevant, known, lists, distance, threads)

    def rescoring(self, found: Mapping[str, ListResult]) -> dict[str, PairScores]:
        """Jobs of the second pass: scores by second lists that the first pass leaves open."""
        return {
            each.name: PairScores(
                *self._asked(each, each.merge, found)[:2], self.plan.lists[each.uses[1]],
                self.distance,
            )
            for each in self.strategies if each.merge is not None
        }  # fmt: skip

    def _asked(
        self, each: Strategy, merge: TwoLists, found: Mapping[str, ListResult]
    ) -> tuple[Ints, Ints, Ints]:
        """Queries and rows that the second list scores: those of the first list's window.

        Where both lists are searched, of queries alone with counted pairs behind both windows.
        These pairs follow, and come as a third, by their places among all counted ones.
        """
        query, row = _window(each, found)
        if not merge.searches:
            return query, row, np.empty(0, np.int64)
        first, second = (found[name].ranks for name in each.uses)
        behind = np.flatnonzero((first > merge.window) & (second > merge.window))
        its_query, its_row = (of[behind] for of in self.relevant.counted_pairs)
        some = np.isin(query, its_query)
        return np.append(query[some], its_query), np.append(row[some], its_row), behind

    def evaluated(
        self, found: Mapping[str, ListResult], rescored: Mapping[str, Floats]
    ) -> Evaluated:
        """Join the results of both passes."""
        out = Evaluated()
        for each in self.strategies:
            if each.merge is None:
                result = found[each.uses[0]]
                ranks, nearest = result.ranks, result.rows[:, :K]
            else:
                ranks, nearest = self._merged(each, each.merge, found, rescored)
            out.ranks[each.name], out.nearest[each.name] = ranks, nearest
            if len(ranks):
                out.scores[each.name] = scores_of(ranks, self.relevant)
        return out

    def _merged(
        self, each: Strategy, merge: TwoLists, found: Mapping[str, ListResult],
        rescored: Mapping[str, Floats],
    ) -> tuple[Ints, Ints]:  # fmt: skip
        """Ranks of the counted pairs, and the ten nearest, of two lists as one."""
        (first, second), window = each.uses, merge.window
        rows, a = found[first].rows[:, :window], found[first].scores[:, :window]
        if merge.searches:
            its = found[second].rows[:, :window], found[second].scores[:, :window]
            rows, a, b = _joined(rows, a, *its)
        else:
            b = np.full(a.shape, np.nan, np.float32)
            b[rows >= 0] = rescored[each.name]
        merged = merge.merge(a, b)
        ranks = counted_ranks(merged, rows, self.relevant)
        # What is behind the first list's window, or both, follows in the order of a list.
        rest = found[first].ranks
        if merge.searches:
            rest = self._following(each, merge, found, rescored[each.name])
        ranks = np.where(ranks > 0, ranks, rest)
        # Equal ones by row; NaN last.
        order = np.lexsort((rows, np.where(np.isnan(merged), np.inf, -merged)), axis=1)[:, :K]
        return ranks, np.take_along_axis(rows, order, axis=1)

    def _following(
        self, each: Strategy, merge: TwoLists, found: Mapping[str, ListResult], scores: Floats
    ) -> Ints:
        """Ranks of the pairs behind both windows, in the second list's order behind all others.

        That order, and those of the first list's window that it has behind the pair's item.
        """
        asked, _, behind = self._asked(each, merge, found)
        out, n = found[each.uses[1]].ranks.copy(), len(asked) - len(behind)
        query, places = np.unique(asked[n:], return_inverse=True)
        starts = np.searchsorted(asked[:n], [query, query + 1])
        for k, (a, b) in enumerate(starts.T):
            mine = np.flatnonzero(places == k)
            out[behind[mine]] += np.searchsorted(np.sort(scores[a:b]), scores[n + mine], "left")
        return out


def _window(each: Strategy, found: Mapping[str, ListResult]) -> tuple[Ints, Ints]:
    """Queries and rows of the first rows of a strategy's first list."""
    rows = found[each.uses[0]].rows[:, : each.merge.window if each.merge else 0]
    query, place = np.nonzero(rows >= 0)
    return query, rows[query, place]


def evaluate(
    blocks: Blocks, relevant: RelevantPairs, known: GalleryBlock, plan: StrategyPlan,
    distance: str, *, keep_nearest: bool = False, threads: int | None = None,
) -> Evaluated:  # fmt: skip
    """Evaluate the strategies of a plan; arguments as of :class:`StrategyEvaluation`."""
    run = StrategyEvaluation(
        relevant, known, plan, distance, keep_nearest=keep_nearest, threads=threads
    )
    (found,) = one_pass(blocks, [run.search])
    jobs = run.rescoring(found)
    return run.evaluated(found, dict(zip(jobs, one_pass(blocks, [*jobs.values()]), strict=True)))


@dataclass(frozen=True)
class HeldOut:
    """The smaller gallery, of items that maps have not seen."""

    sample: EmbeddedSample
    relevant: RelevantPairs  # pairs that count there
    distance: str  # ``cosine``, ``dot`` or ``l2``
    metric: str  # the one that decides
    share: float  # of the whole gallery's items that it has

    @property
    def nearest(self) -> int:
        """Nearest items that agreement looks at: ten of the whole gallery, one here at least."""
        return ranks_here(K, self.share)

    @property
    def agreement_at(self) -> int:
        """First items of the whole gallery that these stand for: ten, or more of a small sample."""
        return max(K, round(self.nearest / self.share))

    def evaluate(
        self, plan: StrategyPlan, distance: str = "", *, keep_nearest: bool = True
    ) -> Evaluated:
        """Evaluate the strategies of a plan, by another distance perhaps.

        Two lists are cut off where their windows of the whole gallery end among its items.
        """
        here = [
            each if each.merge is None else replace(each, merge=_here(each.merge, self.share))
            for each in plan.strategies
        ]
        plan = replace(plan, strategies=here)
        return evaluate(
            self.sample.blocks, self.relevant, self.sample.known, plan, distance or self.distance,
            keep_nearest=keep_nearest,
        )  # fmt: skip

    def scored(
        self, plan: StrategyPlan, against: str = REEMBED, distance: str = ""
    ) -> dict[str, Scored]:
        """The deciding metric by strategy; agreement is with ``against``."""
        by_agreement = self.metric == AGREEMENT
        found = self.evaluate(plan, distance, keep_nearest=by_agreement)
        if by_agreement:
            agreed = found.agreement(against, self.nearest)
            return {name: measured(each) for name, each in agreed.items()}
        return {name: measured(each[self.metric]) for name, each in found.scores.items()}


def ranks_here(ranks: int, share: float) -> int:
    """First items of a random part of a gallery that are about the first ``ranks`` of all."""
    return max(1, round(ranks * share))


def _here(merge: TwoLists, share: float) -> TwoLists:
    window = ranks_here(merge.window, share)
    if isinstance(merge, RankFusion):
        return RankFusion(window, merge.k * share)
    return RescoredList(window) if isinstance(merge, RescoredList) else merge


def scores_of(ranks: Ints, relevant: RelevantPairs) -> Scores:
    """All metrics of the ranks of the counted pairs."""
    found = relevant_ranks(ranks, relevant)
    return {key: score(found) for key, score in METRICS.items()}


def counted_ranks(merged: NDArray[Any], rows: Ints, relevant: RelevantPairs) -> Ints:
    """Count the query's candidates that score at least as high as each counted pair's item.

    ``merged`` and ``rows`` are of the candidates, ``[q, w]``; 0 for what is no candidate.
    """
    query, row = relevant.counted_pairs
    ranks = np.zeros(len(row), np.int64)
    for a, b in spans(len(row), max(1, _ROOM // max(rows.shape[1], 1))):
        its, scores = rows[query[a:b]] == row[a:b, None], merged[query[a:b]]
        own = scores[np.arange(b - a), its.argmax(axis=1)]
        ranks[a:b] = np.where(its.any(axis=1), (scores >= own[:, None]).sum(axis=1), 0)
    return ranks


def _joined(rows: Ints, scores: Floats, more: Ints, its: Floats) -> tuple[Ints, Floats, Floats]:
    """Join candidates of two lists, each item once, with its score in either; NaN for none.

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
        order = np.argsort(none, axis=1, kind="stable")  # the others are in order
        out[here] = np.take_along_axis(np.where(none, -1, key), order, 1)
        a[here], b[here] = (np.take_along_axis(each, order, 1) for each in (x, y))
    return out, a, b
