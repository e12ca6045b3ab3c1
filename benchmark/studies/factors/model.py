"""A study of factors, as ``study.yaml`` has it, and its additive model of the share of the upgrade.

A level has one effect; intervals are Student's t over the seeds, by their deviation in draws.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from benchmark.config.checks import unique
from benchmark.config.reading import Model, build, read_yaml
from benchmark.errors import AbsentError
from benchmark.metrics.compatibility import share_of_upgrade
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.statistics import holm, surely, t_factor
from benchmark.records.record import Record
from benchmark.report import select

Names = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(unique)]
FILE = "study.yaml"
LEVEL = 0.05
"""Of a corrected p-value, below which something is sure."""
Floats = NDArray[np.float64]
Cell = tuple[str, ...]
"""Level of each factor."""
ByCell = dict[Cell, dict[int, dict[str, tuple[float, ...]]]]
"""Cell -> seed -> method -> scores."""


class Factor(Model):
    """Something that is varied."""

    title: str
    key: str
    """Of ``--set``; records keep its value."""
    levels: Annotated[Mapping[str, str], Field(min_length=2)]
    """Value of the key, as JSON where it is no text -> words."""
    ordered: bool = False
    """The levels rise, so that a method may pay from one of them on."""

    def level(self, record: Record) -> str | None:
        """Words of a record's level; None where it has none of these."""
        value = record.changed.get(self.key)
        return self.levels.get(value if isinstance(value, str) else json.dumps(value))


class FactorStudy(Model):
    """Factors of one protocol and track, and the thresholds of an answer."""

    track: str
    protocol: str
    metrics: Names
    upgrade: Annotated[float, Field(gt=0, lt=1)]
    """Least upgrade that a share is taken of."""
    cut: tuple[float, float]
    """Range that shares are cut to."""
    matters: Annotated[float, Field(gt=0)]
    """Least difference of the best and the worst level of a factor that matters."""
    draws: Annotated[int, Field(ge=100, le=100_000)]
    """Of seeds, for the intervals."""
    factors: Annotated[Mapping[str, Factor], Field(min_length=1)]

    def levels(self, record: Record) -> tuple[str, ...] | None:
        """Level of each factor; None of a record that is of no cell."""
        if (record.protocol, record.track) != (self.protocol, self.track):
            return None
        found = [factor.level(record) for factor in self.factors.values()]
        return None if None in found else tuple(str(each) for each in found)


def read_study(folder: Path) -> FactorStudy:
    """Read and check the study of a folder; a BenchError names the file and what is wrong."""
    path = folder / FILE
    return build(FactorStudy, read_yaml(path), str(path))


@dataclass(frozen=True)
class FactorEffect:
    """One factor of one method.

    Attributes:
        method: Its label.
        factor: Key in the study.
        shares: By level: predicted share of the upgrade, levels of other factors weighing alike;
            intervals are over the seeds.
        margins: By level: half of the 95 % interval (Student's t) of what cells differ from the
            additive model, which another choice of cells would change.
        widest: Difference of the best and the worst level.
        p: Of that difference being none, over seeds, corrected for all pairs of levels (Holm).
        matters: By the study's rule, over seeds.
        surely: The rule holds with what cells differ from the additive model in ``p``, too.
        pays_from: First level from which on every share lies above 0, over seeds; None where there
            is none, or the levels have no order.
        p_above: By level: of a share being no more than 0, by seeds and misfit together, two-sided.
        sure_at: Levels whose share is above 0 so, corrected for all levels of all factors and
            methods by the metric (Holm).
    """

    method: str
    factor: str
    shares: Mapping[str, Estimate]
    margins: Mapping[str, float]
    widest: Estimate
    p: float
    matters: bool
    surely: bool
    pays_from: str | None
    p_above: Mapping[str, float]
    sure_at: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Factors:
    """Effects by one metric.

    Attributes:
        metric: Its key.
        effects: Of each method and factor.
        cells: How many have an upgrade.
        without: How many have none to keep.
        seeds: Of every cell.
        explained: By method: share of what varies between cells that effects explain (R squared).
        misfit: By method: standard deviation of cells around the model, a share of the upgrade.
    """

    metric: str
    effects: tuple[FactorEffect, ...]
    cells: int
    without: int
    seeds: int
    explained: Mapping[str, float]
    misfit: Mapping[str, float]


def fit(study: FactorStudy, records: Iterable[Record], metric: str) -> Factors:
    """Fit the study's model to each method, on the seeds that every cell has.

    An AbsentError if fewer than two seeds have every cell, or a level has no upgrade anywhere.
    """
    scores = _scores(study, records, metric)
    seeds = sorted(set.intersection(*({*by} for by in scores.values())) if scores else ())
    if len(seeds) < 2:
        raise AbsentError(f"factors: expected records of two seeds of every cell, got {len(seeds)}")
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(seeds), size=(study.draws, len(seeds)))
    times = [(drawn == i).sum(1) for i in range(len(seeds))]  # that each seed is in each draw
    weights = np.concatenate([np.ones((1, len(seeds))), np.stack(times, axis=1)])
    methods = sorted(
        {method for by in scores.values() for method in by[seeds[0]]} - {"independent"}
    )
    ends, kept = {}, list[Cell]()
    for cell, by in scores.items():
        own = np.array([by[seed]["independent"] for seed in seeds])  # [seed, (old, new)]
        old, new = (weights @ own / weights.sum(1, keepdims=True)).T
        if new[0] - old[0] >= study.upgrade:
            ends[cell] = old, new
            kept.append(cell)
    design = _Design(study, kept, len(seeds))
    effects, explained, misfit = [], dict[str, float](), dict[str, float]()
    for method in methods:
        shares = []
        for cell in kept:
            cross = np.array([scores[cell][seed][method][0] for seed in seeds])
            mean = (weights @ cross) / weights.sum(1)
            share = share_of_upgrade(mean, *ends[cell])
            assert share is not None  # kept
            shares.append(np.clip(np.nan_to_num(share, nan=0.0), *study.cut))
        of_cells = np.array(shares)
        explained[method], misfit[method] = design.misfit(of_cells[:, 0])
        effects += design.effects(method, of_cells, misfit[method])
    without = len(scores) - len(kept)
    sure = surely(
        {(i, level): p for i, e in enumerate(effects) for level, p in e.p_above.items()}, LEVEL
    )
    effects = [
        replace(e, sure_at=frozenset(level for k, level in sure if k == i))
        for i, e in enumerate(effects)
    ]
    return Factors(metric, tuple(effects), len(kept), without, len(seeds), explained, misfit)


def _scores(study: FactorStudy, records: Iterable[Record], metric: str) -> ByCell:
    """Cross-tests, and of the independent model both ends; of seeds that have every method."""
    found: ByCell = {}
    for record in records:
        cell = study.levels(record)
        if cell is None or record.status != "done" or record.diverged:
            continue
        one = [record]
        cases: tuple[str, ...] = (select.cross_case(one),)
        if record.method == "independent":
            cases = select.lower_case(one), select.self_case(one)
        values = [select.score(record, case, metric) for case in cases]
        if None not in values:
            own = found.setdefault(cell, {}).setdefault(record.seed, {})
            own[record.method] = tuple(float(v) for v in values if v is not None)
    methods = {m for by in found.values() for own in by.values() for m in own}
    if found and "independent" not in methods:
        raise AbsentError("factors: expected records of independent in every cell, got none")
    return {
        c: {s: own for s, own in by.items() if own.keys() == methods} for c, by in found.items()
    }


class _Design:
    """Cells as rows of zeros and ones, and the prediction at each level."""

    def __init__(self, study: FactorStudy, cells: Sequence[Cell], seeds: int) -> None:
        self.study, self.seeds = study, seeds
        self.columns = [
            (name, level) for name, f in study.factors.items() for level in f.levels.values()
        ]
        names = list(study.factors)
        rows = np.array([
            [cell[names.index(name)] == level for name, level in self.columns] for cell in cells
        ], float).reshape(len(cells), len(self.columns))  # fmt: skip
        for (name, level), n in zip(self.columns, rows.sum(0), strict=True):
            if not n:
                raise AbsentError(f"factors: {name}: {level}: expected a cell with an upgrade")
        self.whole = np.column_stack([np.ones(len(cells)), rows])
        self.solve = np.linalg.pinv(self.whole)  # the shortest solution: effects around 0
        rank = int(np.linalg.matrix_rank(self.whole))
        wanted = 1 + sum(len(f.levels) - 1 for f in study.factors.values())
        if rank < wanted:
            raise AbsentError(
                f"factors: expected cells that tell {wanted} effects apart, got {rank}"
            )
        self.free = len(cells) - rank
        if not self.free:
            raise AbsentError(f"factors: expected more cells than {wanted} effects, got as many")

    def effects(self, method: str, shares: Floats, misfit: float) -> list[FactorEffect]:
        """Effects of each factor, of shares by cell and draw, ``[cell, 1 + draws]``."""
        return [self._effect(method, name, shares, misfit) for name in self.study.factors]

    def misfit(self, shares: Floats) -> tuple[float, float]:
        """Share of the variance of cells that is explained, and the deviation that is not."""
        left = shares - self.whole @ (self.solve @ shares)
        unexplained, whole = float(left @ left), len(shares) * float(shares.var())
        explained = 1 - unexplained / whole if whole > 0 else 1.0
        return explained, (unexplained / self.free) ** 0.5

    def _weights(self, name: str) -> Floats:
        """Weights of cells in the share at each level of a factor, ``[level, cell]``."""
        factors = self.study.factors
        own = iter(np.eye(len(factors[name].levels)))
        columns = [
            next(own) if factor == name else np.full(len(factors[name].levels), 1 / len(f.levels))
            for factor, f in factors.items() for _ in f.levels
        ]  # fmt: skip
        return np.stack([np.ones_like(columns[0]), *columns], axis=1) @ self.solve

    def _effect(self, method: str, name: str, shares: Floats, misfit: float) -> FactorEffect:
        from scipy.special import stdtrit  # takes long to import

        factor, weights = self.study.factors[name], self._weights(name)
        at = weights @ shares  # [level, 1 + draws]
        levels = list(factor.levels.values())
        over = [self._over_seeds(line) for line in at]
        found = dict(zip(levels, over, strict=True))
        own = misfit * np.linalg.norm(weights, axis=1)
        wide = stdtrit(self.free, 0.975) * own
        best, worst = int(at[:, 0].argmax()), int(at[:, 0].argmin())
        pairs = [*combinations(range(len(levels)), 2)]
        its = pairs.index((min(best, worst), max(best, worst))) if best != worst else None
        apart = {(i, j): at[i] - at[j] for i, j in pairs}

        def p_misfit(i: int, j: int) -> float:
            left = misfit * float(np.linalg.norm(weights[i] - weights[j]))
            return _p(apart[i, j][0], math.hypot(self._deviation(apart[i, j]), left), self.free)

        of_seeds = [_p(line[0], self._deviation(line), self.seeds - 1) for line in apart.values()]
        p, p_with = (
            1.0 if its is None else float(holm(np.array(values))[its])
            for values in (of_seeds, [p_misfit(*two) for two in pairs])
        )
        widest = self._over_seeds(at[best] - at[worst])
        matters = widest.known >= self.study.matters and p < LEVEL
        above = [found[level].is_above(0.0) for level in levels]
        first = next((i for i in range(len(levels)) if all(above[i:])), None)
        both = [math.hypot(self._deviation(line), left) for line, left in zip(at, own, strict=True)]
        p_above = [
            _p(line[0], of, self.free) if line[0] > 0 else 1.0
            for line, of in zip(at, both, strict=True)
        ]
        return FactorEffect(
            method, name, found, dict(zip(levels, wide.tolist(), strict=True)), widest, p,
            matters, surely=matters and p_with < LEVEL,
            pays_from=levels[first] if factor.ordered and first is not None else None,
            p_above=dict(zip(levels, p_above, strict=True)),
        )  # fmt: skip

    def _deviation(self, line: Floats) -> float:
        """Standard error over the seeds, of the value and its draws ``[1 + draws]``."""
        return float(line[1:].std()) * math.sqrt(self.seeds / (self.seeds - 1))

    def _over_seeds(self, line: Floats) -> Estimate:
        """The value with its 95 % interval: percentiles of draws of ten seeds would hold 90 %."""
        half = t_factor(self.seeds) * math.sqrt(self.seeds) * self._deviation(line)
        return Estimate(float(line[0]), float(line[0]) - half, float(line[0]) + half)


def _p(value: float, deviation: float, freedom: int) -> float:
    """Two-sided, of a value being 0, by Student's t."""
    from scipy.special import stdtr

    if not deviation:
        return float(value == 0)
    return 2 * float(stdtr(freedom, -abs(value) / deviation))
