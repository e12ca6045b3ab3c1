"""Several new models on the same queries: their ranks, and the one to take."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any

import numpy as np

from benchmark.errors import BenchError
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.kept_share import Scored, contrast, difference, mean
from benchmark.metrics.statistics import surely
from benchmark.ranking.arrays import Ints
from benchmark.upgrade.decide.verdict import LEVEL, Decision
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.read.request import KEEP, REEMBED
from benchmark.upgrade.search.strategies import cost_of

RULE = (
    "Each model is ranked by the score of what the rule recommends for it; its rank is 1 and the "
    "number of models that surely beat it (the 95 % interval of the paired difference on the same "
    "queries leaves out 0). Of those ranked first, one that is an upgrade goes before one with "
    "which the old model is kept; then the one with the least effort is taken, then the one whose "
    "vectors take the fewest bytes, then the best score. Where the old model is kept with all of "
    "them, the one that scores best with everything embedded again is told. An upgrade is sure by "
    "a one-sided test at 2.5 % with Holm's correction for all models."
)


@dataclass(frozen=True)
class ModelPlace:
    """One new model among others."""

    name: str
    strategy: str  # what the rule recommends for it
    rank: int  # 1 and the number of models that surely beat it
    score: Estimate  # of the strategy, on the queries of all models
    again: Estimate  # of embedding everything again with it
    to_old: Estimate | None  # None without old queries, or where the old model is kept
    sure: bool | None  # better than the old model, corrected for all models; None as above
    hours: float
    money: float
    index_bytes: int


@dataclass(frozen=True)
class ModelComparison:
    """Places of all models, and the model to take."""

    taken: str
    queries: int  # number that all models were compared on
    left_out: int  # the most judged queries of one model that not all have
    tied: list[str]  # other upgrades that cannot be told from the one that is taken
    places: list[ModelPlace]  # the best rank first
    differences: list[dict[str, Any]]  # ``of`` a model ``to`` another one, paired


def compare_models(
    studies: Mapping[str, Study], decisions: Mapping[str, Decision], places: Mapping[str, Ints]
) -> ModelComparison:
    """Compare models on the queries that all of them answer.

    Args:
        studies: By name of the model; all of the same items and judgements.
        decisions: What the rule recommends for each.
        places: Row of each query of a model among the first model's, ``[q]``; -1 for none.

    Raises:
        BenchError: If they have no judged query in common, or nothing can be done with one.
    """
    where = {name: places[name][each.queries] for name, each in studies.items()}
    common = reduce(np.intersect1d, where.values())
    common = common[common >= 0]
    left_out = max(map(len, where.values())) - len(common)
    if not len(common):
        raise BenchError("models: expected judged queries in common, got none: are ids the same?")
    first = next(iter(studies.values()))
    groups = first.groups
    if groups is not None:
        groups = groups[np.searchsorted(next(iter(where.values())), common)]
    # Draws of two models' estimates are not the same galleries: their errors add up.
    scores = {
        name: {
            way: _of_common(each.outcomes[way].scored[each.metric], where[name], common, k)
            for way in (decisions[name].name, REEMBED, KEEP) if way in each.outcomes
        }
        for k, (name, each) in enumerate(studies.items())
    }  # fmt: skip
    names = [name for name in studies if decisions[name].name is not None]
    if not names:
        raise BenchError("models: expected something that can be done under these constraints")
    its = {name: scores[name][str(decisions[name].name)] for name in names}
    differences = {
        (a, b): difference(its[a], its[b], groups) for a in names for b in names if a != b
    }
    sure = _sure(its, {name: scores[name].get(KEEP) for name in names}, groups)
    found = []
    for name in names:
        study, way = studies[name], str(decisions[name].name)
        old, cost = scores[name].get(KEEP), cost_of(study.outcomes[way].strategy, study.inputs)
        rank = 1 + sum(differences[other, name].is_above(0.0) for other in names if other != name)
        found.append(ModelPlace(
            name, way, rank, mean(its[name], groups), mean(scores[name][REEMBED], groups),
            None if old is None or way == KEEP else difference(its[name], old, groups),
            sure.get(name),
            cost.hours, cost.money, cost.index_bytes,
        ))  # fmt: skip

    def effort(place: ModelPlace) -> tuple[float, ...]:
        if place.strategy == KEEP:  # the same old model, whatever the new one is
            return math.inf, -place.again.known
        strategy = studies[place.name].outcomes[place.strategy].strategy
        return strategy.effort, place.index_bytes, -place.score.known

    found.sort(key=lambda place: (place.rank, -place.score.known))
    taken = min((place for place in found if place.rank == found[0].rank), key=effort)
    upgrades = [place.name for place in found if place.rank == 1 and place.strategy != KEEP]
    tied = [name for name in upgrades if taken.name in upgrades and name != taken.name]
    paired = [{"of": a, "to": b, **asdict(each)} for (a, b), each in differences.items()]
    return ModelComparison(taken.name, len(common), left_out, tied, found, paired)


def _of_common(scored: Scored, rows: Ints, common: Ints, k: int) -> Scored:
    """Scores of the common queries, in their order; draws of the estimate turned by ``k``."""
    order = np.argsort(rows, kind="stable")
    at = order[np.searchsorted(rows[order], common)]
    return scored.of_queries(at, turn=k)


def _sure(
    its: Mapping[str, Scored], old: Mapping[str, Scored | None], groups: Any
) -> dict[str, bool]:
    """Names of models -> they are better than the old model, by Holm's correction."""
    tests = {
        name: contrast(its[name], before, groups).p_above(0.0)
        for name in its if (before := old[name]) is not None
    }  # fmt: skip
    sure = surely(tests, LEVEL)
    return {name: name in sure for name in tests}
