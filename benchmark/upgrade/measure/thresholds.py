"""New cut-offs of scores for old ones, ``similarity > 0.75`` by the old model.

Scores of two models are not alike, and a fixed cut-off accepts more or less after an upgrade. The
new one accepts the same share of all pairs of a query and an item, or, where judgements say which
pairs belong together, the same share of those that do not. Both are read off the same pairs, those
of queries and held-out items; items that are relevant to nothing stand for all of theirs. Queries
and items are drawn anew, both, for the intervals (the pigeonhole bootstrap of Owen, 2007).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.estimate import Estimate
from benchmark.ranking.arrays import Floats, Mask, Values
from benchmark.upgrade.measure.score_model import all_scores
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.read.gallery import GalleryBlock
from benchmark.upgrade.read.request import KEEP
from benchmark.upgrade.search.lists import ResultList

DRAWS = 300
MOST_QUERIES, MOST_ITEMS = 500, 4_000
_FEW = 10  # accepted pairs below which a cut-off rests on hardly anything
_MOST_ACCEPTED = 2_000  # accepted pairs from which on only some of all pairs are looked at
_BINS = 40
Rule = Literal["same share", "same false accepts"]


@dataclass(frozen=True)
class Cutoff:
    """A new cut-off in the place of an old one."""

    strategy: str
    rule: Rule
    old: float  # today's
    new: Estimate
    # share of the pairs that today's accepts: of all, or of those that do not belong
    # together
    rate: float
    accepted: int  # pairs of the sample that it accepts
    # share of the pairs that belong together which today's accepts; None without judgements
    true_before: float | None = None
    true_after: Estimate | None = None  # share of these that the new one accepts
    few: bool = False  # today's accepts hardly a pair of the sample


@dataclass(frozen=True)
class PairSet:
    """Pairs of queries and items, and how often each is drawn."""

    genuine: Mask  # pairs that belong together, [q, m]
    left_out: Mask  # that nobody judges, or that are a query's own item, [q, m]
    weight: Values  # items of the gallery that each item stands for, [m]

    def draws(self, seed: int) -> tuple[Values, Values]:
        """Weights of queries and items, ``[1 + DRAWS, q]`` and ``[1 + DRAWS, m]``.

        The first draw has everything once.
        """
        rng = np.random.default_rng([seed, 7])
        q, m = self.genuine.shape
        sides = (rng.multinomial(n, np.full(n, 1 / n), DRAWS) for n in (q, m))
        queries, items = (np.vstack([np.ones(s.shape[1]), s]) for s in sides)
        return queries, items * self.weight


def cutoff(
    strategy: str, rule: Rule, old: Floats, new: Floats, pairs: PairSet, threshold: float, seed: int
) -> Cutoff | None:
    """The new cut-off of scores ``new`` ``[q, m]`` for one of ``old`` ones ``[q, m]``.

    Returns:
        None where today's accepts no pair, or every one.
    """
    use = ~pairs.left_out
    if rule == "same false accepts":
        use = use & ~pairs.genuine
    taken = (old >= threshold) & use
    accepted = int(taken.sum())
    if not accepted or accepted == use.sum():
        return None
    weight = np.broadcast_to(pairs.weight, use.shape)
    rate = float(weight[taken].sum() / weight[use].sum())
    if accepted > _MOST_ACCEPTED:  # so many say no more than some of them do
        rng = np.random.default_rng([seed, 9])
        use = use & (rng.random(use.shape) < _MOST_ACCEPTED / accepted)
        taken = taken & use
    queries, items = pairs.draws(seed)
    found = _accepting_as_many(new, use, taken, queries, items)
    made = Cutoff(strategy, rule, threshold, _estimate(found), rate, accepted, few=accepted < _FEW)
    own = np.nonzero(pairs.genuine & ~pairs.left_out)
    if not len(own[0]):
        return made
    weights = queries[:, own[0]] * (items / pairs.weight)[:, own[1]]
    some = weights.any(axis=1)  # of few pairs a draw may have none
    weights, found = weights[some], found[some]
    true = (weights * (new[own] >= found[:, None])).sum(axis=1) / weights.sum(axis=1)
    before = float((old[own] >= threshold).mean())
    return replace(made, true_before=before, true_after=_estimate(true))


def _accepting_as_many(
    new: Floats, use: Mask, taken: Mask, queries: Values, items: Values
) -> Values:
    """The cut-off of each draw above which new scores have the weight of the pairs ``taken``."""
    q, i = np.nonzero(taken)
    wanted = np.einsum("kn,kn->k", queries[:, q], items[:, i])
    # Scores far below the cut-off are never reached by a draw.
    q, i = np.nonzero(use)
    scores = new[q, i]
    reach = min(len(scores), max(2_000, 20 * int(taken.sum())))
    top = np.argpartition(-scores, reach - 1)[:reach]
    top = top[np.argsort(-scores[top], kind="stable")]
    q, i, ranked = q[top], i[top], scores[top].astype(np.float64)
    found = np.empty(len(wanted))
    front = 2 * int(taken.sum())  # mostly enough: a draw is of about as many pairs
    for k, each in enumerate(wanted):
        for size in (front, len(top)):
            above = np.cumsum(queries[k].take(q[:size]) * items[k].take(i[:size]))
            if above[-1] >= each:
                break
        found[k] = _between(ranked, above, each)
    return found


def _between(scores: Values, above: Values, wanted: float) -> float:
    """The score, of descending ones, above which pairs of so much weight are."""
    at = int(np.searchsorted(above, wanted))
    if at >= len(scores) - 1:
        return float(scores[-1])
    before = above[at - 1] if at else 0.0
    share = (wanted - before) / max(above[at] - before, 1e-12)
    # The cut-off lies behind the last accepted pair, half-way to the next.
    low = (scores[at] + scores[at + 1]) / 2
    high = (scores[at - 1] + scores[at]) / 2 if at else scores[0]
    return float(high + share * (low - high))


def _estimate(draws: Values) -> Estimate:
    low, high = np.quantile(draws[1:], [0.025, 0.975])
    return Estimate(float(draws[0]), float(min(low, draws[0])), float(max(high, draws[0])))


@dataclass(frozen=True)
class Thresholds:
    """Cut-offs of every strategy that has scores, and how these lie."""

    cutoffs: list[Cutoff]  # for each threshold, rule and strategy
    # strategy -> ends of bins, shares of pairs that do not belong together, and of
    # those that do
    histograms: dict[str, dict[str, list[float]]]
    left_out: list[float]  # thresholds that accept no pair, or all


def thresholds(study: Study, wanted: Sequence[float]) -> Thresholds:
    """New cut-offs for today's, of every strategy of one list; there must be old queries."""
    plan, inputs = study.plan, study.inputs
    lists = {s.name: plan.lists[s.uses[0]] for s in plan.strategies if s.merge is None}
    queries, places, pairs = _pairs(study)
    block = study.first.sample.known.some(places)
    scored = {name: _scores(each, queries, block, study) for name, each in lists.items()}
    rules: tuple[Rule, ...] = ("same share",)
    if pairs.genuine.any():
        rules += ("same false accepts",)
    cutoffs: list[Cutoff] = []
    left_out: list[float] = []
    is_l2 = inputs.distance == "l2"
    for threshold in dict.fromkeys(wanted):
        score = -(threshold**2) if is_l2 else threshold
        made = [
            cutoff(name, rule, scored[KEEP], scored[name], pairs, score, inputs.request.seed)
            for rule in rules for name in lists
        ]  # fmt: skip
        found = [each for each in made if each is not None]
        cutoffs += [_distance(each, threshold) if is_l2 else each for each in found]
        if not found:
            left_out.append(threshold)
    shapes = {name: _histogram(scores, pairs, is_l2=is_l2) for name, scores in scored.items()}
    return Thresholds(cutoffs, shapes, left_out)


def _scores(
    each: ResultList, queries: NDArray[np.int64], block: GalleryBlock, study: Study
) -> Floats:
    """Scores of some queries with every item of a block, by a map that has not seen the item."""
    found = np.empty((len(queries), len(block.rows)), np.float32)
    for part, some in each.parts(block):
        at = np.searchsorted(block.rows, some.rows)
        found[:, at] = all_scores(part.queries[queries], part.items(some), study.inputs.distance)
    return found


def _pairs(study: Study) -> tuple[NDArray[np.int64], NDArray[np.int64], PairSet]:
    """Rows of some queries, places of some held-out items, and their pairs."""
    fold, inputs = study.first, study.inputs
    sample, relevant = fold.sample, fold.relevant
    rng = np.random.default_rng([inputs.request.seed, 8])
    every = np.arange(relevant.n_queries) if not inputs.qrels.known else relevant.answered
    queries = np.sort(rng.permutation(every)[:MOST_QUERIES])
    held = np.flatnonzero(sample.held)
    judged = np.unique(inputs.qrels.rows)
    plain = rng.permutation(held[~np.isin(sample.rows[held], judged)])[:MOST_ITEMS]
    wanted = np.isin(relevant.query, queries) & relevant.counted
    own = np.intersect1d(sample.rows[held], relevant.row[wanted])
    kept = rng.permutation(np.searchsorted(sample.rows, own))[:MOST_ITEMS]
    places = np.sort(np.concatenate([plain, kept]))
    is_plain = np.isin(places, plain)
    rest = (inputs.gallery.rows - len(judged)) / max(1, is_plain.sum())
    weight = np.where(is_plain, rest, len(judged) / max(1, (~is_plain).sum()))
    shape = len(queries), len(places)
    genuine, left_out = np.zeros(shape, bool), np.zeros(shape, bool)
    use = np.isin(relevant.query, queries) & np.isin(relevant.row, sample.rows[places])
    at = np.searchsorted(queries, relevant.query[use])
    place = np.searchsorted(sample.rows[places], relevant.row[use])
    genuine[at, place] = relevant.counted[use]
    left_out[at, place] = ~relevant.counted[use]
    return queries, places, PairSet(genuine, left_out, weight)


def _distance(each: Cutoff, threshold: float) -> Cutoff:
    """A cut-off of negative squared distances as a largest distance."""
    ends = (each.new.value, each.new.high, each.new.low)
    new = Estimate(*(None if x is None else float(np.sqrt(max(0.0, -x))) for x in ends))
    return replace(each, old=threshold, new=new)


def _histogram(scores: Floats, pairs: PairSet, *, is_l2: bool) -> dict[str, list[float]]:
    shown = np.sqrt(np.maximum(-scores, 0)) if is_l2 else scores
    ends = np.linspace(float(shown.min()), float(shown.max()) + 1e-9, _BINS + 1)
    other = ~pairs.genuine & ~pairs.left_out
    weight = np.broadcast_to(pairs.weight, scores.shape)
    plain = np.histogram(shown[other], ends, weights=weight[other])[0]
    true = np.histogram(shown[pairs.genuine], ends)[0]
    return {
        "ends": ends.tolist(), "other": (plain / max(plain.sum(), 1e-12)).tolist(),
        "true": (true / max(true.sum(), 1)).tolist(),
    }  # fmt: skip
