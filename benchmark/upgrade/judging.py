"""The study: maps fitted on documents of the sample, strategies judged on queries.

What a map was fitted on is never a relevant item afterwards. All strategies are judged on the same
queries, with the same relevant items, in the same gallery.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmark.errors import BenchError
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.upgrade import maps as map_fits
from benchmark.upgrade.evaluation import AGREEMENT, Evaluated, Scores, Values, evaluate
from benchmark.upgrade.gallery import Block, Blocks, Gallery, StandIn, unit
from benchmark.upgrade.inputs import Inputs
from benchmark.upgrade.interpolation import SHARES, rotated, slerp
from benchmark.upgrade.maps import FittedMap
from benchmark.upgrade.search import Relevant, ResultList
from benchmark.upgrade.strategies import REEMBED, Plan, Strategy, make_plan

MOST_PAIRS = 20_000
"""Pairs that maps are fitted on, at most."""
MOST_HELD = 20_000
"""Held-out items of the smaller gallery, beside those that are relevant."""
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
        fitted: Which embedded items the maps were fitted on, ``[s]``.
        held: Which the smaller gallery has, ``[s]``.
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
    fitted: Mask
    held: Mask
    relevant: Relevant
    ranks: dict[str, Ints]
    shares: tuple[float, ...]
    n_gallery: int
    distance: Any = field(default="cosine")

    @property
    def known(self) -> Block:
        """All items with vectors by both models."""
        return known_block(self.inputs.gallery)

    @property
    def sample(self) -> Blocks:
        """Passes over the smaller gallery of held-out items."""
        return partial(self.inputs.gallery.some, self.held)


def known_block(gallery: Gallery) -> Block:
    """All items with vectors by both models."""
    return Block(gallery.embedded, gallery.old, partial(np.asarray, gallery.new))


def split(inputs: Inputs, seed: int) -> tuple[Mask, Mask]:
    """Which embedded items maps are fitted on, and which are held out, ``[s]`` each.

    Where few of the sample's items are relevant these are all held out, and a fifth of the others;
    else a half of all is.
    """
    rng, s = np.random.default_rng([seed, 2]), len(inputs.gallery.embedded)
    relevant = np.isin(inputs.gallery.embedded, inputs.relevance.rows)
    if inputs.judge != "agreement" and relevant.sum() <= s // 2:
        held = relevant | (rng.random(s) < 0.2)
    else:
        held = rng.random(s) < 0.5
    fitted = np.zeros(s, bool)
    fitted[rng.permutation(np.flatnonzero(~held))[:MOST_PAIRS]] = True
    held = ~fitted
    few = np.flatnonzero(held & ~relevant)
    held[rng.permutation(few)[MOST_HELD:]] = False
    return fitted, held


def judged_pairs(inputs: Inputs, fitted: Mask) -> Relevant:
    """Pairs of queries and relevant items; those count that no map has seen, with a new vector.

    Raises:
        BenchError: If none counts.
    """
    of = inputs.relevance
    query = np.repeat(np.arange(len(of.offset) - 1), np.diff(of.offset))
    rows, gains = of.rows, of.gains
    judged = np.isin(rows, inputs.gallery.embedded[~fitted])
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
    fitted, held = split(inputs, seed)
    relevant, known = judged_pairs(inputs, fitted), known_block(gallery)
    pairs = gallery.old[fitted], gallery.new[fitted]
    fits, refused = map_fits.fit_all(labels, *pairs, distance, seed, tell)
    best = _closest(fits, gallery, held)
    tell("choosing between queries")
    sample = partial(gallery.some, held)
    turned = between = None
    shares: tuple[float, ...] = ()
    if inputs.old_queries is not None and distance == "cosine":
        turned = rotated(gallery.old[fitted], gallery.new[fitted], inputs.queries)
        between, shares = _between(inputs, turned, sample, relevant, known)
    plan = make_plan(
        gallery, inputs.queries, inputs.old_queries, turned, between, fits, best, distance
    )
    plan.left_out.update(refused)
    tell(f"searching {held.sum():,} held-out items")
    run = partial(evaluate, relevant=relevant, known=known, plan=plan, distance=distance)
    on_sample = run(sample, strategies=plan.strategies, keep_nearest=True)
    agreement = on_sample.agreement(REEMBED)
    answered = np.flatnonzero(np.diff(relevant.offset) > 0)
    if inputs.judge == "agreement":
        answered = np.arange(relevant.n_queries)
        outcomes = {
            s.name: Outcome(s, {AGREEMENT: agreement[s.name]}, False) for s in plan.strategies
        }
        ranks, n_gallery = on_sample.ranks, int(held.sum())
    else:
        tell(f"searching the whole gallery of {gallery.rows:,} items")
        whole, correct = _whole(run, inputs, plan, held, on_sample, seed, tell)
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
        outcomes, plan, fits, best, fitted, held, relevant, ranks, shares, n_gallery, distance,
    )  # fmt: skip


def _whole(
    run: Callable[..., Evaluated], inputs: Inputs, plan: Plan, held: Mask, on_sample: Evaluated,
    seed: int, tell: Tell,
) -> tuple[Evaluated, dict[str, tuple[Scores, Scores]]]:  # fmt: skip
    """All strategies on the whole gallery; scores on the sample, true and with stand-ins."""
    gallery = inputs.gallery
    if gallery.complete:
        return run(gallery.whole, strategies=plan.strategies), {}
    fitted = ~held
    conversion = map_fits.fit(
        "linear", gallery.old[fitted], gallery.new[fitted], inputs.distance, seed
    ).conversion
    relevant = np.isin(gallery.embedded, inputs.relevance.rows)
    # A copy of a relevant item's own new vector elsewhere would compete with it.
    donors = held & ~relevant if (held & ~relevant).any() else held
    stand_in = StandIn.fitted(conversion, gallery.old[donors], gallery.new[donors])
    whole = run(partial(gallery.whole, stand_in), strategies=plan.strategies)
    tell("measuring what the estimate misses")
    guessed = [s for s in plan.strategies if s.embeds_gallery]
    instead = run(partial(gallery.some, held, stand_in, relevant), strategies=guessed)
    pairs = {s.name: (on_sample.scores[s.name], instead.scores[s.name]) for s in guessed}
    return whole, pairs


def _corrected(whole: Scores, sample: tuple[Scores, Scores] | None) -> Scores:
    if sample is None:
        return whole
    true, instead = sample
    return {key: values + true[key] - instead[key] for key, values in whole.items()}


def _closest(fits: Sequence[FittedMap], gallery: Gallery, held: Mask) -> FittedMap | None:
    """The map of stored vectors whose output is nearest to new vectors of held-out items."""

    def miss(each: FittedMap) -> float:
        distance = each.conversion.distance
        near = unit(each.conversion.convert(gallery.old[held]), distance)
        return float(((near - unit(gallery.new[held], distance)) ** 2).sum(1).mean())

    return min((f for f in fits if f.to_new), key=miss, default=None)


def _between(
    inputs: Inputs, turned: Floats, sample: Blocks, relevant: Relevant, known: Block
) -> tuple[Floats, tuple[float, ...]]:
    """Queries on the circle; each half of them goes as far as serves the other half best."""
    old = inputs.old_queries
    if old is None:
        raise ValueError("inputs: expected queries by the old model")
    lists = {str(a): ResultList(slerp(old, turned, a), lambda block: block.old) for a in SHARES}
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
