"""Scores in the gallery of held-out items after a conversion, while items are embedded again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.metrics.backfill_curves import moments
from benchmark.metrics.backfill_orders import by_score, random
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.kept_share import mean, measured
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.fit.maps import FittedMap
from benchmark.upgrade.measure.pairs_curve import scores_on_sample
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.read.gallery import GalleryBlock
from benchmark.upgrade.search.lists import ResultList

POINTS = 11


@dataclass(frozen=True)
class BackfillProgress:
    """Scores along one order.

    Attributes:
        order: ``random``, ``reads`` or ``priority``.
        start: Label of the map that unfilled items are converted by.
        scores: At even shares that are filled, from none to all.
    """

    order: str
    start: str
    scores: tuple[Estimate, ...]

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        points = [
            {"filled": round(k / (POINTS - 1), 1), **each.document()}
            for k, each in enumerate(self.scores)
        ]
        worst = min(points, key=lambda point: point["value"])
        return {"order": self.order, "start": self.start, "worst": worst, "points": points}


def backfill_progress(study: Study, start: FittedMap) -> list[BackfillProgress]:
    """Evaluate every order: at random, by reads, by the priority of a map that gives one.

    Unfilled items are converted by ``start``, or by the map that gives the priority; filled ones
    have their new vector.
    """
    sample, inputs = study.first.sample, study.inputs
    rows, old = sample.rows[sample.held], sample.old[sample.held]
    orders: list[tuple[str, FittedMap, Ints]] = [
        ("random", start, random(rows, inputs.request.seed))
    ]
    if inputs.reads is not None:
        reads = inputs.reads[rows].astype(np.float64)
        orders.append(("reads", start, by_score(reads, rows)))
    orders += [
        ("priority", each, each.conversion.order(old, ids=rows))
        for each in study.first.maps if "priority" in each.conversion.parts
    ]  # fmt: skip
    filled, moment = moments(len(rows), POINTS)
    lists = {}
    for k, (_, fit, order) in enumerate(orders):
        queries = fit.conversion.view(inputs.queries)
        for point in range(len(filled)):
            done = np.sort(rows[order[moment <= point]])
            lists[f"{k} {point}"] = ResultList(queries, _mixed(fit, done))
    found = scores_on_sample(study, lists)
    groups = study.sample_groups
    return [
        BackfillProgress(
            name, fit.label,
            tuple(mean(measured(found[f"{k} {p}"]), groups) for p in range(POINTS)),
        )
        for k, (name, fit, _) in enumerate(orders)
    ]  # fmt: skip


def _mixed(fit: FittedMap, filled: Ints) -> Callable[[GalleryBlock], Floats]:
    """Vectors of a block while some rows, ascending, have their new ones."""

    def items(block: GalleryBlock) -> Floats:
        is_filled = np.isin(block.rows, filled)[:, None]
        old = block.converted(fit.label, fit.conversion)
        return np.where(is_filled, block.new, old)

    return items
