"""Intervals of one seed's scores, over classes, identities or queries drawn with replacement.

A group (a class, an identity) is drawn with all its queries: queries of one class share its luck.
The interval is Student's t after Hall's transformation, which corrects for the skewness that scores
near 0 and 1 have; where no group differs from the others, Wilson's, each group one trial.
``bench perf coverage`` simulates how often such an interval holds the true score.

A few large groups among many small ones say less than their number: the deviation is Bell and
McCaffrey's and has the degrees of freedom that Satterthwaite's approximation gives to it (Bias
reduction in standard errors for linear regression with multi-stage samples, 2002).

A ValueError names an argument that is empty, holds NaN, has another length or is out of range.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import arrays
from benchmark.ranking.arrays import Values

Span = tuple[float, float]

DRAWS = 500
"""Draws of the groups, where a score is no mean over queries."""
LEAST_GROUPS = 5
"""Fewer groups say nothing of others: Student's t of two or three is wider than all scores."""
_BLOCK = 1 << 22  # weights that are held at a time


@dataclass(frozen=True)
class Spread:
    """A score, and how it would vary with other groups drawn from the same population."""

    value: float
    deviation: float  # standard deviation of the score
    skewness: float  # of its distribution
    n_groups: int
    freedom: float = math.inf  # degrees of freedom of the deviation; at most n_groups - 1 count

    def interval(self, level: float = 0.95, *, share: bool = True) -> Span | None:
        """Ends of the interval; None for fewer than ``LEAST_GROUPS`` groups.

        Args:
            level: Share of intervals that shall hold the true score, in (0, 1).
            share: The score is one in [0, 1]; False for differences, which are not.

        Source:
            Hall, On the removal of skewness by transformation, 1992; Wilson, 1927.

        Example:
            >>> low, high = Spread(0.9, 0.05, 0.0, 30).interval()
            >>> round(low, 3), round(high, 3)
            (0.798, 1.0)
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level: expected a share in (0, 1), got {level}")
        if self.n_groups < LEAST_GROUPS:
            return None
        t = _t_quantile(self._freedom(), 0.5 + level / 2)
        if self.deviation <= 1e-12:
            return _wilson(self.value, self.n_groups, t) if share else (self.value, self.value)
        low, high = (self.value - self.deviation * _unskewed(x, self.skewness) for x in (t, -t))
        return (max(0.0, low), min(1.0, high)) if share else (low, high)

    def p_value(self) -> float:
        """Two-sided p-value of a difference against none, by Student's t; 1 without an interval."""
        from scipy.special import stdtr

        if self.n_groups < LEAST_GROUPS or self.deviation <= 1e-12:
            return float(self.value == 0 or self.n_groups < LEAST_GROUPS)
        return float(2 * stdtr(self._freedom(), -abs(self.value) / self.deviation))

    def _freedom(self) -> float:
        """Degrees of freedom: four for each group that differs, where few alone make the spread.

        Where ``k`` groups do, the skewness is near the root of ``1 / k``. Four was chosen by
        simulation.
        """
        return min(self.n_groups - 1.0, self.freedom, 4 / max(self.skewness**2, 1e-9))

    def with_variance(self, variance: float) -> "Spread":
        """The spread with a known variance beside that of drawing groups."""
        if not variance:
            return self
        total = math.sqrt(self.deviation**2 + variance)
        part = self.deviation / total
        freedom = self.freedom / part**4 if part else math.inf
        return Spread(self.value, total, self.skewness * part**3, self.n_groups, freedom)


@dataclass(frozen=True)
class MeanDifference:
    """The mean of paired differences, with one more group than was seen on either side.

    A difference that few queries make may be missing from a sample altogether, and Student's t of
    what is there then knows nothing of it: two methods that agree on all of ``n`` queries would
    surely be equal. So each end of the interval has one more group, which differs that way
    (:func:`usual_step`): by as much as those that differ do where many are, by more where few are,
    wholly where none is. The ends then lie near 3 / n, as the rule of three has it.

    Attributes:
        value: The mean difference.
        below: Mean and standard deviation with one more group that lowers it.
        above: As it, with one that raises it.
        n_groups: Groups that were seen.
        freedom: Degrees of freedom of the deviations; as many as groups of one size.
    """

    value: float
    below: tuple[float, float]
    above: tuple[float, float]
    n_groups: int
    freedom: float

    def interval(self, level: float = 0.95) -> Span | None:
        """Ends of the interval; None for fewer than ``LEAST_GROUPS`` groups."""
        t = self.quantile(level)
        if self.n_groups < LEAST_GROUPS:
            return None
        return self.below[0] - t * self.below[1], self.above[0] + t * self.above[1]

    def quantile(self, level: float = 0.95) -> float:
        """Deviations from the mean to an end of the interval."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level: expected a share in (0, 1), got {level}")
        return _t_quantile(self.freedom, 0.5 + level / 2)

    def p_value(self) -> float:
        """Two-sided p-value against no difference: below 0.05 just where the interval is off 0."""
        if self.n_groups < LEAST_GROUPS:
            return 1.0
        return min(1.0, 2 * min(self.p_above(0.0), self._tail(self.above[0], self.above[1])))

    def p_above(self, least: float) -> float:
        """One-sided p-value of a mean difference of ``least`` or more; 1 without an interval."""
        if self.n_groups < LEAST_GROUPS:
            return 1.0
        return self._tail(least - self.below[0], self.below[1])

    def _tail(self, distance: float, deviation: float) -> float:
        from scipy.special import stdtr

        if deviation == 0.0:
            return float(np.sign(distance) + 1) / 2
        return float(stdtr(self.freedom, distance / deviation))


def mean_difference(
    values: Any, groups: Any = None, variance: float = 0.0, step: float | None = None
) -> MeanDifference:
    """The mean of paired differences of queries, ``[m]``, drawn anew by query or by group.

    Args:
        values: Left minus right.
        groups: As of :func:`mean_spread`.
        variance: Of the mean, beside that of drawing queries, as where scores are estimates.
        step: By how much one more group may differ; by default as those that do.
    """
    sums, counts = group_sums(values, groups)
    step = usual_step(values, groups) if step is None else step
    one, alike = float(counts.mean()), likeness(values, sums, counts)
    low, high = (
        sums_spread(np.append(sums, side), np.append(counts, one), alike).with_variance(variance)
        for side in (-step * one, step * one)
    )
    return MeanDifference(
        float(sums.sum() / counts.sum()),
        (low.value, low.deviation), (high.value, high.deviation),
        len(sums), min(low.freedom, high.freedom, float(len(sums))),
    )  # fmt: skip


def usual_step(values: Any, groups: Any = None) -> float:
    """Difference of one more group: root mean square of those that are not 0, and of a whole one.

    The whole one, 1, counts as much as the share of the groups that agree: where few differ, those
    seen say little of the largest there is, and a small one alone must not seem surer than none.
    """
    sums, counts = group_sums(values, groups)
    means = sums / counts
    agreeing = float((means == 0).mean())
    return math.sqrt((float((means**2).sum()) + agreeing) / (np.count_nonzero(means) + agreeing))


def mean_spread(values: Any, groups: Any = None) -> Spread:
    """The mean of values of queries, ``[m]``, and its spread.

    ``groups`` are the queries' classes or identities, ``[m]``; without them queries are drawn one
    by one. Groups may differ in size: a mean is a ratio of two sums, and this is its first-order
    variance.
    """
    sums, counts = group_sums(values, groups)
    return sums_spread(sums, counts, likeness(values, sums, counts))


def mean_spreads(table: Any, groups: Any) -> list[Spread]:
    """The spread of each row's mean, ``[points, m]``, as :func:`mean_spread`."""
    rows = np.asarray(table, dtype=np.float64)
    arrays.finite("values", rows)
    if not rows.size:
        raise ValueError("values: expected at least one, got none")
    codes = _codes(groups, rows.shape[1])
    counts = np.bincount(codes).astype(np.float64)
    every = ((row, np.bincount(codes, row).astype(np.float64)) for row in rows)
    return [sums_spread(sums, counts, likeness(row, sums, counts)) for row, sums in every]


def group_sums(values: Any, groups: Any = None) -> tuple[Values, Values]:
    """Sum and number of the values of each group, ``[groups]``; differences of sums need no more.

    Arguments are those of :func:`mean_spread`.
    """
    x = arrays.scores("values", values).astype(np.float64)
    if not len(x):
        raise ValueError("values: expected at least one, got none")
    if groups is None:
        return x, np.ones(len(x))
    codes = _codes(groups, len(x))
    return np.bincount(codes, x).astype(np.float64), np.bincount(codes).astype(np.float64)


def likeness(values: Any, sums: Values, counts: Values) -> float:
    """The intraclass correlation of values, ``[m]``, in [0, 1]; 1 for groups of one value each.

    The estimator of the analysis of variance (Donner, A review of inference procedures for the
    intraclass correlation coefficient, 1986, section 2).
    """
    n, total = len(sums), float(counts.sum())
    if n in (1, total):
        return 1.0
    between = float((sums**2 / counts).sum())
    inside = max(0.0, float((np.asarray(values, np.float64) ** 2).sum()) - between) / (total - n)
    among = max(0.0, between - float(sums.sum()) ** 2 / total) / (n - 1)
    usual = (total - float((counts**2).sum()) / total) / (n - 1)  # size of a group
    whole = among + (usual - 1) * inside
    return float(np.clip((among - inside) / whole, 0.0, 1.0)) if whole > 0 else 1.0


def sums_spread(sums: Values, counts: Values, alike: float = 1.0) -> Spread:
    """The spread of a mean from :func:`group_sums` and :func:`likeness`."""
    n, total = len(sums), counts.sum()
    mean = float(sums.sum() / total)
    rest = sums - mean * counts
    others = np.maximum(1 - counts / total, 1e-12)  # nothing for a group alone, whose rest is 0
    deviation = math.sqrt(float((rest**2 / others).sum())) / float(total)
    # One sum leaves rounding alone, as sums of equal means do.
    if n == 1 or deviation <= 1e-12 * max(1.0, abs(mean)):
        return Spread(mean, 0.0, 0.0, n)
    freedom = _sizes_freedom(counts, others, alike)
    return Spread(mean, deviation, _skewness(rest) / math.sqrt(n), n, freedom)


def _sizes_freedom(counts: Values, others: Values, alike: float) -> float:
    """Satterthwaite's degrees of freedom of a deviation over groups of these sizes.

    Values of a group correlate by ``alike``. The deviation is a quadratic form in the values, whose
    matrix over the groups is ``diag(d) - a b' - b a' + s a a'``.
    """
    if np.ptp(counts) <= 1e-9 * counts.max():
        return len(counts) - 1.0
    sums = counts * (1 - alike + alike * counts)  # variance of a group's sum, but for a factor
    d, a, b = sums / others, (1 - others) / np.sqrt(others), sums / np.sqrt(others)
    s, aa, ab, bb = sums.sum(), a @ a, a @ b, b @ b
    off = 2 * a * b - s * a * a
    square = d @ d - 2 * (d @ off) + 2 * aa * bb + 2 * ab**2 + (s * aa) ** 2 - 4 * s * ab * aa
    return max(1.0, float((d - off).sum() ** 2 / square))


def mean_interval(values: Any, groups: Any = None, *, level: float = 0.95) -> Span | None:
    """The interval of a mean of shares; arguments are those of :func:`mean_spread`.

    Example:
        >>> low, high = mean_interval(np.ones(40), np.arange(40) // 4)
        >>> round(low, 2), high
        (0.66, 1.0)
    """
    return mean_spread(values, groups).interval(level)


def drawn_spread(value: float, draws: Any, n_groups: int, kept: Spread) -> Spread:
    """The spread of a score at a threshold, from its values ``[n]`` in draws of groups.

    ``kept`` is the spread of the same score at the threshold as it is. What the moving threshold
    adds to the skewness of draws counts a quarter: a curved function of a mean skews the
    studentised score less than skewed groups do. The quarter was chosen by simulation.
    """
    x = arrays.scores("draws", draws).astype(np.float64)
    if not len(x):
        raise ValueError("draws: expected at least one, got none")
    if np.ptp(x) <= 1e-12:
        return Spread(value, 0.0, 0.0, n_groups)
    # Draws of n groups vary by 1 / n less than samples do.
    deviation = float(x.std()) * math.sqrt(n_groups / max(1, n_groups - 1))
    of_kept = kept.skewness * min(1.0, kept.deviation / deviation) ** 3
    skewness = of_kept + (_skewness(x) - of_kept) / 4
    return Spread(value, deviation, skewness, n_groups, kept.freedom)


def weights(n_groups: int, n: int = DRAWS, seed: int = 0) -> Iterator[Values]:
    """Times that each draw has each group, ``[k, n_groups]`` block by block, ``n`` draws in all.

    The same for every method on the same data, so that differences can be taken draw by draw.
    """
    if n_groups < 1 or n < 1:
        raise ValueError(f"weights: expected groups and draws, got {n_groups} and {n}")
    rng = np.random.default_rng([seed, 0])
    step = max(1, _BLOCK // n_groups)
    for start in range(0, n, step):
        k = min(step, n - start)
        places = rng.integers(0, n_groups, (k, n_groups)) + n_groups * np.arange(k)[:, None]
        counts = np.bincount(places.ravel(), minlength=k * n_groups)
        yield counts.reshape(k, n_groups).astype(np.float64)


def _skewness(x: Values) -> float:
    centred = x - x.mean()
    return float((centred**3).mean() / (centred**2).mean() ** 1.5)


def _unskewed(t: float, skewness: float) -> float:
    """The studentised score with this skewness at which Hall's transformation is ``t``."""
    if abs(skewness) < 1e-9:
        return t
    return 3 / skewness * (math.cbrt(1 + skewness * (t - skewness / 6)) - 1)


def _wilson(value: float, n: int, t: float) -> Span:
    """Wilson's score interval of a share of ``n`` trials."""
    share = t * t / n
    middle = (value + share / 2) / (1 + share)
    half = math.sqrt(share * max(0.0, value * (1 - value)) + share * share / 4) / (1 + share)
    return max(0.0, middle - half), min(1.0, middle + half)


@lru_cache(maxsize=4096)
def _t_quantile(df: float, p: float) -> float:
    from scipy.special import stdtrit  # scipy.stats takes over a second to import

    return float(stdtrit(df, p))


def _codes(groups: Any, n: int) -> NDArray[np.int64]:
    """Groups as numbers from 0 on."""
    names = arrays.one_per_row("groups", groups, n)
    return np.unique(names, return_inverse=True)[1].astype(np.int64)
