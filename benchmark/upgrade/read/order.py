"""Signs that rows by two models hold vectors of the same things, in the same order.

What is near by one model is near by the other. Where one side is shuffled it is no nearer than any;
where a row is missing or comes twice, all behind it is.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmark.errors import BenchError
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.formats.joining import Join
from benchmark.upgrade.read.gallery import about_mean

LEAST = 50
"""Rows from which on similarities are compared."""
COMPARED = 400
"""Rows whose similarities are compared, at most."""
_PARTS = 4
_SHUFFLES = 20
_ENOUGH = 2.0  # least correlation, of the highest of the shuffles
_ROUNDING = 1e-6  # of the largest number; float32 rounds at 6e-8
_PLAIN = 4.0  # the same of the best part of some, beside which another part may be found odd


@dataclass(frozen=True)
class SameOrder:
    """Rows of two sources that are compared."""

    joined: Join  # rows of the new source, first, and of the old one
    rows: Ints  # of the old source, ascending, [n]
    old: Floats  # [n, d_old]
    new: Floats  # [n, d_new]

    @classmethod
    def of(cls, joined: Join, rows: Ints, old: Floats, new: Floats, seed: int = 0) -> "SameOrder":
        """Compare some of many rows."""
        rng = np.random.default_rng(seed)
        some = rng.permutation(len(rows))[:COMPARED]
        some = some[np.argsort(rows[some])]
        return cls(joined, rows[some], old[some], new[some])

    @cached_property
    def holds(self) -> bool:
        """True where rows are more alike than shuffled ones, or are too few to tell."""
        rng = np.random.default_rng(0)
        return len(self.rows) < LEAST or likeness(self.old, self.new, rng) > _ENOUGH

    def warnings(self) -> list[str]:
        """Signs that rows are not what they should be.

        Raises:
            BenchError: If rows pair as they stand, and are no more alike than shuffled ones.
        """
        (new, old), rng = self.joined.names, np.random.default_rng(1)
        if not self.holds:
            if not self.joined.by_id:
                raise BenchError(
                    f"{new}: expected the rows of {old} in the same order, got vectors that are no "
                    "more alike than shuffled ones; with ids on both sides any order will do"
                )
            return [
                f"Warning: rows that are near in {old} are not near in {new}: do the ids name the "
                "same things?"
            ]
        ends = np.linspace(0, len(self.rows), _PARTS + 1).astype(int)
        if ends[1] < LEAST:
            return []
        parts = list(itertools.pairwise(ends))
        alike = [likeness(self.old[a:b], self.new[a:b], rng) for a, b in parts]
        odd = [part for part, each in zip(parts, alike, strict=True) if each <= _ENOUGH]
        if not odd or max(alike) < _PLAIN:
            return []
        first, last = self.rows[odd[0][0]], self.rows[odd[-1][1] - 1]
        asked = "do ids name the same things" if self.joined.by_id else "is a row missing, or twice"
        return [
            f"Warning: rows {first:,} to {last:,} of {old} that are near there are not near in "
            f"{new}, those of other parts are: {asked}?"
        ]


def is_constant(vectors: Floats) -> bool:
    """Tell whether vectors ``[n, dim]`` are all the same, but for rounding."""
    return bool(np.ptp(vectors, axis=0).max() <= _ROUNDING * np.abs(vectors).max())


def likeness(old: Floats, new: Floats, rng: np.random.Generator) -> float:
    """Correlation of similarities by both models, of the highest of twenty shuffles.

    ``old`` is ``[n, d_old]`` and ``new`` ``[n, d_new]``; infinite where all are alike by one model,
    as nothing can be said then.
    """
    n = len(old)
    # Processors round the mean of equal rows otherwise: what is left of them may be noise.
    if is_constant(old) or is_constant(new):
        return float("inf")
    left, right = (side @ side.T for side in map(about_mean, (old, new)))
    a, b = np.triu_indices(n, 1)
    by_old, by_new = left[a, b].astype(np.float64), right[a, b].astype(np.float64)
    if not (np.ptp(by_old) and np.ptp(by_new)):
        return float("inf")
    by_old -= by_old.mean()
    right = right - by_new.mean()  # the mean and the deviation are the same in any order

    def correlation(order: Ints) -> float:
        return abs(float(by_old @ right[order[a], order[b]]))

    shuffled = max(correlation(rng.permutation(n)) for _ in range(_SHUFFLES))
    return correlation(np.arange(n)) / max(shuffled, 1e-300)
