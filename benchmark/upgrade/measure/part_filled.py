"""Backfilling after a conversion: how good the gallery is while its items are embedded again."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.metrics.backfill_orders import by_score, random
from benchmark.metrics.estimate import Estimate
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.fit.maps import FittedMap
from benchmark.upgrade.measure.pairs_curve import scores_on_sample
from benchmark.upgrade.measure.statistics import mean, measured
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.read.gallery import Block
from benchmark.upgrade.search.lists import ResultList
from benchmark.upgrade.search.strategies import REEMBED, Plan, Strategy

POINTS = tuple(round(0.1 * k, 1) for k in range(11))


@dataclass(frozen=True)
class Backfill:
    """Scores along one order, in the gallery of held-out items.

    Attributes:
        order: ``random``, ``reads`` or ``priority``.
        start: Label of the map that unfilled items are converted by.
        scores: At each of ``POINTS``, the share that is filled.
    """

    order: str
    start: str
    scores: tuple[Estimate, ...]

    @property
    def worst(self) -> int:
        """The point with the lowest score."""
        return int(np.argmin([each.known for each in self.scores]))

    def document(self) -> dict[str, Any]:
        """For JSON."""
        points = [{"filled": p, **e.document()} for p, e in zip(POINTS, self.scores, strict=True)]
        worst = {"filled": POINTS[self.worst], **self.scores[self.worst].document()}
        return {"order": self.order, "start": self.start, "worst": worst, "points": points}


def backfills(study: Study, start: FittedMap, seed: int = 0) -> list[Backfill]:
    """Every order there is: at random, by reads, by the priority of a map that gives one.

    Unfilled items are converted by ``start``, or by the map that gives the priority; filled ones
    have their new vector.
    """
    held = study.sample.held
    rows = study.sample.rows[held]
    orders: list[tuple[str, FittedMap, Ints]] = [("random", start, random(rows, seed))]
    if study.inputs.reads is not None:
        reads = study.inputs.reads[rows].astype(np.float64)
        orders.append(("reads", start, by_score(reads, rows)))
    for each in study.maps:
        if "priority" in each.conversion.parts:
            order = each.conversion.order(study.sample.old[held], ids=rows)
            orders.append(("priority", each, order))
    plan = Plan([s for s in study.plan.strategies if s.name == REEMBED], dict(study.plan.lists))
    for k, (_, fit, order) in enumerate(orders):
        queries = fit.conversion.view(study.inputs.queries)
        place = np.empty(len(rows), np.int64)
        place[order] = np.arange(len(rows))
        for point in POINTS:
            filled = rows[place < round(point * len(rows))]
            name = f"{k} {point}"
            plan.lists[name] = ResultList(queries, _mixed(fit, filled))
            plan.strategies.append(Strategy(name, "", uses=(name,)))
    found = scores_on_sample(study, plan)
    return [
        Backfill(
            name, fit.label,
            tuple(mean(measured(found[f"{k} {p}"]), study.sample_groups) for p in POINTS),
        )
        for k, (name, fit, _) in enumerate(orders)
    ]  # fmt: skip


def _mixed(fit: FittedMap, filled: Ints) -> Any:
    """What a block is while some rows, ascending, have their new vector."""

    def items(block: Block) -> Floats:
        is_filled = np.isin(block.rows, filled)[:, None]
        old = block.converted(fit.label, fit.conversion)
        return np.where(is_filled, block.new, old)

    return items
