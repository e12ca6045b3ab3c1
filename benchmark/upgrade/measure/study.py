"""The study: maps fitted on documents of the sample, strategies evaluated on queries.

All strategies are evaluated on the same queries, with the same relevant items, in the same gallery,
which is read twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from benchmark.config import registry
from benchmark.contract.arrays import apply
from benchmark.contract.conversion import Conversion
from benchmark.contract.interpolation import SHARES, Between, best_share, turn
from benchmark.metrics.catalog import describe
from benchmark.metrics.kept_share import Scored, measured
from benchmark.metrics.similarity import unit
from benchmark.models.parts import Affine
from benchmark.ranking.arrays import Floats, Ints, Mask, Values
from benchmark.upgrade.fit import maps as map_fits
from benchmark.upgrade.fit.maps import FittedMap, FitTimes
from benchmark.upgrade.measure.evaluation import (
    AGREEMENT,
    HeldOut,
    Scores,
    StrategyEvaluation,
    scores_of,
)
from benchmark.upgrade.measure.list_estimate import PartlyEmbedded
from benchmark.upgrade.measure.unseen import Unseen, Window
from benchmark.upgrade.read.gallery import EmbeddedSample, Whole, one_pass
from benchmark.upgrade.read.inputs import Inputs
from benchmark.upgrade.read.qrels import RelevantPairs
from benchmark.upgrade.read.request import KEEP, REEMBED, Interim, Tell, prefixed
from benchmark.upgrade.read.sampling import MOST_PAIRS, at_most
from benchmark.upgrade.search.lists import ResultList
from benchmark.upgrade.search.strategies import (
    BETWEEN,
    Strategy,
    StrategyPlan,
    cross_fitted,
    make_plan,
    map_list,
)

MAIN = {"qrels": "ndcg_at_10", "labels": "map", "agreement": AGREEMENT}
"""The metric that decides, by the criterion."""


@dataclass(frozen=True)
class StrategyOutcome:
    """A strategy and its scores on the evaluated queries."""

    strategy: Strategy
    scored: Mapping[str, Scored]  # metric -> scores by query
    # chance that a query's first results hold a relevant item, [n]: 0 or 1 where it is
    # measured; nothing by agreement
    hits: Values
    estimated: bool  # new vectors were estimated for most stored items

    @property
    def scores(self) -> Scores:
        """Metric -> one value a query."""
        return {key: each.values for key, each in self.scored.items()}


@dataclass(frozen=True)
class Fold(HeldOut):
    """Maps fitted on one sample, and the strategies that use them."""

    plan: StrategyPlan
    maps: list[FittedMap]  # as they were fitted
    best: FittedMap | None  # of stored vectors: it comes closest to new ones of held-out items
    # of the way that interpolated queries go: of both halves of the queries, and of all, as saved
    shares: tuple[float, ...]

    def scored_lists(
        self, lists: Mapping[str, ResultList], strategies: Sequence[str] = (),
        against: str = REEMBED, distance: str = "",
    ) -> dict[str, Scored]:  # fmt: skip
        """As :meth:`scored`, of lists, of strategies by name, and of ``against``."""
        plan = StrategyPlan.of_lists(lists)
        plan.lists.update(self.plan.lists)
        wanted = {*strategies, against}
        plan.strategies.extend(s for s in self.plan.strategies if s.name in wanted)
        return self.scored(plan, against, distance)


@dataclass(frozen=True)
class Study:
    """All that was measured."""

    inputs: Inputs
    queries: Ints  # rows of the evaluated ones, [n]
    # of queries that share their relevant items, which are drawn together, [n]; None
    # where each is drawn alone
    groups: Ints | None
    outcomes: dict[str, StrategyOutcome]  # by name of the strategy
    relevant: RelevantPairs  # those that count
    ranks: dict[str, Ints]  # strategy -> rank of each counted pair
    n_gallery: int  # items of the gallery that is searched
    first: Fold  # the one whose maps are reported
    refits: Sequence[Fold]  # the same maps fitted on other items; none where few were seen

    @property
    def metric(self) -> str:
        """The one that decides."""
        return MAIN[self.inputs.criterion]

    @property
    def folds(self) -> Sequence[Fold]:
        """Those whose maps score the gallery's items, each item by one that has not seen it."""
        return self.refits or [self.first]

    @property
    def plan(self) -> StrategyPlan:
        """The strategies, each item scored by maps that have not seen it."""
        plans = [fold.plan for fold in self.folds]
        return cross_fitted(self.first.plan, plans, samples_of(self.folds))

    @property
    def saved_on(self) -> EmbeddedSample:
        """The sample, fitted on what the maps saw that score it: those of a map that is saved."""
        seen = np.logical_or.reduce([fold.sample.fitted for fold in self.folds])
        rng = np.random.default_rng([self.inputs.request.seed, 10])
        return replace(self.first.sample, fitted=at_most(seen, MOST_PAIRS, rng))

    @property
    def sample_groups(self) -> Ints | None:
        """As ``groups``, of the queries with a relevant item in the smaller gallery."""
        return self.inputs.groups(self.first.relevant.answered)


def study(inputs: Inputs, labels: Sequence[str], tell: Tell = lambda words: None) -> Study:
    """Fit the maps of these labels, and evaluate all strategies."""
    held = np.logical_or.reduce([sample.held for sample in inputs.samples])
    relevant = inputs.pairs(inputs.samples[0].rows[held])
    first_sample, *samples = inputs.samples
    times = FitTimes(labels, len(inputs.samples))
    first = _fold(inputs, first_sample, labels, tell, times)
    refits = [
        refitted(inputs, first, sample, prefixed(tell, f"again, {k} of {len(samples)}"), times)
        for k, sample in enumerate(samples, 1)
    ]
    folds = refits or [first]
    tell(f"searching {first.sample.held.sum():,} held-out items")
    held_out = first.evaluate(first.plan)
    agreement = held_out.agreement(REEMBED, first.nearest)
    if inputs.criterion == "agreement":
        outcomes = {
            s.name: StrategyOutcome(s, {AGREEMENT: measured(agreement[s.name])}, np.empty(0), False)
            for s in first.plan.strategies
        }
        n = int(first.sample.held.sum())
        every = np.arange(first.relevant.n_queries)
        return Study(inputs, every, None, outcomes, first.relevant, held_out.ranks, n, first, [])
    plan = cross_fitted(first.plan, [fold.plan for fold in folds], samples_of(folds))
    found = on_whole(inputs, plan, first.sample, relevant, tell)
    outcomes, ranks = _outcomes(inputs, plan, found, relevant, agreement)
    groups = inputs.groups(relevant.answered)
    n = inputs.gallery.rows
    return Study(inputs, relevant.answered, groups, outcomes, relevant, ranks, n, first, refits)


def _fold(
    inputs: Inputs, sample: EmbeddedSample, labels: Sequence[str], tell: Tell, times: FitTimes
) -> Fold:
    distance, seed = inputs.distance, inputs.request.seed
    relevant = inputs.pairs(sample.rows[sample.held], required=False)
    share = int(sample.held.sum()) / inputs.gallery.rows
    held_out = HeldOut(sample, relevant, distance, MAIN[inputs.criterion], share)
    pairs = seen_pairs(sample)
    quick = [label for label in labels if label in map_fits.QUICK]
    trained = [label for label in labels if label not in quick]
    fits, refused = map_fits.fit_all(quick, *pairs, distance, seed, tell, times)
    if trained and fits:
        tell(_interim(inputs, fits, held_out))
    more, others = map_fits.fit_all(trained, *pairs, distance, seed, tell, times)
    fits, refused = fits + more, refused | others
    best = closest(fits, sample)
    tell("choosing between queries")
    turned = rotation(inputs, pairs)
    shares = () if turned is None else _shares(inputs, turned, held_out)
    plan = make_plan(inputs, queries_between(inputs, turned, shares), fits, best)
    plan.left_out.update(refused)
    return Fold(**vars(held_out), plan=plan, maps=fits, best=best, shares=shares)


def refitted(
    inputs: Inputs, fold: Fold, sample: EmbeddedSample, tell: Tell = lambda words: None,
    times: FitTimes | None = None,
) -> Fold:  # fmt: skip
    """The fold with its maps fitted on other items of its sample."""
    labels, pairs = [each.label for each in fold.maps], seen_pairs(sample)
    fits, _ = map_fits.fit_all(labels, *pairs, inputs.distance, inputs.request.seed, tell, times)
    best = None if fold.best is None else fold.best.label
    found = replace(
        fold, sample=sample, maps=fits, best=next((f for f in fits if f.label == best), None)
    )
    return replace(found, plan=plan_again(inputs, found))


def plan_again(inputs: Inputs, fold: Fold) -> StrategyPlan:
    """The plan of a fold's maps, for the queries of some inputs."""
    turned = rotation(inputs, seen_pairs(fold.sample))
    return make_plan(inputs, queries_between(inputs, turned, fold.shares), fold.maps, fold.best)


def seen_pairs(sample: EmbeddedSample) -> tuple[Floats, Floats]:
    """Old and new vectors that maps are fitted on."""
    return sample.old[sample.fitted], sample.new[sample.fitted]


def _interim(inputs: Inputs, fits: Sequence[FittedMap], held_out: HeldOut) -> Interim:
    """Scores of maps that are fitted, while others are trained, on held-out items."""
    lists = {REEMBED: ResultList(inputs.queries, lambda block: block.new)}
    if inputs.old_queries is not None:
        lists[KEEP] = ResultList(inputs.old_queries, lambda block: block.old)
    lists |= {each.label: map_list(each, inputs.queries) for each in fits}
    scored = held_out.scored(StrategyPlan.of_lists(lists))
    means = sorted(((each.mean, name) for name, each in scored.items()), reverse=True)
    shown = ", ".join(f"{name} {100 * mean:.1f}" for mean, name in means)
    held, label = int(held_out.sample.held.sum()), describe(held_out.metric).label
    return Interim(f"so far, {label} among {held:,} held-out items: {shown}")


def samples_of(folds: Sequence[Fold]) -> list[EmbeddedSample]:
    """The sample that the maps of each fold were fitted on."""
    return [fold.sample for fold in folds]


def on_whole(
    inputs: Inputs, plan: StrategyPlan, sample: EmbeddedSample, relevant: RelevantPairs, tell: Tell
) -> dict[str, Ints]:
    """Ranks of the counted pairs by strategy, ``[pairs]``, or ``[draws, pairs]`` of estimates."""
    gallery, whole = inputs.gallery, Whole(inputs.gallery)
    tell(f"searching the whole gallery of {gallery.rows:,} items")
    threads = gallery.threads
    run = StrategyEvaluation(
        relevant, sample.known, plan, inputs.distance, new=gallery.complete, threads=threads
    )
    unseen: Unseen | None = None
    if not gallery.complete:
        rows = np.unique(inputs.qrels.rows)
        known = PartlyEmbedded(
            gallery, relevant, sample, inputs.distance, rows, inputs.request.seed, threads
        )
        unseen = Unseen(known, plan)
    found, *results = one_pass(whole, [run.search, *(unseen.jobs if unseen else ())])
    rescored = run.rescoring(found)
    windows: dict[str, Window | None] = {}
    if unseen is not None:
        tell("estimating what the other items would do")
        unseen.take(results)
        windows = {s.name: unseen.window(s, found) for s in plan.strategies if s.embeds_gallery}
    some = [window for window in windows.values() if window is not None]
    jobs = [*rescored.values(), *(job for window in some for job in window.jobs)]
    results = one_pass(whole, jobs)
    rest = iter(results[len(rescored) :])
    for window in some:
        window.take(next(rest), next(rest))
    out = dict(run.evaluated(found, dict(zip(rescored, results, strict=False))).ranks)
    if unseen is not None:
        by_name = {each.name: each for each in plan.strategies}
        out |= {name: unseen.ranks(by_name[name], window) for name, window in windows.items()}
    return out


def _outcomes(
    inputs: Inputs, plan: StrategyPlan, found: Mapping[str, Ints], relevant: RelevantPairs,
    agreement: Scores,
) -> tuple[dict[str, StrategyOutcome], dict[str, Ints]]:  # fmt: skip
    """Scores by relevance, and ranks of the counted pairs, by name of the strategy."""
    outcomes, ranks = {}, {}
    for each in plan.strategies:
        its = found[each.name]
        scored, hits = scored_ranks(its, relevant, inputs.criterion)
        scored[AGREEMENT] = measured(agreement[each.name][relevant.answered])
        outcomes[each.name] = StrategyOutcome(each, scored, hits, estimated=its.ndim == 2)
        ranks[each.name] = its if its.ndim == 1 else np.median(its, axis=0).astype(np.int64)
    return outcomes, ranks


def score_more(study: Study, plans: Sequence[StrategyPlan], tell: Tell) -> dict[str, Scored]:
    """Scores of other strategies, by name, in the gallery that the study's own are scored in.

    ``plans`` are those of each fold.
    """
    inputs, relevant = study.inputs, study.relevant
    if inputs.criterion == "agreement":
        new = StrategyPlan.of_lists({REEMBED: study.first.plan.lists["new"]})
        new.strategies.extend(plans[0].strategies)
        new.lists.update(plans[0].lists)
        return study.first.scored(new)
    plan = cross_fitted(plans[0], plans, samples_of(study.folds))
    ranks = on_whole(inputs, plan, study.first.sample, relevant, tell)
    return {
        name: scored_ranks(its, relevant, inputs.criterion)[0][study.metric]
        for name, its in ranks.items()
    }


def scored_ranks(
    ranks: Ints, relevant: RelevantPairs, criterion: str
) -> tuple[dict[str, Scored], Values]:
    """All metrics, and the chance that each query's first results hold a relevant item."""
    hit = "recall_at_1" if criterion == "labels" else "recall_at_10"
    if ranks.ndim == 1:
        scores = scores_of(ranks, relevant)
        return {k: measured(v) for k, v in scores.items()}, (scores[hit] > 0).astype(np.float64)
    draws = [scores_of(row, relevant) for row in ranks]
    stacked = {key: np.stack([each[key] for each in draws]) for key in draws[0]}
    hits = (stacked[hit] > 0).mean(axis=0)
    return {key: Scored.of_draws(values) for key, values in stacked.items()}, hits


def closest(fits: Sequence[FittedMap], items: EmbeddedSample) -> FittedMap | None:
    """The map of stored vectors whose output is nearest to new vectors of held-out items."""
    old, new = items.old[items.held], items.new[items.held]

    def miss(each: FittedMap) -> float:
        distance = each.conversion.distance
        near = unit(each.conversion.convert(old), distance)
        return float(((near - unit(new, distance)) ** 2).sum(1).mean())

    return min((f for f in fits if f.to_new), key=miss, default=None)


def rotation(inputs: Inputs, pairs: tuple[Floats, Floats]) -> Affine | None:
    """The rotation that queries between both models need; None where these cannot be."""
    if inputs.old_queries is None or inputs.distance != "cosine":
        return None
    return turn(*(torch.from_numpy(np.ascontiguousarray(side)) for side in pairs))


def queries_between(
    inputs: Inputs, turned: Affine | None, shares: Sequence[float] = ()
) -> dict[str, Floats]:
    """Queries between both models': half-way, and each half of them by its share of the way."""
    old = inputs.old_queries
    if turned is None or old is None:
        return {}
    found = {"midpoint": apply(Between(turned, 0.5), inputs.queries, old)}
    if shares:
        found["slerp"] = np.empty_like(old)
    for half, share in enumerate(shares[:2]):
        found["slerp"][half::2] = apply(Between(turned, share), inputs.queries, old)[half::2]
    return found


def _shares(inputs: Inputs, turned: Affine, held_out: HeldOut) -> tuple[float, ...]:
    """Shares of the way: each half of the queries goes as far as serves the other half best.

    The third serves all of them best.
    """
    old = inputs.old_queries
    lists = {
        str(a): ResultList(apply(Between(turned, a), inputs.queries, old), lambda block: block.old)
        for a in SHARES
    }
    lists["new"] = ResultList(inputs.queries, lambda block: block.new)
    scored, relevant = held_out.scored(StrategyPlan.of_lists(lists), "new"), held_out.relevant
    by_agreement = held_out.metric == AGREEMENT
    rows = np.arange(relevant.n_queries) if by_agreement else relevant.answered

    def share(some: Mask) -> float:
        known = some.any()
        return best_share(lambda a: scored[str(a)].values[some].mean() if known else 0.0)

    return share(rows % 2 == 1), share(rows % 2 == 0), share(rows >= 0)


def saved(study: Study, name: str | None, tell: Tell) -> Conversion | None:
    """The conversion of a strategy, as a deployment needs it; None of those without.

    Where maps were fitted several times it is fitted once more, on all that those saw that score:
    it is no worse than these, as one fold's map may be.
    """
    fit = None if name is None else study.outcomes[name].strategy.fitted
    if fit is not None and not study.refits:
        return fit.conversion
    inputs, pairs = study.inputs, seen_pairs(study.saved_on)
    if fit is not None:
        tell, seed = prefixed(tell, "to be saved"), inputs.request.seed
        (last,), _ = map_fits.fit_all([fit.label], *pairs, inputs.distance, seed, tell)
        return last.conversion
    if name not in BETWEEN:
        return None
    share = 0.5 if name == "midpoint" else study.first.shares[-1]
    method: Any = registry.method("slerp", {"share": share})
    found: Conversion = method.fit(*pairs)
    return found
