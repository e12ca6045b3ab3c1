"""Scores in the gallery of held-out items while items are embedded again, by what serves meanwhile.

Unfilled items are converted, or stay as they are and are asked by the new query, or by the old one
beside, both lists merged by scores.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmark.metrics.backfill_curves import moments
from benchmark.metrics.backfill_orders import by_score, random
from benchmark.metrics.kept_share import Scored, mean
from benchmark.metrics.similarity import unit
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.fit.maps import FittedMap
from benchmark.upgrade.measure.score_model import all_scores
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.read.gallery import GalleryBlock
from benchmark.upgrade.read.request import MERGED, PLAIN, SCALED
from benchmark.upgrade.search.lists import MixedList, ResultList

Sides = tuple[ResultList, ResultList]
"""Lists of new and of old vectors."""
POINTS = 11
_SCALED_BY = 1_000  # items, and queries, that the scale is taken from


@dataclass(frozen=True)
class BackfillProgress:
    """Scores along one order."""

    order: str  # ``random``, ``reads`` or ``priority``
    start: str  # label of the map that converts unfilled items, or one of ``MIXED``
    worst: dict[str, Any]  # the point of the least score
    # even shares that are ``filled``, from none to all, each with its score
    points: list[dict[str, Any]]


def backfill_progress(study: Study) -> list[BackfillProgress]:
    """Evaluate what serves meanwhile: the best map; and a mixed index, where it is asked for."""
    best, is_asked = study.first.best, study.inputs.request.transition
    converted = [] if best is None else _converted(study, best)
    return [*converted, *(mixed_index(study) if is_asked else [])]


def _converted(study: Study, start: FittedMap) -> list[BackfillProgress]:
    """Evaluate every order after a conversion: at random, by reads, by a map's own priority.

    Unfilled items are converted by ``start``, or by the map that gives the priority; filled ones
    have their new vector.
    """
    sample, inputs = study.first.sample, study.inputs
    rows, old = sample.rows[sample.held], sample.old[sample.held]
    orders: list[tuple[str, FittedMap, Ints]] = [("random", start, _random(study))]
    if inputs.reads is not None:
        reads = inputs.reads[rows].astype(np.float64)
        orders.append(("reads", start, by_score(reads, rows)))
    orders += [
        ("priority", each, each.conversion.order(old, ids=rows))
        for each in study.first.maps if "priority" in each.conversion.parts
    ]  # fmt: skip
    lists = {}
    for k, (_, fit, order) in enumerate(orders):
        whole = study.first.plan.lists[fit.label]
        for point, done in enumerate(_filled(rows, order)):
            lists[f"{k} {point}"] = ResultList(whole.queries, _mixed(done, whole.items))
    found = study.first.scored_lists(lists)
    return [
        _progress(study, name, fit.label, found, str(k)) for k, (name, fit, _) in enumerate(orders)
    ]


def mixed_index(study: Study) -> list[BackfillProgress]:
    """Evaluate an index that is filled at random, its other items as they are.

    It is asked by the new query alone, where vectors are of one size; by both queries, each for
    its part, where the old model still runs.
    """
    inputs, request = study.inputs, study.inputs.request
    sample, distance = study.first.sample, inputs.distance
    planned, ways = study.first.plan.lists, []
    if sample.old.shape[1] == sample.new.shape[1]:
        ways.append((PLAIN, (planned["new"], planned["naive"]), distance))
    if inputs.old_queries is not None and request.old_model and request.extra_runs:
        sides = planned["new"], planned["old"]
        ways += [(MERGED, sides, distance), (SCALED, *_scaled(study, sides))]
    done, out = _filled(sample.rows[sample.held], _random(study)), []
    for way, (new, rest), its in ways:
        lists = {
            f"{way} {p}": MixedList(new.queries, new.items, filled=rows, rest=rest)
            for p, rows in enumerate(done)
        }
        found = study.first.scored_lists(lists, against=f"{way} {POINTS - 1}", distance=its)
        out.append(_progress(study, "random", way, found, way))
    return out


def _random(study: Study) -> Ints:
    sample = study.first.sample
    return random(sample.rows[sample.held], study.inputs.request.seed)


def _filled(rows: Ints, order: Ints) -> Sequence[Ints]:
    """Rows that are filled at each point, ascending."""
    filled, moment = moments(len(rows), POINTS)
    return [np.sort(rows[order[moment <= point]]) for point in range(len(filled))]


def _progress(
    study: Study, order: str, start: str, found: dict[str, Scored], name: str
) -> BackfillProgress:
    groups = study.sample_groups
    points = [
        {"filled": round(p / (POINTS - 1), 1), **asdict(mean(found[f"{name} {p}"], groups))}
        for p in range(POINTS)
    ]
    return BackfillProgress(order, start, min(points, key=lambda each: each["value"]), points)


def _mixed(
    filled: Ints, rest: Callable[[GalleryBlock], Floats]
) -> Callable[[GalleryBlock], Floats]:
    """Vectors of a block while some rows, ascending, have their new ones, and others the rest."""

    def items(block: GalleryBlock) -> Floats:
        is_filled = np.isin(block.rows, filled)[:, None]
        return np.where(is_filled, block.new, rest(block))

    return items


def _scaled(study: Study, sides: Sides) -> tuple[Sides, str]:
    """Lists of new and of old vectors whose scores have one mean and deviation; their distance.

    One number more of each vector moves the scores; distances can only be made longer.
    """
    distance, scales = study.inputs.distance, _scales(study, sides)
    most = max(-middle / spread for middle, spread in scales)

    def scaled(each: ResultList, middle: float, spread: float) -> ResultList:
        if distance != "l2":
            asked = _longer(unit(each.queries, distance) / np.float32(spread), -middle / spread)
            return ResultList(asked, lambda block: _longer(unit(each.items(block), distance), 1.0))
        size = np.float32(spread**0.5)
        asked = _longer(each.queries / size, (most + middle / spread) ** 0.5)
        return ResultList(asked, lambda block: _longer(each.items(block) / size, 0.0))

    both = scaled(sides[0], *scales[0]), scaled(sides[1], *scales[1])
    return both, "l2" if distance == "l2" else "dot"


def _longer(vectors: Floats, number: float) -> Floats:
    """Vectors with one more number at their end, ``[n, d + 1]``."""
    return np.pad(vectors, ((0, 0), (0, 1)), constant_values=number)


def _scales(study: Study, sides: Sides) -> list[tuple[float, float]]:
    """Mean and deviation of scores with the same items by the new and by the old model."""
    inputs, sample = study.inputs, study.first.sample
    rng = np.random.default_rng([inputs.request.seed, 7])
    items = rng.permutation(np.flatnonzero(sample.fitted))[:_SCALED_BY]
    asked = rng.permutation(len(inputs.queries))[:_SCALED_BY]
    out = []
    for each in sides:
        vectors = each.items(sample.known)[items]
        scores = all_scores(each.queries[asked], vectors, inputs.distance).astype(np.float64)
        out.append((float(scores.mean()), float(scores.std()) or 1.0))
    return out
