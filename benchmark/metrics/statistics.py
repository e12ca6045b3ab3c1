"""Intervals over seeds, corrected tests and rank correlation.

A ValueError names an argument that is empty, holds NaN, has another length or is out of range.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np

from benchmark.metrics.catalog import metric
from benchmark.metrics.estimate import Estimate
from benchmark.ranking import arrays
from benchmark.ranking.arrays import Values

K = TypeVar("K")


@cache
def t_factor(n: int) -> float:
    """Half of Student's 95 % interval of a mean of ``n`` >= 2 values, in deviations (ddof 1)."""
    from scipy.special import stdtrit  # scipy.stats takes over a second to import

    if n < 2:
        raise ValueError(f"n: expected at least 2, got {n}")
    return float(stdtrit(n - 1, 0.975)) / math.sqrt(n)


def mean_score(
    values: Sequence[float | None], spans: Sequence[tuple[float, float] | None] = ()
) -> Estimate:
    """The mean over seeds; of a single one with its own interval, if there is any.

    Example:
        >>> mean_score([0.5], [(0.4, 0.6)])
        Estimate(value=0.5, low=0.4, high=0.6, sampling=None)
    """
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return Estimate(None)
    if len(known) == 1:
        return Estimate.of(known[0], spans[0] if spans else None)
    # Plain numbers in lists: a few seeds, and hundreds of thousands of cells.
    mean = math.fsum(known) / len(known)
    spread = math.sqrt(math.fsum([(v - mean) ** 2 for v in known]) / (len(known) - 1))
    half = t_factor(len(known)) * spread
    return Estimate(mean, mean - half, mean + half)


def t_test(values: Any) -> float:
    """Two-sided p-value of the mean of values ``[n >= 2]`` against none, by Student's t."""
    from scipy.special import stdtr

    x = np.asarray(values, np.float64)
    deviation = float(x.std(ddof=1)) / math.sqrt(len(x))
    if not deviation:
        return float(x[0] == 0)
    return float(2 * stdtr(len(x) - 1, -abs(x.mean()) / deviation))


def holm(p_values: Any) -> Values:
    """Adjusted p-values of several comparisons, in their order; reject those up to the level.

    Source: Holm 1979 (scipy has only corrections of the false discovery rate).

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03]))
        array([0.03, 0.06, 0.06])
    """
    p = arrays.scores("p_values", p_values).astype(np.float64)
    if ((p < 0) | (p > 1)).any():
        raise ValueError("p_values: expected values in [0, 1]")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def surely(p_values: Mapping[K, float], level: float) -> set[K]:
    """Names whose p-value is at most a level, by Holm's correction for all of them."""
    adjusted = holm([*p_values.values()]) if p_values else ()
    return {name for name, p in zip(p_values, adjusted, strict=True) if p <= level}


@metric(
    "kendall_tau", "Kendall tau", "Tau-b: ties lower it; None where a side is constant.",
    low=-1.0, unit="coefficient",
)  # fmt: skip
def kendall_tau(left: Any, right: Any) -> float | None:
    """Kendall's tau-b of two scores of the same n >= 2 items; None where one side is constant.

    FastFill compares orders so (figure 2c and appendix E).

    Example:
        >>> kendall_tau([1.0, 2.0, 3.0], [30.0, 20.0, 10.0])
        -1.0
    """
    from scipy.stats import kendalltau

    x, y = arrays.scores("left", left), arrays.scores("right", right)
    if len(x) != len(y) or len(x) < 2:
        raise ValueError(f"right: expected {max(len(x), 2)} scores, got {len(y)}")
    tau = float(kendalltau(x, y).statistic)
    return None if math.isnan(tau) else tau
