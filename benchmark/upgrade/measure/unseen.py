"""Ranks by strategies that need new vectors of all items, of which only a sample has some.

Where two lists are made one, the first items of the list of stored vectors are rescored, or fused:
new scores of those that have no new vector are drawn.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmark.contract.fusion import RankFusion, RescoredList
from benchmark.ranking.arrays import Floats, Ints, Values
from benchmark.upgrade.measure.list_estimate import Draw, ListEstimate, PartlyEmbedded
from benchmark.upgrade.measure.score_model import GROUPS, MISSED, missed_places
from benchmark.upgrade.read.gallery import PassJob
from benchmark.upgrade.search.lists import ListResult, PairScores, ResultList, possible_ranks
from benchmark.upgrade.search.strategies import NEW_LISTS, Strategy, StrategyPlan

_DEPTHS = (10, 50, 200)  # places of the list between which items are taken together
_BLOCK = 1_000_000  # chances that are held at a time
_FEW = 10.0  # items that say nothing beyond what is predicted, added to those of a depth


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

    def window(self, each: Strategy, found: Mapping[str, ListResult]) -> "Window | None":
        """The window of a strategy of two lists; None for one of a single list.

        ``found`` are the lists of stored vectors.
        """
        if each.merge is None:
            return None
        first = found[each.uses[0]]
        return Window(self._of(each), first.rows[:, : each.merge.window], first.ranks)

    def ranks(self, each: Strategy, window: "Window | None") -> Ints:
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


class Window:
    """The first items of a list of stored vectors, and their new scores where they are known.

    :meth:`take` needs the results of its ``jobs``, of a pass over the gallery.
    """

    def __init__(self, its: ListEstimate, rows: Ints, ranks: Ints) -> None:
        self.its, self.rows, self.first_ranks = its, rows, ranks
        query, place = np.nonzero(rows >= 0)
        self.at, self.query, self._row = (query, place), query, rows[query, place]
        self.depth = np.searchsorted(_DEPTHS, place)
        self.in_window = (rows[its.query] == its.row[:, None]).any(axis=1)
        self.known = known = np.isin(self._row, its.of.gallery.embedded)
        predict, distance = its.model.predict, its.of.distance
        predicted = ResultList(its.model.queries, lambda block: predict(block.old))
        self.jobs = [
            PairScores(query[known], self._row[known], its.list, distance),
            PairScores(query[~known], self._row[~known], predicted, distance),
        ]

    def take(self, score: Floats, guess: Floats) -> None:
        """Take the scores of known items, and those that are predicted of the others."""
        model, query = self.its.model, self.query[~self.known]
        self.score = np.full(len(self._row), np.nan)
        self.score[self.known] = score
        self.place = model.standardised(query, guess)
        self.base = model.foreseen(query, self.place)
        self.level, self.width = np.searchsorted(model.levels, self.place), model.width[query]
        self._take_copies(query)
        self._of_level = [np.flatnonzero(self.level == k) for k in range(len(model.levels) + 2)]
        self._excess_sums = self._excess(self._row)
        self._share = self._share_of_rivals()

    def _take_copies(self, query: Ints) -> None:
        """Near copies score as their originals do, but for their own distribution."""
        model = self.its.model
        self.original = original = model.copied.of_rows(self._row[~self.known])
        self.copy = original >= 0
        self.twin = np.full(self.rows.shape, -1)  # the original of those that are equal to it
        unknown = tuple(side[~self.known] for side in self.at)
        self.twin[unknown] = model.copied.of_rows(self._row[~self.known], equal=True)
        if model.copies is not None:
            self.base[self.copy] = model.true[query[self.copy], original[self.copy]]
            self.level[self.copy] = len(model.levels) + 1
            self.width[self.copy] *= model.copies.width

    def _excess(self, row: Ints) -> Values:
        """Sums and numbers of misses beyond what predictions say, by group and depth.

        An item that the old model puts in front may score higher than others of its prediction.
        """
        model, known = self.its.model, np.flatnonzero(self.known)
        at, there = model.sample_places(row[known])
        query = self.query[known]
        there &= model.rival[query, at]
        query, at, depth = query[there], at[there], self.depth[known][there]
        more = model.missed[query, at] - model.usual_miss(model.place[query, at])
        flat = np.ravel_multi_index((model.group[at], depth), (GROUPS, len(_DEPTHS) + 1))
        size = GROUPS * (len(_DEPTHS) + 1)
        sums = [np.bincount(flat, weight, size) for weight in (more, np.ones(len(more)))]
        return np.stack(sums).astype(np.float64).reshape(2, GROUPS, -1)

    def _share_of_rivals(self) -> Values:
        """Rivals foreseen of the whole gallery, against the same with the excess, on the grid.

        All rivals together are calibrated: where more of them than foreseen are in front of the
        list, fewer are elsewhere. ``[n_query, places of the grid]``.
        """
        its, model = self.its, self.its.model
        unknown = np.flatnonzero(~self.known)[~self.copy]
        query, depth = self.query[unknown], self.depth[unknown]
        level, base = self.level[~self.copy], self.base[~self.copy]
        shares, more = model.exceeding(np.ones(GROUPS)), self._more(np.ones(GROUPS))[depth]
        everywhere = its.on_grid[0][0].sum(axis=2)
        ratio = np.empty_like(everywhere)
        for k in range(everywhere.shape[1]):
            needed = (its.grid[query, k] - base) / model.width[query]
            beyond = _chance(shares, level, needed - more) - _chance(shares, level, needed)
            added = np.bincount(query, beyond, minlength=len(ratio))
            ratio[:, k] = everywhere[:, k] / np.maximum(everywhere[:, k] + added, 1e-12)
        return np.clip(ratio, 0.01, 100.0)

    def _more(self, redrawn: Values) -> Values:
        """Mean excess of an item, by depth."""
        sums, numbers = np.einsum("sgd,g->sd", self._excess_sums, redrawn)
        return np.asarray(sums / (numbers + _FEW))

    def rescored(self, draws: Sequence[Draw]) -> Ints:
        """Ranks among the window's items by their new scores, ``[draws, pairs]``.

        0 for pairs that are not in it.
        """
        its, n = self.its, len(self.rows)
        scores = np.full(self.rows.shape, -np.inf)
        scores[self.at] = np.where(self.known, self.score, -np.inf)
        level, unknown = self.level, ~self.known
        depth = self.depth[unknown]
        ends = np.searchsorted(self.query[unknown], np.arange(n + 1))
        factors, lucks, mores, shares, own_above = (
            np.stack([of(draw) for draw in draws])
            for of in (
                lambda draw: draw.factor * its.at(self._share, its.query, its.score),
                self._luck, lambda draw: self._more(draw.redrawn), lambda draw: draw.shares,
                lambda draw: draw.own_above,
            )
        )  # fmt: skip
        at, there = its.model.sample_places(its.row)
        own_place = np.where(there, at, -2)
        out = np.empty((len(draws), len(its.score)), np.int64)
        order = np.argsort(its.query, kind="stable")
        pairs = np.split(order, np.searchsorted(its.query[order], np.arange(1, n)))
        for q, mine in enumerate(pairs):
            here, own = slice(ends[q], ends[q + 1]), its.score[mine, None]
            above = (scores[q] >= own).sum(axis=1)
            needed = (own - self.base[here]) / self.width[here]
            copy = self.copy[here]
            some = max(1, _BLOCK // max(1, needed.size))  # draws at a time
            for a in range(0, len(draws), some):
                chunk = slice(a, a + some)
                beyond = needed - np.where(copy, 0.0, mores[chunk, None, depth[here]])
                chance = _chance(shares[chunk], level[here], beyond)
                own_copy = self.original[here] == own_place[mine, None]
                chance = np.where(own_copy, own_above[chunk, mine, None], chance)
                factor = np.where(copy, 1.0, factors[chunk, mine, None])
                met = lucks[chunk, None, here] <= factor * chance
                out[chunk, mine] = above + met.sum(axis=2)
        return np.where(self.in_window, np.maximum(out, 1), self.first_ranks)

    def _luck(self, draw: Draw) -> Values:
        """Of each unknown item in a draw, in [0, 1)."""
        return np.random.default_rng([self.its.of.seed, 6, draw.index]).random(len(self.place))

    def _scores(self, draw: Draw, out: Values) -> Values:
        """New scores of the window's items, drawn where they are unknown, ``[n_query, window]``."""
        its, unknown = self.its, ~self.known
        query, luck = self.query[unknown], self._luck(draw)
        more = np.where(self.copy, 0.0, self._more(draw.redrawn)[self.depth[unknown]])
        factor = its.of_grid(draw)[1] * self._share

        def drawn(chance: Values) -> Values:
            missed = _inverse(draw.shares, self._of_level, chance) + more
            return np.asarray(self.base + missed * self.width)

        chance = luck
        for _ in range(2):  # the factor is that of where the score lies
            chance = np.where(self.copy, luck, luck / its.at(factor, query, drawn(chance)))
        scores = self.score.copy()
        scores[unknown] = drawn(chance)
        out[self.at] = scores
        return out

    def fused(self, draw: Draw, merge: RankFusion) -> Ints:
        """Ranks of two lists' sum of 1 / (k + rank), each list cut off at the window."""
        its, k, window = self.its, merge.k, merge.window
        n, w = self.rows.shape
        scores = self._scores(draw, np.full((n, w), -np.inf))
        query, place = self.at
        new_rank = np.full((n, w), np.inf)
        new_rank[query, place] = np.floor(its.rank_of(draw, query, scores[query, place]))
        own = its.ranks(draw).astype(np.float64)
        first = self.first_ranks.astype(np.float64)
        in_first = self.in_window & (first > 0)
        parts = [
            np.where(inside, 1.0 / (k + rank), 0.0)
            for inside, rank in ((in_first, first), (own <= window, own))
        ]
        total = parts[0] + parts[1]
        place_part = np.where(self.rows >= 0, 1.0 / (k + np.arange(1, w + 1)), 0.0)
        its_total = place_part + np.where(new_rank <= window, 1.0 / (k + new_rank), 0.0)
        alone = np.minimum(np.floor(1.0 / np.maximum(total, 1e-12) - k + 1e-9), window)
        above, behind = np.empty(len(total)), np.empty(len(total))
        at, there = its.model.sample_places(its.row)
        own_at = np.where(there, at, -2)
        for a in range(0, len(total), 4096):
            here = slice(a, a + 4096)
            q = its.query[here]
            own_place = self.rows[q] == its.row[here, None]
            fused = (its_total[q] >= total[here, None]) & ~own_place
            fused |= self.twin[q] == own_at[here, None]  # in either list
            among = (new_rank[q] <= alone[here, None]) & ~own_place
            above[here] = fused.sum(axis=1) - among.sum(axis=1)
            its_rank = np.where(self.rows[q] >= 0, new_rank[q], -np.inf)
            behind[here] = (its_rank > own[here, None]).sum(axis=1)
        own_counts = own <= alone  # itself is one of the new list's first
        ranks = 1 + above + np.maximum(alone - own_counts, 0)
        # What is behind both windows follows in the order of the new list.
        ranks = np.where(total > 0, np.maximum(ranks, 1), own + behind).astype(np.int64)
        return possible_ranks(ranks, its.query)


def _inverse(shares: Values, of_level: Sequence[Ints], chance: Values) -> Values:
    """Misses that are exceeded with some chance, by level; far below everything beyond 1.

    ``of_level`` are the places of each level's values in ``chance``.
    """
    out = np.full(len(chance), MISSED[0])
    for row, mine in zip(shares, of_level, strict=True):
        out[mine] = np.interp(-chance[mine], -row, MISSED)
    return np.where(chance >= 1.0, -1e6, out)


def _chance(shares: Values, level: Ints, needed: Values) -> Values:
    """Chance that more than ``needed`` is missed, ``[..., n]``, by ``level``, ``[n]``.

    ``shares`` are ``[levels, places]``; or with the draws, which ``needed`` has then, in front.
    """
    low, part, always = missed_places(needed, level)
    if shares.ndim > 2:
        first = np.arange(len(shares)) * shares[0].size
        low += first.reshape(-1, *[1] * (needed.ndim - 1))
    flat = shares.ravel()
    return np.where(always, 1.0, flat[low] * (1 - part) + flat[low + 1] * part)
