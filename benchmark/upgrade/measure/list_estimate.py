"""Rivals of each relevant item in one list of new vectors, of which only a sample is there.

What is in the sample is searched exactly. How many of the other items stand above each relevant one
is drawn, many times, from the score model and its calibration: each draw is a gallery as the whole
one may be.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import betaincinv, pdtr, pdtrik

from benchmark.ranking.arrays import Ints, Values
from benchmark.ranking.engine import Scorer
from benchmark.upgrade.measure.calibration import Calibration, Counts, log_normal
from benchmark.upgrade.measure.near_copies import CopiesFound, NearCopies, own_copies
from benchmark.upgrade.measure.score_model import GROUPS, KINDS, ScoreModel
from benchmark.upgrade.read.gallery import EmbeddedSample, Gallery, PassJob
from benchmark.upgrade.read.qrels import RelevantPairs
from benchmark.upgrade.search.lists import ListResult, ListsSearch, ResultList

DRAWS = 40
_GRID = 48  # places of a query's scores at which numbers of rivals are held
_FIT_ON = 3000  # relevant items that a calibration is fitted on, at most
_TINY = 1e-3


@dataclass(frozen=True)
class Draw:
    """One gallery as it may be."""

    index: int
    shares: Values  # what predictions miss, of :meth:`ScoreModel.exceeding`
    factor: Values  # rivals above each counted pair for each foreseen one, [pairs]
    unseen: Ints  # rivals above each counted pair, [pairs]
    normal: Values  # the luck of each query, [n_query]
    calibration: Calibration
    redrawn: Values  # how often each group of the sample counts, [GROUPS]
    own_above: Values  # share of each counted item's near copies that score as high, [pairs]


@dataclass(frozen=True)
class PartlyEmbedded:
    """A gallery of which only some rows have new vectors, and its relevant pairs."""

    gallery: Gallery
    relevant: RelevantPairs  # the counted pairs, and those left out
    sample: EmbeddedSample  # items in memory, those of all counted pairs among them
    distance: Any
    relevant_rows: Ints  # of the gallery, relevant to any query, ascending
    seed: int = 0
    threads: int | None = None  # CPU threads of searches; no result depends on it


class ListEstimate:
    """One list of new vectors: its model, and draws of the unseen rivals of each counted pair.

    :meth:`take` needs the results of its ``jobs``, of a pass over the gallery.
    """

    def __init__(self, of: PartlyEmbedded, each: ResultList) -> None:
        self.of, self.list = of, each
        self.query, self.row = of.relevant.counted_pairs
        rng = np.random.default_rng([of.seed, 4])
        sample, known = of.sample, of.sample.known
        self._new = np.ascontiguousarray(each.items(known))
        relevant = np.isin(sample.rows, of.relevant_rows)
        items = replace(sample, new=self._new)
        pairs = of.relevant.query, of.relevant.row
        self.model = ScoreModel(
            each.queries, items, relevant, pairs, of.distance, rng, of.gallery.rows
        )
        lists = {"": replace(each, top=0)}
        exact = ListsSearch(of.relevant, known, lists, of.distance, of.threads, new_only=True)
        self.jobs: list[PassJob[Any]] = [self.model.counting(of.relevant_rows), exact]

    def take(self, counted: tuple[Values, CopiesFound], exact: Mapping[str, ListResult]) -> None:
        """Draw, by what the jobs have found."""
        self.model.take(counted)
        self.in_sample = exact[""].ranks
        at = np.searchsorted(self.of.sample.rows, self.row)
        scorer = Scorer(self.list.queries, self._new, distance=self.of.distance)
        self.score = np.asarray(scorer.pairs(self.query, at), np.float64)
        self._prepare()
        self.draws = self._drawn()

    def _prepare(self) -> None:
        """Thresholds of each query, and the sample's counts there and at the counted pairs."""
        model, query = self.model, self.query
        n = len(model.queries)
        low = np.quantile(model.true, 0.5, axis=1).astype(np.float64)
        high = model.true.max(axis=1).astype(np.float64)
        np.minimum.at(low, query, self.score)
        np.maximum.at(high, query, self.score)
        step = np.maximum(
            (high - low) / (_GRID - 2), 1e-9 * np.maximum(abs(high), abs(low)) + 1e-300
        )
        self.low, self.step = low, step
        self.grid = low[:, None] + step[:, None] * np.arange(_GRID)
        self.grid_query = np.repeat(np.arange(n), _GRID)
        rng = np.random.default_rng([self.of.seed, 5])
        self.fit_on = np.sort(rng.permutation(len(query))[:_FIT_ON])
        self.seen = model.sample_above(query, self.score)
        if model.copies is not None:  # of which the calibration is told apart
            np.subtract.at(self.seen, self._own_above(model.copies), 1.0)

    def _own_above(self, copies: NearCopies) -> tuple[Ints, Ints, Ints]:
        """Near copies of the counted items in the sample, above them: pair, kind and group."""
        model = self.model
        at, there = model.sample_places(self.row)
        some = np.flatnonzero(there)
        place, other, _ = own_copies(copies, model.rival, self.query[some], at[some])
        pair = some[place]
        above = model.true[self.query[pair], other] >= self.score[pair]
        return pair[above], model.kind[other[above]], model.group[other[above]]

    def at(self, held: Values, query: Ints, score: Values) -> Values:
        """Numbers held on the grid, ``[n_query, _GRID, ...]``, at some scores."""
        at = np.clip((score - self.low[query]) / self.step[query], 0.0, _GRID - 1.0)
        low = np.minimum(at.astype(np.int64), _GRID - 2)
        part = (at - low).reshape(-1, *[1] * (held.ndim - 2))
        logs = np.log(held)  # of the grid, which is smaller
        return np.exp(logs[query, low] * (1 - part) + logs[query, low + 1] * part)

    def _expected(self, redrawn: Values) -> list[Values]:
        """Rivals expected on the grid: unseen, in the sample as drawn, and as it is.

        ``[draws, n_query, _GRID, KINDS]`` each.
        """
        model = self.model
        found = model.expected_above(self.grid_query, self.grid.ravel(), redrawn)
        sizes = model.above.sum(axis=2), model.sample_bins.sum(axis=(2, 3))
        total = (sizes[0] + sizes[1]).sum(axis=1)
        shape = len(redrawn), len(model.queries), _GRID, KINDS
        # Nothing is impossible: as many as one item in a thousand galleries may have.
        least = [
            _TINY * (size / total[:, None])[:, None] + 1e-9 for size in (sizes[0], *sizes[1:] * 2)
        ]
        return [each.reshape(shape) + some for each, some in zip(found, least, strict=True)]

    def _drawn(self) -> list[Draw]:
        """Draws; the sample's groups are drawn anew in each.

        Each has a generator of its own, of which it takes as many numbers whatever they mean: a
        difference in the last digits, as between processors, stays one.
        """
        plain = np.ones((1, GROUPS))
        rng = np.random.default_rng([self.of.seed, 4, 0])
        redrawn = rng.multinomial(GROUPS, plain[0] / GROUPS, DRAWS).astype(np.float64)
        self.on_grid = self._expected(np.concatenate([plain, redrawn]))
        start = self._calibrated(0, plain[0], None, None)[0].parameters
        model, ones = self.model, np.ones(len(self.query))
        copies, share = model.copies_above_items(self.query, self.score, self.row)
        own = copies.own_near + copies.own_equal
        draws = []
        for k, weights in enumerate(redrawn, 1):
            rng = np.random.default_rng([self.of.seed, 4, k])
            calibration, counts, unseen = self._calibrated(k, weights, rng, start)
            normal = rng.standard_normal(len(self.model.queries))
            mean, shape, each = calibration.unseen(counts, unseen)
            level = log_normal(mean, shape, normal[self.query])
            factor = level / mean * each
            own_above = ones
            if model.copies is not None:  # of an item and its copies any may be first
                part = betaincinv(2 * share, 2 * (1 - share), rng.random(len(own)))
                near = copies.own_near * part
                own_above = (near + copies.own_equal) / np.maximum(own, 1)
                level = level + copies.near + near
            # Of equal ones all are above that are: they are no matter of chance.
            drawn = _nested(level, self.query, self.score, rng) + copies.equal + copies.own_equal
            shares = self.model.exceeding(weights)
            draws.append(Draw(k, shares, factor, drawn, normal, calibration, weights, own_above))
        return draws

    def _calibrated(
        self, k: int, weights: Values, rng: np.random.Generator | None, start: Values | None
    ) -> tuple[Calibration, Counts, Values]:
        """A calibration, the sample's counts at the counted pairs, and unseen rivals expected."""
        query, score, fit_on = self.query, self.score, self.fit_on
        unseen, drawn, there = (self.at(each[k], query, score) for each in self.on_grid)
        everywhere = (unseen + there).sum(axis=1)
        seen = np.einsum("nkg,g->nk", self.seen[fit_on], weights)
        fitted = Calibration.fitted(Counts(drawn[fit_on], seen, everywhere[fit_on]), rng, start)
        return fitted, Counts(there, self.seen.sum(axis=2), everywhere), unseen

    @cached_property
    def _seen_on_grid(self) -> Values:
        counts = self.model.sample_above(self.grid_query, self.grid.ravel())
        return counts.sum(axis=2).reshape(len(self.model.queries), _GRID, KINDS)

    @cached_property
    def _copies_on_grid(self) -> Values:
        found = self.model.copies_above(self.grid_query, self.grid.ravel())
        return found.reshape(len(self.model.queries), _GRID)

    @cached_property
    def _every_on_grid(self) -> Values:
        """Sample items above each place of the grid, the relevant ones among them."""
        ranked = np.sort(self.model.true, axis=1)
        pairs = zip(ranked, self.grid, strict=True)
        return np.stack([len(row) - np.searchsorted(row, at) for row, at in pairs]).astype(float)

    def ranks(self, draw: Draw) -> Ints:
        """Ranks of the counted pairs by this list alone."""
        return self.in_sample + draw.unseen

    def of_grid(self, draw: Draw) -> tuple[Values, Values]:
        """Unseen rivals above each place of the grid, and their number for each foreseen one.

        ``[n_query, _GRID]`` each.
        """
        n = len(self.model.queries)
        unseen, there = (self.on_grid[part][draw.index] for part in (0, 2))
        everywhere = (unseen + there).sum(axis=2).ravel()
        counts = Counts(there.reshape(-1, KINDS), self._seen_on_grid.reshape(-1, KINDS), everywhere)
        found = draw.calibration.unseen(counts, unseen.reshape(-1, KINDS))
        mean, shape, factor = (each.reshape(n, _GRID) for each in found)
        level = log_normal(mean, shape, draw.normal[:, None])
        return level + self._copies_on_grid, level / mean * factor

    def rank_of(self, draw: Draw, query: Ints, score: Values) -> Values:
        """Ranks of items of some scores in a draw: about 1 + the items above them."""
        level, _ = self.of_grid(draw)
        scale = len(self.of.gallery.embedded) / max(1, len(self.model.some))
        # Fewer stand above the higher of two scores.
        above = (level + scale * self._every_on_grid)[:, ::-1]
        held = np.maximum.accumulate(above, axis=1)[:, ::-1]
        return 1.0 + self.at(held + 1e-9, query, score)


def _nested(level: Values, query: Ints, score: Values, rng: np.random.Generator) -> Ints:
    """Poisson counts of these means; a query's lower scores count what its higher ones do, too."""
    order = np.lexsort((-score, query))
    q, mean = query[order], level[order]
    first = np.diff(q, prepend=-1) != 0
    # The largest so far within each query.
    step = mean.max(initial=0.0) + 1.0
    rising = np.maximum.accumulate(mean + step * q) - step * q
    more = np.where(first, rising, np.diff(rising, prepend=0.0))
    drawn = _poisson(rng.random(len(more)), np.maximum(more, 0.0))
    total = np.cumsum(drawn)
    before = np.maximum.accumulate(np.where(first, total - drawn, 0))
    out = np.empty(len(level), np.int64)
    out[order] = total - before
    return out


def _poisson(part: Values, mean: Values) -> Ints:
    """Counts of Poisson distributions of these means below which these parts of them lie."""
    below = np.maximum(np.ceil(pdtrik(part, mean)) - 1, 0.0)
    return (below + (pdtr(below, mean) < part)).astype(np.int64)
