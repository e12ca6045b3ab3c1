"""Means, differences and shares of the upgrade that are kept, with intervals over queries.

Queries are drawn anew, whole groups of them where they belong together. What is estimated from a
sample of the gallery has a second source of error, which draws of the estimate show; both make one
interval. The share of the upgrade rests on the same differences that say whether there is an
upgrade, so that the two cannot contradict each other.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.compatibility import share_of_upgrade
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.intervals import MeanDifference, mean_difference, mean_spread, usual_step
from benchmark.ranking.arrays import Ints, Values

_FARTHEST = 1e4
"""Shares beyond this say nothing, and are no ends."""


@dataclass(frozen=True)
class Scored:
    """Scores of a strategy by one metric.

    Attributes:
        values: One for each judged query, ``[n]``; an estimated one is the mean of its draws.
        noise: Error of the mean in each draw of the estimate, ``[draws]``; the same draws for
            all strategies. None where all is measured.
        draws: Scores in each draw, ``[draws, n]`` float16: of fewer queries the mean is less
            certain, by as much as their errors are their own. None where all is measured, and
            for differences.
    """

    values: Values
    noise: Values | None = None
    draws: NDArray[np.float16] | None = None

    @classmethod
    def of_draws(cls, draws: Values) -> "Scored":
        """Average draws of an estimate, ``[draws, n]``."""
        means = draws.mean(axis=1, dtype=np.float64)
        return cls(draws.mean(axis=0), means - means.mean(), draws.astype(np.float16))

    def of_queries(self, at: Ints, turn: int = 0) -> "Scored":
        """Scores of some queries, by place ``[k]``; draws of the estimate turned by ``turn``."""
        if self.draws is None:
            if self.noise is not None:
                raise ValueError("expected scores with their draws, got a difference")
            return Scored(self.values[at])
        some = self.draws[:, at]
        means = np.roll(some.mean(axis=1, dtype=np.float64), turn)
        return Scored(self.values[at], means - means.mean(), np.roll(some, turn, axis=0))

    @property
    def mean(self) -> float:
        """Mean over the queries."""
        return float(self.values.mean())

    @property
    def variance(self) -> float:
        """Variance of the mean, by what is not measured."""
        if self.noise is None or len(self.noise) < 2:
            return 0.0
        return float(self.noise.var(ddof=1)) * (1 + 1 / len(self.noise))

    @property
    def sampling(self) -> float | None:
        """1.96 standard errors of the estimate, of the sample of the gallery alone."""
        return None if self.noise is None else 1.96 * math.sqrt(self.variance)

    def less(self, other: "Scored", times: float = 1.0) -> "Scored":
        """The difference to some times another one, query by query and draw by draw."""
        noise = self.noise
        if other.noise is not None:
            noise = (0.0 if noise is None else noise) - times * other.noise
        return Scored(self.values - times * other.values, noise)


def measured(values: Values) -> Scored:
    """Take scores that nothing has to be estimated for, ``[n]``."""
    return Scored(np.asarray(values, np.float64))


def mean(scored: Scored, groups: Any = None) -> Estimate:
    """The mean of scores in [0, 1], drawn anew by query or group; estimates are cut off there."""
    found = mean_spread(scored.values, groups).with_variance(scored.variance)
    return Estimate.of(float(np.clip(found.value, 0, 1)), found.interval(), scored.sampling)


def contrast(
    left: Scored, right: Scored, groups: Any = None, step: float | None = None
) -> MeanDifference:
    """The mean difference of two strategies on the same queries, to be asked for its interval.

    ``step`` is that of :func:`~benchmark.metrics.intervals.mean_difference`.
    """
    rest = left.less(right)
    return mean_difference(rest.values, groups, rest.variance, step)


def difference(
    left: Scored, right: Scored, groups: Any = None, step: float | None = None
) -> Estimate:
    """The mean difference of two scores in [0, 1] on the same queries, as :func:`contrast`."""
    found = contrast(left, right, groups, step)
    ends = found.interval()
    if ends is not None:
        ends = max(-1.0, ends[0]), min(1.0, ends[1])
    return Estimate.of(found.value, ends, left.less(right).sampling)


def beyond(
    scored: Scored, old: Scored | None, new: Scored, share: float, groups: Any = None
) -> MeanDifference:
    """The excess of a strategy over one that keeps a share of the upgrade from ``old`` to ``new``.

    The mean of ``(scored - old) - share (new - old)``; it is 0 for a strategy that keeps just that.
    One query more may lose or gain as much as the upgrade changes a query: a strategy that agrees
    with the new model on every query that was seen may differ on others.
    """
    rest = scored.less(new, share)
    upgrade = new.values
    if old is not None:
        rest = rest.less(old, 1 - share)
        upgrade = upgrade - old.values
    return mean_difference(rest.values, groups, rest.variance, usual_step(upgrade, groups))


def share_kept(
    scored: Scored, old: Scored | None, new: Scored, groups: Any = None
) -> Estimate | None:
    """The share of the upgrade from ``old`` to ``new`` that a strategy keeps.

    ``(scored - old) / (new - old)`` of the means; without ``old`` it is ``scored / new``. The
    interval holds every share that the differences on the same queries do not rule out (Fieller,
    Some problems in interval estimation, 1954); it has no end on a side where there may be no
    upgrade to keep a share of.

    Returns:
        None where the upgrade is none.
    """
    upgrade = new if old is None else new.less(old)
    top = scored if old is None else scored.less(old)
    value = share_of_upgrade(top.mean, 0.0, upgrade.mean)
    if value is None:
        return None
    if scored is new or scored is old:
        return Estimate(*[float(scored is new)] * 3)
    sure = mean_difference(upgrade.values, groups, upgrade.variance).interval()
    if sure is None or sure[0] <= 0:
        return Estimate(value)

    ends = (_end(scored, old, new, side, groups) for side in (-1, 1))
    low, high = ends
    return Estimate(value, low, high)


def _end(
    scored: Scored, old: Scored | None, new: Scored, side: int, groups: Any
) -> float | None:  # fmt: skip
    """The share, on one side of what is seen, beyond which all are ruled out; None for none.

    The mean of :func:`beyond` is linear in the share, and its variance quadratic: where the mean is
    as many deviations off 0 as the quantile says, a quadratic is 0.
    """
    at = [beyond(scored, old, new, share, groups) for share in (0.0, 0.5, 1.0)]
    spreads = [each.below if side < 0 else each.above for each in at]
    t = max(each.quantile() for each in at)
    mean = np.array([spreads[2][0] - spreads[0][0], spreads[0][0]])
    a, b, c = (deviation**2 for _, deviation in spreads)
    variance = np.array([2 * (a - 2 * b + c), -3 * a + 4 * b - c, a])
    roots = np.roots(np.polymul(mean, mean) - t * t * variance)
    real = [float(root.real) for root in roots if abs(root.imag) < 1e-6 * max(1.0, abs(root))]
    fit = [root for root in real if side * np.polyval(mean, root) <= 0]
    found = min(fit, key=lambda root: -side * root) if fit else None
    return found if found is not None and abs(found) <= _FARTHEST else None
