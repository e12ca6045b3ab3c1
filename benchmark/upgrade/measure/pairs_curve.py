"""How many pairs a map needs: the same judging with maps fitted on ever more of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.metrics.estimate import Estimate
from benchmark.upgrade.fit import maps as map_fits
from benchmark.upgrade.measure.evaluation import AGREEMENT, Values, evaluate
from benchmark.upgrade.measure.statistics import difference, mean, measured
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.search.lists import ResultList
from benchmark.upgrade.search.strategies import REEMBED, Plan, Strategy

SIZES = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
CLOSE = 0.01
"""Difference of the score that counts as none."""


@dataclass(frozen=True)
class PairsCurve:
    """Scores of one map, fitted on more and more pairs, in the gallery of held-out items.

    Attributes:
        label: Of the map.
        sizes: Numbers of pairs.
        scores: One for each size.
        bounds: Strategy -> its score there: the lower and the upper bound.
        enough: The smallest size that is within ``CLOSE`` of the largest, by the interval of the
            paired difference; None if only the largest one is.
    """

    label: str
    sizes: tuple[int, ...]
    scores: tuple[Estimate, ...]
    bounds: dict[str, Estimate]
    enough: int | None

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "map": self.label,
            "enough": self.enough,
            "points": [
                {"pairs": n, **e.document()} for n, e in zip(self.sizes, self.scores, strict=True)
            ],
            "bounds": {name: e.document() for name, e in self.bounds.items()},
        }


def pairs_curve(study: Study, label: str, bounds: Sequence[str], seed: int = 0) -> PairsCurve:
    """Fit a map on the first 500, 1,000, ... pairs, and judge it on the held-out items."""
    sample = study.sample
    rows = np.flatnonzero(sample.fitted)
    rows = np.random.default_rng([seed, 3]).permutation(rows)
    sizes = [n for n in SIZES if n < len(rows)] + [len(rows)]
    plan = Plan([], dict(study.plan.lists))
    for n in sizes:
        fit = map_fits.fit(label, sample.old[rows[:n]], sample.new[rows[:n]], study.distance, seed)
        queries = fit.conversion.view(study.inputs.queries)
        name = f"pairs {n}"
        if fit.direction == "query":
            plan.lists[name] = ResultList(queries, lambda block: block.old)
        else:
            plan.lists[name] = ResultList(
                queries,
                lambda block, n=name, c=fit.conversion: block.converted(n, c),  # type: ignore[misc]
            )
        plan.strategies.append(Strategy(name, "", uses=(name,)))
    known = {s.name: s for s in study.plan.strategies}
    plan.strategies.extend(known[name] for name in {*bounds, REEMBED})
    found = scores_on_sample(study, plan)
    curve = [found[f"pairs {n}"] for n in sizes]
    enough = next(
        (n for n, v in zip(sizes, curve, strict=True) if _close(study, v, curve[-1])), None
    )
    return PairsCurve(
        label, tuple(sizes), tuple(mean(measured(v), study.sample_groups) for v in curve),
        {name: mean(measured(found[name]), study.sample_groups) for name in bounds},
        enough if enough != sizes[-1] else None,
    )  # fmt: skip


def scores_on_sample(study: Study, plan: Plan) -> dict[str, Values]:
    """The main score of each strategy of a plan, by query, in the gallery of held-out items."""
    by_agreement = study.metric == AGREEMENT
    found = evaluate(
        study.sample.blocks, study.on_sample, study.sample.known, plan, plan.strategies,
        study.distance, keep_nearest=by_agreement,
    )  # fmt: skip
    if by_agreement:
        return found.agreement(REEMBED)
    return {name: scores[study.metric] for name, scores in found.scores.items()}


def _close(study: Study, values: Values, most: Values) -> bool:
    if values is most:
        return True
    missed = difference(measured(most), measured(values), study.sample_groups)
    return missed.high is not None and missed.high <= CLOSE
