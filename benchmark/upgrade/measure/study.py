"""The study: maps fitted on documents of the sample, strategies judged on queries.

All strategies are judged on the same queries, with the same relevant items, in the same gallery.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from benchmark.contract.arrays import apply
from benchmark.contract.interpolation import SHARES, Between, turn
from benchmark.models.parts import Affine
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.fit import maps as map_fits
from benchmark.upgrade.fit.maps import FittedMap
from benchmark.upgrade.fit.sampling import joined_ranks, judged_pairs, make_samples
from benchmark.upgrade.measure.evaluation import (
    AGREEMENT,
    Evaluated,
    Scores,
    Values,
    evaluate,
    scores_of,
)
from benchmark.upgrade.measure.list_estimate import Known
from benchmark.upgrade.measure.query_groups import query_groups
from benchmark.upgrade.measure.statistics import Scored, measured
from benchmark.upgrade.measure.unseen import Unseen
from benchmark.upgrade.read.gallery import Block, Blocks, Sample, Whole, unit
from benchmark.upgrade.read.inputs import Inputs
from benchmark.upgrade.search.lists import Relevant, ResultList
from benchmark.upgrade.search.strategies import REEMBED, Plan, Strategy, make_plan

MAIN = {"qrels": "ndcg_at_10", "labels": "map", "agreement": AGREEMENT}
"""The metric that decides, by what is judged with."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """A strategy and its scores on the judged queries.

    Attributes:
        strategy: What is done.
        scored: Metric -> scores by query.
        hits: Chance that a query's first results hold a relevant item, ``[n]``: 0 or 1 where it is
            measured; nothing by agreement.
        estimated: New vectors of stored items were estimated for most of them.
    """

    strategy: Strategy
    scored: Mapping[str, Scored]
    hits: Values
    estimated: bool

    @property
    def scores(self) -> Scores:
        """Metric -> one value a query."""
        return {key: each.values for key, each in self.scored.items()}


@dataclass(frozen=True)
class Fold:
    """Maps fitted on one sample, and the strategies that use them."""

    sample: Sample
    relevant: Relevant  # with the pairs that these maps have not seen
    plan: Plan
    maps: list[FittedMap]
    best: FittedMap | None
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Study:
    """All that was measured.

    Attributes:
        metric: The one that decides.
        queries: Rows of the judged queries, ``[n]``.
        groups: Of queries that share their relevant items, which are drawn together, ``[n]``; None
            where each is drawn alone.
        outcomes: By name of the strategy.
        plan: With the lists that answer.
        maps: As they were fitted.
        best: The map of stored vectors that comes closest to new vectors of held-out items.
        sample: Items in memory: those that maps were fitted on, and the smaller gallery.
        on_sample: Judged pairs of the smaller gallery, which the maps have not seen.
        relevant: The judged pairs.
        ranks: Strategy -> rank of each judged pair in the gallery that is reported.
        shares: Share of the way that interpolated queries go, of each half of the queries.
        n_gallery: Items of the gallery that is judged in.
        folds: All samples and their maps, the first one's being those above.
    """

    inputs: Inputs
    metric: str
    queries: Ints
    groups: Ints | None
    outcomes: dict[str, Outcome]
    plan: Plan
    maps: list[FittedMap]
    best: FittedMap | None
    sample: Sample
    on_sample: Relevant
    relevant: Relevant
    ranks: dict[str, Ints]
    shares: tuple[float, ...]
    n_gallery: int
    folds: Sequence[Fold]
    distance: Any = field(default="cosine")

    @property
    def sample_groups(self) -> Ints | None:
        """As ``groups``, of the queries with a judged pair in the smaller gallery."""
        if self.metric == AGREEMENT:
            return None
        answered = np.flatnonzero(np.diff(self.on_sample.offset) > 0)
        return query_groups(self.inputs.relevance, self.inputs.judge, answered)


def study(
    inputs: Inputs, labels: Sequence[str], seed: int = 0, tell: Tell = lambda words: None
) -> Study:
    """Fit the maps and judge all strategies.

    Args:
        inputs: Vectors and relevance.
        labels: Of the maps.
        seed: Of the split, of maps that draw, and of estimates.
        tell: Called with what is done next.
    """
    folds = [_fold(inputs, s, labels, seed, tell) for s in make_samples(inputs, seed)]
    first = folds[0]
    tell(f"searching {first.sample.held.sum():,} held-out items")
    by_agreement = inputs.judge == "agreement"
    on_sample = _on_sample(first, inputs.distance) if by_agreement else None
    if on_sample is not None:
        relevant, answered = first.relevant, np.arange(first.relevant.n_queries)
        agreement = on_sample.agreement(REEMBED)
        outcomes = {
            s.name: Outcome(
                s, {AGREEMENT: measured(agreement[s.name])}, np.empty(0), estimated=False
            )
            for s in first.plan.strategies
        }
        ranks, n_gallery = on_sample.ranks, int(first.sample.held.sum())
    else:
        held = np.union1d(*(f.sample.rows[f.sample.held] for f in (folds[0], folds[-1])))
        relevant = judged_pairs(inputs, held)
        outcomes, ranks = _judged(inputs, folds, relevant, seed, tell)
        answered, n_gallery = np.flatnonzero(np.diff(relevant.offset) > 0), inputs.gallery.rows
    groups = None if by_agreement else query_groups(inputs.relevance, inputs.judge, answered)
    return Study(
        inputs, MAIN[inputs.judge], answered, groups, outcomes, first.plan, first.maps, first.best,
        first.sample, first.relevant, relevant, ranks, first.shares, n_gallery, folds,
        inputs.distance,
    )  # fmt: skip


def _fold(inputs: Inputs, sample: Sample, labels: Sequence[str], seed: int, tell: Tell) -> Fold:
    gallery, distance = inputs.gallery, inputs.distance
    relevant = judged_pairs(inputs, sample.rows[sample.held])
    pairs = sample.old[sample.fitted], sample.new[sample.fitted]
    fits, refused = map_fits.fit_all(labels, *pairs, distance, seed, tell)
    best = _closest(fits, sample)
    tell("choosing between queries")
    middle = between = None
    shares: tuple[float, ...] = ()
    if inputs.old_queries is not None and distance == "cosine":
        old, new = (torch.from_numpy(np.ascontiguousarray(side)) for side in pairs)
        turned = turn(old, new)
        middle = apply(Between(turned, 0.5), inputs.queries, inputs.old_queries)
        between, shares = _between(inputs, turned, sample.blocks, relevant, sample.known)
    plan = make_plan(
        gallery, inputs.queries, inputs.old_queries, middle, between, fits, best, distance
    )
    plan.left_out.update(refused)
    return Fold(sample, relevant, plan, fits, best, shares)


def _on_sample(fold: Fold, distance: str) -> Evaluated:
    return evaluate(
        fold.sample.blocks, fold.relevant, fold.sample.known, fold.plan, fold.plan.strategies,
        distance, keep_nearest=True,
    )  # fmt: skip


def _judged(
    inputs: Inputs, folds: Sequence[Fold], relevant: Relevant, seed: int, tell: Tell
) -> tuple[dict[str, Outcome], dict[str, Ints]]:
    """Scores by relevance on the whole gallery, and ranks of the judged pairs."""
    gallery = inputs.gallery
    tell(f"searching the whole gallery of {gallery.rows:,} items")
    by_fold: list[dict[str, Ints]] = []  # strategy -> ranks [pairs], or [draws, pairs]
    agreement: Scores = {}
    answered = np.flatnonzero(np.diff(relevant.offset) > 0)
    unseen: Unseen | None = None
    for fold in folds:
        known = fold.sample.known
        whole = evaluate(
            Whole(gallery), relevant, known, fold.plan, fold.plan.strategies, inputs.distance,
            new=gallery.complete,
        )  # fmt: skip
        if not gallery.complete:
            tell("estimating what the other items would do")
            rows = np.unique(inputs.relevance.rows)
            given = Known(gallery, relevant, fold.sample, inputs.distance, rows, seed)
            unseen = unseen or Unseen(given, fold.plan)
            for each in fold.plan.strategies:
                if each.embeds_gallery:
                    done = by_fold[0][each.name] if by_fold and each.fitted is None else None
                    whole.ranks[each.name] = (
                        unseen.ranks(each, whole.found) if done is None else done
                    )
        by_fold.append(whole.ranks)
        agreement = agreement or _on_sample(fold, inputs.distance).agreement(REEMBED)
    outcomes, ranks = {}, {}
    for each in folds[0].plan.strategies:
        found = joined(each, folds, by_fold, relevant)
        scored, hits = _scored(found, relevant, inputs.judge)
        scored[AGREEMENT] = measured(agreement[each.name][answered])
        outcomes[each.name] = Outcome(each, scored, hits, estimated=found.ndim == 2)
        ranks[each.name] = found if found.ndim == 1 else np.median(found, axis=0).astype(np.int64)
    return outcomes, ranks


def joined(
    each: Strategy, folds: Sequence[Fold], by_fold: Sequence[dict[str, Ints]], relevant: Relevant
) -> Ints:
    """Ranks of each pair by maps that have not seen it, ``[pairs]`` or ``[draws, pairs]``."""
    found = [ranks[each.name] for ranks in by_fold]
    if len(found) == 1:
        return found[0]
    samples = [fold.sample for fold in folds]
    if found[0].ndim == 1:
        return joined_ranks(relevant, zip(samples, found, strict=True))
    return np.stack([
        joined_ranks(relevant, zip(samples, draw, strict=True)) for draw in zip(*found, strict=True)
    ])  # fmt: skip


def _scored(ranks: Ints, relevant: Relevant, judge: str) -> tuple[dict[str, Scored], Values]:
    """All metrics, and how likely each query's first results hold a relevant item."""
    hit = "recall_at_1" if judge == "labels" else "recall_at_10"
    if ranks.ndim == 1:
        scores = scores_of(ranks, relevant)
        return {k: measured(v) for k, v in scores.items()}, (scores[hit] > 0).astype(np.float64)
    draws = [scores_of(row, relevant) for row in ranks]
    stacked = {key: np.stack([each[key] for each in draws]) for key in draws[0]}
    hits = (stacked[hit] > 0).mean(axis=0)
    return {key: Scored.of_draws(values) for key, values in stacked.items()}, hits


def _closest(fits: Sequence[FittedMap], items: Sample) -> FittedMap | None:
    """The map of stored vectors whose output is nearest to new vectors of held-out items."""
    old, new = items.old[items.held], items.new[items.held]

    def miss(each: FittedMap) -> float:
        distance = each.conversion.distance
        near = unit(each.conversion.convert(old), distance)
        return float(((near - unit(new, distance)) ** 2).sum(1).mean())

    return min((f for f in fits if f.to_new), key=miss, default=None)


def _between(
    inputs: Inputs, turned: Affine, sample: Blocks, relevant: Relevant, known: Block
) -> tuple[Floats, tuple[float, ...]]:
    """Queries on the circle; each half of them goes as far as serves the other half best."""
    old = inputs.old_queries
    if old is None:
        raise ValueError("inputs: expected queries by the old model")
    lists = {
        str(a): ResultList(apply(Between(turned, a), inputs.queries, old), lambda block: block.old)
        for a in SHARES
    }
    lists["new"] = ResultList(inputs.queries, lambda block: block.new)
    plan = Plan([Strategy(name, "", uses=(name,)) for name in lists], lists)
    result = evaluate(
        sample, relevant, known, plan, plan.strategies, inputs.distance,
        keep_nearest=inputs.judge == "agreement",
    )  # fmt: skip
    if inputs.judge == "agreement":
        values: dict[str, Values] = result.agreement("new")
        rows = np.arange(relevant.n_queries)
    else:
        values = {name: s[MAIN[inputs.judge]] for name, s in result.scores.items()}
        rows = np.flatnonzero(np.diff(relevant.offset) > 0)
    between, chosen = np.empty_like(old), []
    for half in (0, 1):
        of_other = rows % 2 != half
        means = [values[str(a)][of_other].mean() if of_other.any() else 0 for a in SHARES]
        chosen.append(SHARES[int(np.argmax(means))])
        between[half::2] = lists[str(chosen[-1])].queries[half::2]
    return between, tuple(chosen)
