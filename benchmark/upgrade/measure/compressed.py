"""Scores of vectors in fewer bits, and cut to fewer numbers, whatever is done about the upgrade.

Stored vectors alone are compressed; queries stay as they are. All is judged in the gallery of
held-out items, whose vectors by both models are there.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmark.contract.fusion import RescoredList
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.intervals import usual_step
from benchmark.metrics.kept_share import difference, mean, measured
from benchmark.metrics.similarity import unit
from benchmark.ranking.arrays import Floats, Values
from benchmark.upgrade.measure.evaluation import AGREEMENT
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.read.gallery import GalleryBlock
from benchmark.upgrade.read.request import KEEP, REEMBED
from benchmark.upgrade.search.lists import ResultList
from benchmark.upgrade.search.strategies import Strategy, StrategyPlan

WINDOW = 100
"""First items by bits that are rescored."""
CUTS = {"3/4": 0.75, "1/2": 0.5, "1/4": 0.25}
_QUANTILE = 0.999
"""Share of the absolute numbers that int8 holds without cutting them off."""
WHOLE, HALF, BYTE, BITS = "float32", "float16", "int8", "binary, rescored"


@dataclass(frozen=True)
class Compressed:
    """A strategy with its stored vectors in some form.

    Attributes:
        strategy: Its name.
        form: ``float32``, ``float16``, ``int8``, ``binary, rescored``, or ``3/4 of the numbers``.
        index_bytes: Of all vectors of the deployment.
        score: The deciding metric among the held-out items.
        lost: To the same strategy in float32; None for itself.
        to_keep: To the old model in float32; None for itself, where nobody has its queries, and by
            agreement.
    """

    strategy: str
    form: str
    index_bytes: int
    score: Estimate
    lost: Estimate | None
    to_keep: Estimate | None


def compressed(study: Study) -> list[Compressed]:
    """Evaluate every form of the old vectors, of the best converted ones and of new ones."""
    fold, distance = study.first, study.inputs.distance
    names = {KEEP: "old", REEMBED: "new"} | (
        {} if fold.best is None else {fold.best.label: fold.best.label}
    )
    plan = StrategyPlan([], {})
    forms: dict[str, tuple[str, str, float]] = {}  # list -> strategy, form, bytes of a vector
    for name, used in names.items():
        if used not in fold.plan.lists:
            continue
        whole = fold.plan.lists[used]
        dim = whole.queries.shape[1]
        scale = _scale(unit(whole.items(fold.sample.known), distance))
        for form, each, size in _forms(whole, dim, scale, distance):
            key = f"{name} {form}"
            forms[key] = name, form, size
            plan.lists[key] = each
            plan.strategies.append(Strategy(key, "", uses=(key,)))
        key, first = f"{name} {BITS}", f"{name} bits"
        plan.lists[first] = ResultList(_signs(whole.queries), _then(whole, distance, _signs))
        rescored = RescoredList(WINDOW)
        plan.strategies.append(Strategy(key, "", uses=(first, f"{name} {BYTE}"), merge=rescored))
        forms[key] = name, BITS, dim / 8 + dim
    values = study.first.values(plan, f"{REEMBED} {WHOLE}")
    groups = study.sample_groups
    old = None if study.metric == AGREEMENT else values.get(f"{KEEP} {WHOLE}")
    items = study.inputs.request.items or study.inputs.gallery.rows

    def gap(mine: Values, its: Values | None, step: float | None = None) -> Estimate | None:
        if its is None or mine is its:
            return None
        return difference(measured(mine), measured(its), groups, step)

    def row(key: str, name: str, form: str, size: float) -> Compressed:
        whole = values[f"{name} {WHOLE}"]
        # int8 moves vectors further, so float16 may change no query by more.
        tried = [key, f"{name} {BYTE}"] if form == HALF else [key]
        step = min(usual_step(values[each] - whole, groups) for each in tried)
        return Compressed(
            name, form, int(items * size), mean(measured(values[key]), groups),
            gap(values[key], whole, step), gap(values[key], old, step if old is whole else None),
        )  # fmt: skip

    return [row(key, *its) for key, its in forms.items()]


def _forms(
    whole: ResultList, dim: int, scale: float, distance: str
) -> list[tuple[str, ResultList, float]]:
    """Form, list and bytes of a vector of all that one list answers."""
    half = _then(whole, distance, lambda x: x.astype(np.float16).astype(np.float32))
    step = np.float32(scale)
    byte = _then(whole, distance, lambda x: np.clip(np.round(x / step), -127, 127) * step)
    out = [
        (WHOLE, whole, 4.0 * dim), (HALF, ResultList(whole.queries, half), 2.0 * dim),
        (BYTE, ResultList(whole.queries, byte), 1.0 * dim),
    ]  # fmt: skip
    for word, share in CUTS.items():
        n = max(1, round(share * dim))
        cut = ResultList(whole.queries[:, :n], _then(whole, "", lambda x, n=n: x[:, :n]))  # type: ignore[misc]
        out.append((f"{word} of the numbers", cut, 4.0 * n))
    return out


def _then(
    whole: ResultList, distance: str, change: Callable[[Floats], Floats]
) -> Callable[[GalleryBlock], Floats]:
    """The vectors of a list, changed; a row that comes out as zeros is moved off it."""

    def items(block: GalleryBlock) -> Floats:
        out = np.array(change(unit(whole.items(block), distance)), np.float32)
        out[~out.any(axis=1), 0] = 1e-12
        return out

    return items


def _signs(vectors: Floats) -> Floats:
    return np.where(vectors >= 0, np.float32(1), np.float32(-1))


def _scale(vectors: Floats) -> float:
    """The step of int8: so that nearly all numbers are within 127 of them."""
    return max(float(np.quantile(np.abs(vectors), _QUANTILE)) / 127, 1e-30)
