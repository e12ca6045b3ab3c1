"""The study: maps fitted on documents of the sample, strategies judged on queries.

What a map was fitted on is never a relevant item afterwards. All strategies are judged on the same
queries, with the same relevant items, in the same gallery.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmark.contract.arrays import apply
from benchmark.contract.interpolation import SHARES, Between, turn
from benchmark.errors import BenchError
from benchmark.models.parts import Affine
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.upgrade import maps as map_fits
from benchmark.upgrade.evaluation import AGREEMENT, Evaluated, Scores, Values, evaluate
from benchmark.upgrade.gallery import Block, Blocks, Sample, StandIn, Whole, unit
from benchmark.upgrade.inputs import Inputs
from benchmark.upgrade.maps import FittedMap
from benchmark.upgrade.search import Relevant, ResultList
from benchmark.upgrade.strategies import REEMBED, Plan, Strategy, make_plan

MOST_PAIRS = 20_000
"""Pairs that maps are fitted on, at most."""
MOST_HELD = 20_000
"""Held-out items of the smaller gallery, beside those that are relevant."""
MOST_BYTES = 2**30
"""Of vectors of held-out items that are relevant; of more of them some are drawn."""
MAIN = {"qrels": "ndcg_at_10", "labels": "map", "agreement": AGREEMENT}
"""The metric that decides, by what is judged with."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """A strategy and its scores on the judged queries.

    Attributes:
        scores: Metric -> one value a query; an estimated one may leave [0, 1].
        estimated: New vectors of stored items were estimated for most of them.
    """

    strategy: Strategy
    scores: Scores
    estimated: bool


@dataclass(frozen=True)
class Study:
    """All that was measured.

    Attributes:
        metric: The one that decides.
        queries: Rows of the judged queries, ``[n]``.
        groups: Class of each of them, where classes are what is judged by; else None.
        outcomes: By name of the strategy.
        plan: With the lists that answer.
        maps: As they were fitted.
        best: The map of stored vectors that comes closest to new vectors of held-out items.
        sample: Items in memory: those that maps were fitted on, and the smaller gallery.
        relevant: The judged pairs.
        ranks: Strategy -> rank of each judged pair in the gallery that is reported.
        shares: Share of the way that interpolated queries go, of each half of the queries.
        n_gallery: Items of the gallery that is judged in.
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
    relevant: Relevant
    ranks: dict[str, Ints]
    shares: tuple[float, ...]
    n_gallery: int
    distance: Any = field(default="cosine")


def split(inputs: Inputs, seed: int) -> tuple[Mask, Mask]:
    """Which embedded items maps are fitted on, and which are held out, ``[s]`` each.

    Where few of the sample's items are relevant these are all held out, and a fifth of the others;
    else a half of all is. ``MOST_HELD`` others are kept, and as many relevant ones as
    memory should hold.
    """
    gallery = inputs.gallery
    rng, s = np.random.default_rng([seed, 2]), len(gallery.embedded)
    relevant = np.isin(gallery.embedded, inputs.relevance.rows)
    if inputs.judge != "agreement" and relevant.sum() <= s // 2:
        held = relevant | (rng.random(s) < 0.2)
    else:
        held = rng.random(s) < 0.5
    fitted = np.zeros(s, bool)
    fitted[rng.permutation(np.flatnonzero(~held))[:MOST_PAIRS]] = True
    held = ~fitted
    most = MOST_BYTES // (4 * (gallery.stored.dim + gallery.new.dim))
    for some, n in ((~relevant, MOST_HELD), (relevant, max(most, MOST_HELD))):
        held[rng.permutation(np.flatnonzero(held & some))[n:]] = False
    return fitted, held


def make_sample(inputs: Inputs, seed: int) -> Sample:
    """Items of :func:`split`, with their vectors."""
    fitted, held = split(inputs, seed)
    places = np.flatnonzero(fitted | held)
    rows = inputs.gallery.embedded[places]
    return Sample(rows, *inputs.gallery.sample(places), fitted[places], held[places])


def judged_pairs(inputs: Inputs, held: Ints) -> Relevant:
    """Pairs of queries and relevant items; those count that are held out, ``held`` rows.

    Raises:
        BenchError: If none counts.
    """
    of = inputs.relevance
    query = np.repeat(np.arange(len(of.offset) - 1), np.diff(of.offset))
    rows, gains = of.rows, of.gains
    judged = np.isin(rows, held)
    if inputs.own is not None:
        other = rows != inputs.own[query]
        with_own = np.flatnonzero(inputs.own >= 0)
        query = np.concatenate([query[other], with_own])
        rows = np.concatenate([rows[other], inputs.own[with_own]])
        gains = np.concatenate([gains[other], np.ones(len(with_own))])
        judged = np.concatenate([judged[other], np.zeros(len(with_own), bool)])
        order = np.lexsort((rows, query))
        query, rows, gains, judged = query[order], rows[order], gains[order], judged[order]
    if of.known and not judged.any():
        raise BenchError(
            "relevance: expected new vectors of relevant items, got none: embed the items that "
            "are relevant to the queries, too"
        )
    return Relevant(len(of.offset) - 1, query, rows, gains, judged)


def study(
    inputs: Inputs, labels: Sequence[str], seed: int = 0, tell: Tell = lambda words: None
) -> Study:
    """Fit the maps and judge all strategies.

    Args:
        inputs: Vectors and relevance.
        labels: Of the maps.
        seed: Of the split and of maps that draw.
        tell: Called with what is done next.
    """
    gallery, distance = inputs.gallery, inputs.distance
    items = make_sample(inputs, seed)
    relevant, known = judged_pairs(inputs, items.rows[items.held]), items.known
    pairs = items.old[items.fitted], items.new[items.fitted]
    fits, refused = map_fits.fit_all(labels, *pairs, distance, seed, tell)
    best = _closest(fits, items)
    tell("choosing between queries")
    middle = between = None
    shares: tuple[float, ...] = ()
    if inputs.old_queries is not None and distance == "cosine":
        old, new = (torch.from_numpy(np.ascontiguousarray(side)) for side in pairs)
        turned = turn(old, new)
        middle = apply(Between(turned, 0.5), inputs.queries, inputs.old_queries)
        between, shares = _between(inputs, turned, items.blocks, relevant, known)
    plan = make_plan(
        gallery, inputs.queries, inputs.old_queries, middle, between, fits, best, distance
    )
    plan.left_out.update(refused)
    tell(f"searching {items.held.sum():,} held-out items")
    run = partial(evaluate, relevant=relevant, known=known, plan=plan, distance=distance)
    on_sample = run(items.blocks, strategies=plan.strategies, keep_nearest=True)
    agreement = on_sample.agreement(REEMBED)
    answered = np.flatnonzero(np.diff(relevant.offset) > 0)
    if inputs.judge == "agreement":
        answered = np.arange(relevant.n_queries)
        outcomes = {
            s.name: Outcome(s, {AGREEMENT: agreement[s.name]}, False) for s in plan.strategies
        }
        ranks, n_gallery = on_sample.ranks, int(items.held.sum())
    else:
        tell(f"searching the whole gallery of {gallery.rows:,} items")
        known_map = {each.label: each for each in fits}.get("linear")
        whole, correct = _whole(run, inputs, plan, items, on_sample, known_map, seed, tell)
        outcomes = {
            s.name: Outcome(
                s,
                _corrected(whole.scores[s.name], correct.get(s.name))
                | {AGREEMENT: agreement[s.name][answered]},
                s.name in correct,
            )
            for s in plan.strategies
        }
        ranks, n_gallery = whole.ranks, gallery.rows
    groups = None
    if inputs.judge == "labels":  # queries of a class have the same relevant items
        groups = inputs.relevance.rows[inputs.relevance.offset[answered]]
    return Study(
        inputs, MAIN[inputs.judge], answered, groups,
        outcomes, plan, fits, best, items, relevant, ranks, shares, n_gallery, distance,
    )  # fmt: skip


def _whole(
    run: Callable[..., Evaluated], inputs: Inputs, plan: Plan, items: Sample,
    on_sample: Evaluated, linear: FittedMap | None, seed: int, tell: Tell,
) -> tuple[Evaluated, dict[str, tuple[Scores, Scores]]]:  # fmt: skip
    """All strategies on the whole gallery; scores on the sample, true and with stand-ins."""
    gallery, held = inputs.gallery, items.held
    if gallery.complete:
        return run(Whole(gallery), strategies=plan.strategies), {}
    linear = linear or map_fits.fit(
        "linear", items.old[items.fitted], items.new[items.fitted], inputs.distance, seed
    )
    relevant = np.isin(items.rows, inputs.relevance.rows)
    # A copy of a relevant item's own new vector elsewhere would compete with it.
    donors = held & ~relevant if (held & ~relevant).any() else held
    stand_in = StandIn.fitted(linear.conversion, items.old[donors], items.new[donors])
    whole = run(Whole(gallery, stand_in), strategies=plan.strategies)
    tell("measuring what the estimate misses")
    guessed = [s for s in plan.strategies if s.embeds_gallery]
    instead = run(partial(items.blocks, stand_in, relevant), strategies=guessed)
    pairs = {s.name: (on_sample.scores[s.name], instead.scores[s.name]) for s in guessed}
    return whole, pairs


def _corrected(whole: Scores, sample: tuple[Scores, Scores] | None) -> Scores:
    if sample is None:
        return whole
    true, instead = sample
    return {key: values + true[key] - instead[key] for key, values in whole.items()}


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
