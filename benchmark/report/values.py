"""Cells of a table: one seed's value with its interval, or the mean of several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Span = tuple[float, float]


@dataclass(frozen=True)
class Cell:
    """A score.

    Attributes:
        case: What was measured; differs from the column's in the rows of the bounds.
        value: A fraction, mean over seeds; None where undefined on a seed.
        low: Lower end of the 95 % interval: bootstrap of one seed, Student's t over several.
        high: Upper end.
        best: Is it the best of the methods in its column?
    """

    case: str
    value: float | None
    low: float | None = None
    high: float | None = None
    best: bool = False


@dataclass(frozen=True)
class Verdict:
    """What a method's cross-test means.

    Attributes:
        compatible: (seeds on which new/old > old/old, seeds); None where unknown.
        not_hurting: (seeds on which new/new is no worse than the independent model's, seeds).
        gain: Mean update gain; None where a seed has none.
        best: Is the gain the best of the methods?
    """

    compatible: tuple[int, int] | None
    not_hurting: tuple[int, int] | None
    gain: float | None
    best: bool = False


def cell(case: str, values: Sequence[float | None], spans: Sequence[Span | None]) -> Cell:
    """Combine seeds.

    Args:
        case: What was measured.
        values: One a seed.
        spans: Bootstrap interval of each seed.

    Example:
        >>> cell("new/old", [0.5], [(0.4, 0.6)])
        Cell(case='new/old', value=0.5, low=0.4, high=0.6, best=False)
    """
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return Cell(case, None)
    if len(known) == 1:
        low, high = spans[0] or (None, None)
        return Cell(case, known[0], low, high)
    from benchmark.metrics.statistics import t_factor

    # Plain numbers: a few seeds, and thousands of cells.
    mean = math.fsum(known) / len(known)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in known) / (len(known) - 1))
    half = t_factor(len(known)) * spread
    return Cell(case, mean, mean - half, mean + half)


def mean_gain(gains: Sequence[float | None]) -> float | None:
    """Mean over seeds; none where one seed is not compatible, or the mean would flatter.

    Example:
        >>> mean_gain([0.25, 0.75]), mean_gain([0.25, None])
        (0.5, None)
    """
    known = [gain for gain in gains if gain is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(gains) else None
