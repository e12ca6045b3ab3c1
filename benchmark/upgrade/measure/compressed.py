"""Scores of vectors in fewer bits, and cut to fewer numbers, whatever is done about the upgrade.

Stored vectors alone are compressed; queries stay as they are, but for bits, where their signs find
what is rescored. All is judged in the gallery in which the strategies are. Where only a sample has
new vectors, these are judged among its held-out items, and not as bits: the first hundred are a
large part of so few items, and would lose less than of all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from benchmark.contract.fusion import RescoredList
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.intervals import usual_step
from benchmark.metrics.kept_share import Scored, difference, mean
from benchmark.metrics.similarity import unit
from benchmark.ranking.arrays import Floats, Ints
from benchmark.ranking.engine import SHORTEST
from benchmark.upgrade.formats.rows import new_number_bytes, number_bytes
from benchmark.upgrade.measure.evaluation import AGREEMENT
from benchmark.upgrade.measure.study import Fold, Study, score_more
from benchmark.upgrade.read.gallery import GalleryBlock
from benchmark.upgrade.read.request import KEEP, REEMBED, Tell
from benchmark.upgrade.search.lists import ResultList
from benchmark.upgrade.search.strategies import Strategy, StrategyPlan

WINDOW = 100
"""First items by bits that are rescored."""
_LEAST_SHARE = 1 / 3  # share of the gallery that must be searched to judge bits
CUTS = {"3/4": 0.75, "1/2": 0.5, "1/4": 0.25}
_QUANTILE = 0.999  # share of the absolute numbers that int8 holds without cutting them off
_HALF = float(np.finfo(np.float16).max)
WHOLE, HALF, BYTE, BITS = "as stored", "float16", "int8", "binary, rescored"


@dataclass(frozen=True)
class Compressed:
    """A strategy with its stored vectors in some form."""

    strategy: str
    form: str  # as stored, float16, int8, binary, or 3/4 of the numbers
    index_bytes: int  # of all vectors of the deployment
    among: int  # items that are searched
    score: Estimate
    lost: Estimate | None  # to the same strategy as it is stored; None for itself
    # to the old model as it is stored, among the same items; None for itself, where
    # nobody has its queries, and by agreement
    to_keep: Estimate | None


def compressed(study: Study, tell: Tell = lambda words: None) -> list[Compressed]:
    """Evaluate every form of the old vectors, of the best converted ones and of new ones."""
    gallery, first = study.inputs.gallery, study.first
    names = {KEEP: "old", REEMBED: "new"}
    names |= {} if first.best is None else {first.best.label: first.best.label}
    used = {n: its for n, its in names.items() if all(its in f.plan.lists for f in study.folds)}
    sampled = {} if study.metric == AGREEMENT or gallery.complete else {REEMBED: used.pop(REEMBED)}
    bits = study.n_gallery >= _LEAST_SHARE * gallery.rows
    forms = [_Forms.of(study, fold, used, bits=bits) for fold in study.folds]
    scored = score_more(study, [each.plan for each in forms], tell)
    out = forms[0].rows(study, scored, study.groups, study.n_gallery)
    if sampled:
        both = {name: its for name, its in used.items() if name == KEEP} | sampled
        its = _Forms.of(study, first, both, bits=False)
        among = int(first.sample.held.sum())
        rows = its.rows(study, first.scored(its.plan), study.sample_groups, among)
        out += [each for each in rows if each.strategy == REEMBED]
    return out


@dataclass(frozen=True)
class _Forms:
    """Forms of the vectors of some strategies."""

    plan: StrategyPlan
    named: dict[str, tuple[str, str, float]]  # in the plan -> strategy, form, bytes of a vector

    @classmethod
    def of(cls, study: Study, fold: Fold, used: Mapping[str, str], *, bits: bool) -> "_Forms":
        """Of strategies by name, and the lists of a fold that they use."""
        gallery, distance = study.inputs.gallery, fold.distance
        out = cls(StrategyPlan([], {}), {})
        for name, its in used.items():
            whole = fold.plan.lists[its]
            stored = (number_bytes if name == KEEP else new_number_bytes)(gallery.stored)
            scale = _scale(unit(whole.items(fold.sample.known), distance))
            for form, each, size in _forms(whole, stored, scale, distance):
                out._add(name, form, size, each)
            if bits:
                items = _then(whole, distance, _signs)
                signs = replace(whole, queries=_signs(whole.queries), items=items)
                dim = whole.queries.shape[1]
                out._add(name, BITS, dim / 8 + dim, signs, f"{name} {BYTE}")
        return out

    def _add(self, name: str, form: str, size: float, each: ResultList, rescored: str = "") -> None:
        key = f"{name} {form}"
        self.named[key], self.plan.lists[key] = (name, form, size), each
        two = {"uses": (key, rescored), "merge": RescoredList(WINDOW)}
        self.plan.strategies.append(Strategy(key, "", **two if rescored else {"uses": (key,)}))

    def rows(
        self, study: Study, scored: Mapping[str, Scored], groups: Ints | None, among: int
    ) -> list[Compressed]:
        """Rows of the table, from scores by name."""
        old = None if study.metric == AGREEMENT else scored.get(f"{KEEP} {WHOLE}")
        items = int(study.inputs.assumed.items)

        def gap(mine: Scored, its: Scored | None, step: float | None = None) -> Estimate | None:
            return None if its is None or mine is its else difference(mine, its, groups, step)

        def row(key: str, name: str, form: str, size: float) -> Compressed:
            mine, whole = scored[key], scored[f"{name} {WHOLE}"]
            # int8 moves vectors further, so float16 may change no query by more.
            tried = [key, f"{name} {BYTE}"] if form == HALF else [key]
            step = min(usual_step(scored[k].values - whole.values, groups) for k in tried)
            return Compressed(
                name, form, int(items * size), among, mean(mine, groups),
                gap(mine, whole, step), gap(mine, old, step if old is whole else None),
            )  # fmt: skip

        return [row(key, *its) for key, its in self.named.items()]


def _forms(
    whole: ResultList, stored: int, scale: float, distance: str
) -> list[tuple[str, ResultList, float]]:
    """Form, list and bytes of a vector of all that one list answers."""
    dim = whole.queries.shape[1]
    half = _then(whole, distance, lambda x: np.clip(x, -_HALF, _HALF).astype(np.float16))
    step = np.float32(scale)
    byte = _then(whole, distance, lambda x: np.clip(np.round(x / step), -127, 127) * step)
    out = [
        (WHOLE, whole, 1.0 * stored * dim), (HALF, replace(whole, items=half), 2.0 * dim),
        (BYTE, replace(whole, items=byte), 1.0 * dim),
    ]  # fmt: skip
    for word, share in CUTS.items():
        n = max(1, round(share * dim))
        items = _then(whole, "", lambda x, n=n: x[:, :n])  # type: ignore[misc]
        cut = replace(whole, queries=whole.queries[:, :n], items=items)
        out.append((f"{word} of the numbers", cut, 1.0 * stored * n))
    return out


def _then(
    whole: ResultList, distance: str, change: Callable[[Floats], Floats]
) -> Callable[[GalleryBlock], Floats]:
    """The vectors of a list, changed; a row that comes out as zeros is moved off it."""

    def items(block: GalleryBlock) -> Floats:
        out = np.array(change(unit(whole.items(block), distance)), np.float32)
        out[~out.any(axis=1), 0] = 2 * SHORTEST
        return out

    return items


def _signs(vectors: Floats) -> Floats:
    return np.where(vectors >= 0, np.float32(1), np.float32(-1))


def _scale(vectors: Floats) -> float:
    """The step of int8: so that nearly all numbers are within 127 of them."""
    return max(float(np.quantile(np.abs(vectors), _QUANTILE)) / 127, 1e-30)
