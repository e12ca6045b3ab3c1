"""New scores of items that only the old model has embedded, predicted from a sample by both models.

A ridge regression predicts an item's new vector from the old one, and so its score for a new query.
Its error is measured on the sample, by how high the prediction is: among the items that come
near a query a model's scores scatter otherwise than among all. Drawing whole vectors instead, a
predicted one and what it missed elsewhere, would scatter scores alike everywhere; the items that
stand against the relevant ones, whose vectors are true, would then be too weak.

The gallery is known by how many of its items have a predicted score in each of a query's bins,
which one pass counts. Sample items come in two kinds, which are counted apart: those that are
relevant to some query, mostly all of which are embedded, and the others, a random sample of theirs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmark.errors import BenchError
from benchmark.metrics.similarity import unit
from benchmark.ranking.arrays import Floats, Ints, Mask, Values
from benchmark.ranking.engine import Scorer
from benchmark.ranking.grouping import Ragged
from benchmark.training.closed_form import ridge
from benchmark.upgrade.measure.near_copies import CopiesAbove, CopiesFound, NearCopies, share_above
from benchmark.upgrade.read.gallery import EmbeddedSample, Taking, places_of

KINDS = 2
"""Items that are relevant to no query, and those that are to some."""
GROUPS = 16
"""Random parts of the sample, whose redrawing shows how sure an estimate is."""
MOST_PAIRS = 10_000_000
"""Of queries and sample items that a model is fitted on."""
_FOLDS = 5
_TINY = 1e-300
_BLOCK = 2048
_LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
"""Shares of the predicted scores below which what a prediction misses is taken together."""
_BINS = np.arange(-4.0, 12.0, 0.125)
"""Lower ends of the bins of predicted scores, in standard deviations of a query's."""
_STEPS = np.arange(-2.0, 10.0, 0.5)
_FEW = 20.0  # items that miss nothing, added to those of a step
MISSED = np.linspace(-4.0, 8.0, 97)
"""Places, in standard deviations, at which the distribution of what was missed is held."""
_OF_COPIES = ndtr(-MISSED)[None]
"""Share above each of them of a normal distribution."""


@dataclass(frozen=True)
class Predictor:
    """A ridge regression of new vectors on old ones."""

    weight: Floats  # [d_new, d_old]
    bias: Floats  # [d_new]
    distance: str

    @classmethod
    def fitted(
        cls, old: Floats, new: Floats, distance: str, share: float | None = None
    ) -> tuple["Predictor", float]:
        """Fit it on pairs ``[n, d_old]`` and ``[n, d_new]``; also give the strength it took."""
        x, y = (torch.from_numpy(np.ascontiguousarray(unit(v, distance))) for v in (old, new))
        weight, bias, share = ridge(x, y, share)
        return cls(weight.float().numpy(), bias.float().numpy(), distance), share

    def __call__(self, old: Floats) -> Floats:
        """Vectors ``[k, d_new]`` for ``[k, d_old]``; one that comes out as 0 is moved off it."""
        out = unit(old, self.distance) @ self.weight.T + self.bias
        out[~out.any(axis=1), 0] = 1e-12
        return np.asarray(out, np.float32)


class ScoreModel:
    """New scores of the items of a gallery that have no new vector."""

    # items without a new vector, by query, kind and bin of their predicted score,
    # [n_query, KINDS, bins], but for the query's own relevant ones and near copies
    above: Values
    copied: CopiesFound  # those that are near copies of sample items

    def __init__(
        self, queries: Floats, items: EmbeddedSample, relevant: Mask, left_out: tuple[Ints, Ints],
        distance: str, rng: np.random.Generator, rows: int,
    ) -> None:  # fmt: skip
        """Fit the model.

        Args:
            queries: By the new model, ``[n_query, d_new]``.
            items: The sample, its new vectors as the list of queries sees them.
            relevant: Those of its items that are relevant to some query, ``[s]``.
            left_out: Queries and rows of the gallery that belong together, being relevant or
                excluded: they stand against no relevant item.
            distance: ``cosine``, ``dot`` or ``l2``.
            rng: Draws folds and groups.
            rows: Items of the gallery.
        """
        self.queries, self.distance, self.items = queries, distance, items
        self.left_out = left_out
        n = max(500, MOST_PAIRS // len(queries))
        some = np.sort(rng.permutation(len(items.rows))[:n])
        self.some, self.kind = some, relevant[some].astype(np.int64)
        self.predict, share = Predictor.fitted(items.old, items.new, distance)
        predicted = self._cross_fitted(share, rng)
        self.true = all_scores(queries, items.new[some], distance)
        self.rival = self._rivals()
        if not self.rival.any():
            raise BenchError(
                "new_gallery: expected items that are not relevant to the queries among those with "
                "a new vector, got none: embed a random sample of the gallery, too"
            )
        self._fit(all_scores(queries, predicted[some], distance))
        self.group = rng.permutation(len(some)) % GROUPS
        self.copies = NearCopies.found(
            items.old[some], self.true, self.width, self.kind == 0, distance, rows
        )

    def _cross_fitted(self, share: float, rng: np.random.Generator) -> Floats:
        """Predictions for the sample by regressions that have not seen the item."""
        items = self.items
        fold = rng.permutation(len(items.rows)) % _FOLDS
        out = np.empty_like(items.new)
        for k in range(_FOLDS):
            seen = fold != k
            part, _ = Predictor.fitted(items.old[seen], items.new[seen], self.distance, share)
            out[~seen] = part(items.old[~seen])
        return out

    def sample_places(self, rows: Ints) -> tuple[Ints, Mask]:
        """Places of rows of the gallery in the sample, and which of them are there, ``[n]``."""
        return places_of(rows, self.items.rows[self.some])

    def _rivals(self) -> Mask:
        """Sample items that may stand against a query's relevant ones, ``[n_query, s]``."""
        rival = np.ones(self.true.shape, bool)
        query, row = self.left_out
        at, there = self.sample_places(row)
        rival[query[there], at[there]] = False
        return rival

    def _fit(self, predicted: Floats) -> None:
        """True scores by query: centre + slope times predicted, and what that misses."""
        weight = self.rival.astype(np.float32)
        n = np.maximum(weight.sum(axis=1), 3.0)
        true, mean = self.true, partial(_mean, weight, n)
        centre, middle = mean(true), mean(predicted)
        x, y = predicted - middle[:, None], true - centre[:, None]  # float64: squares may be tiny
        xx, xy, yy = ((weight * a * b).sum(axis=1) for a, b in ((x, x), (x, y), (y, y)))
        slope = _shrunk(xx, xy, yy, n)
        missed = y - slope[:, None] * x
        self.width = np.sqrt(np.maximum(mean(missed**2), _TINY))  # of what is missed
        self.spread = np.sqrt(np.maximum(xx / n, _TINY))  # of predicted scores
        self.middle, self.centre, self.slope = middle, centre, slope
        self.place = x / self.spread[:, None]
        self.missed = missed / self.width[:, None]
        self.levels = np.quantile(self.place[self.rival], _LEVELS)

    @cached_property
    def _missed_counts(self) -> Values:
        """Sample pairs by group, level of the prediction and what it misses."""
        level = np.searchsorted(self.levels, self.place)
        missed = np.clip(np.searchsorted(MISSED, self.missed), 0, len(MISSED) - 1)
        group = np.broadcast_to(self.group, level.shape)
        shape = GROUPS, len(_LEVELS) + 1, len(MISSED)
        flat = np.ravel_multi_index((group, level, missed), shape)[self.rival]
        return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)

    def usual_miss(self, place: Values) -> Values:
        """Mean of what is missed where predictions are so high, in standard deviations."""
        bins, some = _steps(self.place[self.rival]), len(_STEPS) + 1
        number = np.bincount(bins, minlength=some)
        total = np.bincount(bins, self.missed[self.rival], minlength=some)
        return np.asarray((total / (number + _FEW))[_steps(place)])

    @cached_property
    def sample_bins(self) -> NDArray[np.float32]:
        """Sample items by query, kind, group and bin, ``[n_query, KINDS, GROUPS, bins]``."""
        bins = np.clip(np.searchsorted(_BINS, self.place, "right") - 1, 0, len(_BINS) - 1)
        shape = KINDS, GROUPS, len(_BINS)
        part = np.ravel_multi_index((self.kind, self.group), shape[:2]) * len(_BINS)
        rows = [
            np.bincount((part + b)[rival], minlength=int(np.prod(shape)))
            for b, rival in zip(bins, self.rival, strict=True)
        ]
        return np.stack(rows).reshape(-1, *shape).astype(np.float32)

    def sample_above(self, query: Ints, thresholds: Values) -> Values:
        """Sample items that score at least so much, by kind and group, ``[n, KINDS, GROUPS]``."""
        out = np.zeros((len(query), KINDS, GROUPS))
        part = self.kind * GROUPS + self.group
        order = np.argsort(query, kind="stable")
        ends = np.searchsorted(query[order], np.arange(len(self.queries) + 1))
        for q in range(len(self.queries)):
            mine = order[ends[q] : ends[q + 1]]
            if not len(mine):
                continue
            scores, its = self.true[q][self.rival[q]], part[self.rival[q]]
            for k in np.unique(its):
                ranked = np.sort(scores[its == k])
                out[mine, k // GROUPS, k % GROUPS] = len(ranked) - np.searchsorted(
                    ranked, thresholds[mine]
                )
        return out

    def exceeding(self, redrawn: Values) -> Values:
        """Share of what predictions miss that lies above each place, by level, ``[levels, k]``.

        The last level is that of near copies, in deviations of their scores. ``redrawn`` says how
        often each group of the sample counts, ``[GROUPS]``.
        """
        counts = np.tensordot(redrawn, self._missed_counts, 1)
        total = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        return np.concatenate([1.0 - counts.cumsum(axis=1) / total, _OF_COPIES])

    def expected_above(
        self, query: Ints, thresholds: Values, redrawn: Values
    ) -> tuple[Values, Values, Values]:
        """Items that are expected to score at least so much, by kind, ``[draws, n, KINDS]`` each.

        Those without a new vector; those of the sample as its groups are redrawn; and as it is.
        ``redrawn`` says how often each group counts, ``[draws, GROUPS]``.
        """
        shares = [self.exceeding(each).astype(np.float32).ravel() for each in redrawn]
        out = np.zeros((3, len(redrawn), len(query), KINDS), np.float32)
        for a in range(0, len(query), _BLOCK):
            q, here = query[a : a + _BLOCK], slice(a, a + _BLOCK)
            low, part, always = self._missed_at(q, thresholds[here])
            once, again = np.unique(q, return_inverse=True)  # a query has many thresholds
            there = self.sample_bins[once]
            unseen, as_is = self.above[q].astype(np.float32), there.sum(axis=2)[again]
            for d, each in enumerate(shares):
                chance = np.where(always, 1.0, each[low] * (1 - part) + each[low + 1] * part)
                drawn = np.einsum("nkgb,g->nkb", there, redrawn[d].astype(np.float32))[again]
                for out_of, counts in zip(out, (unseen, drawn, as_is), strict=True):
                    out_of[d, here] = np.einsum("nb,nkb->nk", chance, counts)
        return out[0], out[1], out[2]

    def _missed_at(self, query: Ints, thresholds: Values) -> tuple[Ints, Floats, Mask]:
        """Places in the distributions of misses at which items of each bin reach a threshold.

        The place before it, the way to the next one, and whether any item of the bin reaches it.
        """
        middles = _BINS + (_BINS[1] - _BINS[0]) / 2
        level = np.searchsorted(self.levels, middles)
        base = self.centre[query, None] + (self.slope * self.spread)[query, None] * middles
        needed = (thresholds[:, None] - base) / self.width[query, None]
        low, part, always = missed_places(needed, level)
        return low, part.astype(np.float32), always

    def counting(self, relevant_rows: Ints) -> "BinCounts":
        """The job that counts items without a new vector, whose result :meth:`take` needs."""
        ends = self.middle[:, None] + self.spread[:, None] * _BINS[None, 1:]
        return BinCounts(
            self.queries, self.predict, ends.astype(np.float32), self.left_out, relevant_rows,
            self.copies,
        )  # fmt: skip

    def take(self, found: tuple[Values, CopiesFound]) -> None:
        """Take the result of the job that counts."""
        self.above, self.copied = found

    def copies_above(self, query: Ints, scores: Values) -> Values:
        """Near copies that are expected to score at least so much, ``[n]``."""
        if self.copies is None:
            return np.zeros(len(query))
        width = self.copies.width * self.width
        found = self.copied.above(self.true, width, self.left_out, query, scores)
        return found.near + found.equal

    def copies_above_items(
        self, query: Ints, scores: Values, rows: Ints
    ) -> tuple[CopiesAbove, float]:
        """Near copies against relevant items, of the gallery's ``rows``, that have these scores.

        And the share of an item's own copies, but for equal ones, that is above it on average.
        """
        if self.copies is None:
            return CopiesAbove.none(len(query)), 0.5
        at, there = self.sample_places(rows)
        share = share_above(self.copies, self.true, self.rival, query[there], at[there])
        width, own = self.copies.width * self.width, np.where(there, at, -1)
        return self.copied.above(self.true, width, self.left_out, query, scores, own), share

    def foreseen(self, query: Ints, place: Values) -> Values:
        """Mean new scores of predicted ones in standard deviations."""
        slope = self.slope[query] * self.spread[query]
        return np.asarray(self.centre[query] + slope * place)

    def standardised(self, query: Ints, predicted: Floats) -> Values:
        """Predicted scores in standard deviations of their query's."""
        return (predicted - self.middle[query]) / self.spread[query]


@dataclass(frozen=True)
class BinCounts:
    """A job that counts items without a new vector by query, kind and bin of predicted score."""

    queries: Floats  # by the new model
    predict: Predictor  # new vectors of old ones
    ends: Floats  # of the bins, ascending, [n_query, bins - 1]
    left_out: tuple[Ints, Ints]  # queries and rows whose pairs do not count
    relevant_rows: Ints  # relevant to some query, ascending
    copies: NearCopies | None  # which are not in the bins

    def begin(self) -> Taking[tuple[Values, CopiesFound]]:
        """Count the items of a part."""
        n, k = self.ends.shape
        copied: list[CopiesFound] = []
        out = np.zeros((n, KINDS, k + 1))
        thresholds = Ragged(np.arange(n + 1) * k, self.ends.ravel())
        order = np.lexsort(self.left_out)
        query, row = (side[order] for side in self.left_out)
        while (block := (yield)) is not None:
            bare = np.setdiff1d(np.arange(len(block.rows)), block.places, assume_unique=True)
            if self.copies is not None:
                original, equal = self.copies.of(block.old[bare])
                is_copy = original >= 0
                rows = block.rows[bare[is_copy]]
                copied.append(CopiesFound(rows, original[is_copy], equal[is_copy]))
                bare = bare[~is_copy]
            relevant = np.isin(block.rows[bare], self.relevant_rows)
            for kind in range(KINDS):
                some = bare[relevant == bool(kind)]
                if not len(some):
                    continue
                items = self.predict(block.old[some])
                scorer = Scorer(self.queries, items, distance=self.predict.distance, threads=None)
                above = scorer.count_above(np.arange(n), thresholds, None).reshape(n, k)
                out[:, kind] -= np.diff(above, axis=1, prepend=len(some), append=0)
                _take_away(out[:, kind], scorer, block.rows[some], self.ends, query, row)
        return out, CopiesFound.joined(copied)

    def result(self, parts: Sequence[tuple[Values, CopiesFound]]) -> tuple[Values, CopiesFound]:
        """Counts of the whole gallery, ``[n_query, KINDS, bins]``, and its near copies."""
        counts, copied = zip(*parts, strict=True)
        return np.asarray(np.sum(counts, axis=0)), CopiesFound.joined(copied)


def _take_away(
    out: Values, scorer: Scorer, rows: Ints, ends: Floats, query: Ints, row: Ints
) -> None:
    """Take pairs that do not count out of the bins."""
    a, b = np.searchsorted(row, [rows[0], rows[-1] + 1])
    at, there = places_of(row[a:b], rows)
    q, at = query[a:b][there], at[there]
    scores = scorer.pairs(q, at)
    bins = (ends[q] <= scores[:, None]).sum(axis=1)
    np.subtract.at(out, (q, bins), 1)


def _steps(place: Values) -> Ints:
    return np.searchsorted(_STEPS, place)


def missed_places(needed: Values, level: Ints) -> tuple[Ints, Values, Mask]:
    """Places of misses ``[..., n]`` in the distributions of their levels ``[n]``, one by one.

    The place before it, the way to the next one, and whether all of the distribution is above.
    """
    at = (needed - MISSED[0]) / (MISSED[1] - MISSED[0])
    low = np.clip(np.floor(at), 0, len(MISSED) - 2).astype(np.int64)
    return level * len(MISSED) + low, np.clip(at - low, 0.0, 1.0), at < 0


def all_scores(queries: Floats, items: Floats, distance: str) -> Floats:
    """Scores of every query with every item, ``[queries, items]``, of few of both."""
    out = np.empty((len(queries), len(items)), np.float32)

    def keep(first: int, last: int, scores: Floats) -> None:
        out[first:last] = scores

    Scorer(queries, items, distance=distance).blocks(keep)
    return out


def _mean(weight: Floats, n: Values, values: NDArray[Any]) -> Values:
    return np.asarray((weight * values).sum(axis=1) / n, np.float64)


def _shrunk(xx: Values, xy: Values, yy: Values, n: Values) -> Values:
    """Slopes of the queries, drawn towards the common one by as much as they are noise."""
    common = xy.sum() / max(xx.sum(), _TINY)
    own = xy / np.maximum(xx, _TINY)
    noise = np.maximum(yy - own * xy, _TINY) / (n - 2) / np.maximum(xx, _TINY)
    between = max(0.0, float(((own - common) ** 2 - noise).mean()))
    return np.asarray(
        (own * between + common * noise) / np.maximum(between + noise, _TINY), np.float64
    )
