"""Scores by the number of pairs that a map is fitted on."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmark.metrics.estimate import Estimate
from benchmark.metrics.kept_share import difference, mean
from benchmark.upgrade.fit import maps as map_fits
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.read.request import KEEP, REEMBED
from benchmark.upgrade.search.strategies import map_list

SIZES = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
CLOSE = 0.01
"""Difference of the score that counts as none."""


@dataclass(frozen=True)
class PairsCurve:
    """Scores of one map, fitted on more and more pairs, in the gallery of held-out items."""

    map: str  # its label
    # the smallest number of pairs that is within ``CLOSE`` of the largest, by the interval of
    # the paired difference; None if only the largest one is
    enough: int | None
    points: list[dict[str, Any]]  # ``pairs`` and the score of a map that is fitted on so many
    bounds: dict[str, Estimate]  # strategy -> its score there: the lower and the upper bound


def pairs_curve(study: Study, recommended: str | None) -> PairsCurve:
    """Fit a map on the first 500, 1,000, ... pairs, and evaluate it on the held-out items.

    That is the recommended map, else the best one.
    """
    means = {m.label: study.outcomes[m.label].scored[study.metric].mean for m in study.first.maps}
    label = recommended if recommended in means else max(means, key=means.__getitem__)
    bounds = [name for name in (KEEP, REEMBED) if name in study.outcomes]
    sample, inputs, seed = study.first.sample, study.inputs, study.inputs.request.seed
    rows = np.flatnonzero(sample.fitted)
    rows = np.random.default_rng([seed, 3]).permutation(rows)
    sizes = [n for n in SIZES if n < len(rows)] + [len(rows)]
    lists = {}
    for n in sizes:
        some = sample.old[rows[:n]], sample.new[rows[:n]]
        fit = map_fits.fit(label, *some, inputs.distance, seed)
        lists[f"pairs {n}"] = map_list(fit, inputs.queries)
    found, groups = study.first.scored_lists(lists, bounds), study.sample_groups
    curve = {n: found[name] for n, name in zip(sizes, lists, strict=True)}
    missed = {n: difference(curve[sizes[-1]], curve[n], groups).high for n in sizes[:-1]}
    return PairsCurve(
        label, next((n for n, high in missed.items() if high is not None and high <= CLOSE), None),
        [{"pairs": n, **asdict(mean(each, groups))} for n, each in curve.items()],
        {name: mean(found[name], groups) for name in bounds},
    )  # fmt: skip
