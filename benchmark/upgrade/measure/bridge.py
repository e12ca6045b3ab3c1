"""Maps that are fitted on other texts: do they bring the models' spaces together, and how sure?

A map of new queries is asked for the old vector of the same text, among others: of the user's own
queries where both models have embedded them, else of held-out pairs. Where no pair is known, maps
are fitted several times, from other draws: spaces that align have one solution, others as many as
there are attempts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from benchmark.metrics.estimate import Estimate
from benchmark.metrics.kept_share import mean, measured
from benchmark.ranking.arrays import Floats, Values
from benchmark.upgrade.fit import maps as map_fits
from benchmark.upgrade.fit.maps import FittedMap
from benchmark.upgrade.measure.evaluation import evaluate
from benchmark.upgrade.measure.score_model import all_scores
from benchmark.upgrade.measure.study import (
    MAIN,
    Fold,
    StrategyOutcome,
    Study,
    closest,
    queries_between,
    rotation,
    scored_ranks,
    seen_pairs,
)
from benchmark.upgrade.read.apart import MOST_HELD, Apart
from benchmark.upgrade.read.gallery import Whole, about_mean
from benchmark.upgrade.read.request import FOUND, Tell
from benchmark.upgrade.search.strategies import make_plan

UNPAIRED = "mini-vec2vec:query"
ATTEMPTS = 3
"""Fits without pairs."""
MOST = ATTEMPTS // 2 + 1
"""Attempts that must agree."""
AGREE = 0.5
"""Mean cosine of a query by two attempts, about the means, of attempts that agree."""
_LEAST = 20  # queries by both models that say more than held-out pairs


@dataclass(frozen=True)
class Alignment:
    """A map's success at bringing new vectors to old ones of the same texts."""

    map: str  # its label
    by: Literal["queries", "pairs", "attempts"]
    found: Estimate | None  # share of texts whose own vector is the nearest; None: none is known
    among: int  # vectors that it is the nearest of
    # attempts without pairs that end in the same map, itself among them; None for a map of pairs
    agree: int | None
    attempts: int
    aligned: bool  # the map may be taken
    sure: bool  # False where the interval holds the least share, or some attempts differ


def bridge(
    apart: Apart, labels: Sequence[str], tell: Tell = lambda words: None
) -> tuple[Study, list[Alignment]]:
    """Fit maps on other texts, and evaluate what they do for the whole index as it is.

    ``labels`` are of maps of pairs; without pairs there is one map.
    """
    inputs = apart.inputs
    sample, distance = inputs.samples[0], inputs.distance
    pairs, seed = seen_pairs(sample), inputs.request.seed
    if apart.paired:
        fits, refused = map_fits.fit_all(labels, *pairs, distance, seed, tell)
        agree: int | None = None
    else:
        fits, refused, agree = _unpaired(pairs, apart, tell)
    aligned = [alignment_of(apart, each, agree) for each in fits]
    best = closest(fits, sample) if apart.paired else None
    turned = rotation(inputs, pairs) if apart.paired else None
    plan = make_plan(inputs, queries_between(inputs, turned), fits, best)
    plan.left_out.update(refused)
    plan = replace(plan, strategies=[s for s in plan.strategies if not s.embeds_gallery])
    relevant = inputs.pairs(apart.known.rows)
    whole = Whole(inputs.gallery)
    tell(f"searching the whole gallery of {inputs.gallery.rows:,} items")
    threads = inputs.gallery.threads
    ranks = evaluate(whole, relevant, apart.known, plan, distance, threads=threads).ranks
    outcomes = {}
    for each in plan.strategies:
        scored, hits = scored_ranks(ranks[each.name], relevant, inputs.criterion)
        outcomes[each.name] = StrategyOutcome(each, scored, hits, estimated=False)
    fold = Fold(sample, relevant, distance, MAIN[inputs.criterion], 1.0, plan, fits, best, ())
    asked, n = relevant.answered, inputs.gallery.rows
    groups = inputs.groups(asked)
    return Study(inputs, asked, groups, outcomes, relevant, ranks, n, fold, []), aligned


def refused_strategies(study: Study, aligned: Sequence[Alignment]) -> dict[str, str]:
    """Strategies that rest on a map across spaces that do not align, and why not to take them."""
    good = {each.map for each in aligned if each.aligned}
    out = {}
    for name, outcome in study.outcomes.items():
        fit = outcome.strategy.fitted
        maps = good if fit is None else good & {fit.label}
        if (fit is not None or name == "midpoint") and not maps:
            out[name] = "the spaces do not align"
    if not good:  # what needs no map does not either
        out |= {
            name: "vectors of two models"
            for name in ("naive", "truncate") if name in study.outcomes
        }  # fmt: skip
    return out


def _unpaired(
    pairs: tuple[Floats, Floats], apart: Apart, tell: Tell
) -> tuple[list[FittedMap], dict[str, str], int | None]:
    """The attempt that most of them agree with, and their number, itself among them."""
    inputs, fits = apart.inputs, []
    for k in range(ATTEMPTS):
        tell(f"fitting {UNPAIRED} without pairs, attempt {k + 1} of {ATTEMPTS}")
        seed = inputs.request.seed + k
        made, refused = map_fits.fit_all(
            [UNPAIRED], *pairs, inputs.distance, seed, lambda words: None, disjoint=False
        )
        if refused:
            return [], refused, None
        fits += made
    views = [about_mean(fit.conversion.view(inputs.queries)) for fit in fits]
    cosines = np.array([[(a * b).sum(1).mean() for b in views] for a in views])
    best = int(cosines.sum(1).argmax())
    return [fits[best]], {}, int((cosines[best] >= AGREE).sum())


def alignment_of(apart: Apart, fit: FittedMap, agree: int | None) -> Alignment:
    """Ask a map for the partners of texts by both models."""
    inputs, sample = apart.inputs, apart.inputs.samples[0]
    queries = inputs.old_queries
    if queries is not None and len(queries) >= _LEAST:
        by: Literal["queries", "pairs", "attempts"] = "queries"
        old, new, others = queries, inputs.queries, apart.others
    elif apart.paired:
        by, old, new = "pairs", sample.old[sample.held], sample.new[sample.held]
        others = _beside(apart, MOST_HELD - len(old))
    else:
        whole = agree is not None and agree >= MOST
        return Alignment(
            fit.label, "attempts", None, 0, agree, ATTEMPTS, whole, agree in (1, ATTEMPTS)
        )
    found = mean(measured(_partners_found(fit, old, new, others, inputs.distance)))
    aligned = found.known >= FOUND[by]
    sure = found.is_above(FOUND[by]) or found.is_below(FOUND[by])
    return Alignment(
        fit.label, by, found, len(old) + len(others), agree, ATTEMPTS if agree else 0, aligned, sure
    )


def _beside(apart: Apart, n: int) -> Floats:
    """Old vectors of ``n`` texts that held-out pairs are not: of fitted pairs, then of items.

    A share of texts that are found is of as many others then, however few the pairs are.
    """
    sample = apart.inputs.samples[0]
    rng = np.random.default_rng([apart.inputs.request.seed, 9])
    some = rng.permutation(np.flatnonzero(sample.fitted))[:n]
    return np.concatenate([sample.old[some], apart.others])[:n]


def _partners_found(
    fit: FittedMap, old: Floats, new: Floats, others: Floats, distance: str
) -> Values:
    """1 for each text whose own old vector is the nearest of its new one, ``[n]``.

    A map of stored vectors brings all of them to the new queries; one of queries the new ones to
    the old.
    """
    stored = np.concatenate([old, others])
    if fit.direction == "gallery":
        stored = fit.conversion.convert(stored)
    scores = all_scores(fit.conversion.view(new), stored, distance)
    own = scores[np.arange(len(old)), np.arange(len(old))]
    return np.asarray((scores > own[:, None]).sum(axis=1) == 0, np.float64)
