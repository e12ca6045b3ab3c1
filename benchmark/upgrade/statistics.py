"""Intervals of what a study reports: means, differences, shares of the upgrade that are kept."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmark.metrics.intervals import Span, group_sums, mean_spread, weights
from benchmark.upgrade.evaluation import Values

DRAWS = 1000


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval; None where there is none."""

    value: float
    low: float | None = None
    high: float | None = None

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def mean(values: Values, groups: Any = None) -> Estimate:
    """The mean of scores in [0, 1], drawn anew by query or group; estimates are cut off there."""
    found = mean_spread(values, groups)
    return Estimate(float(np.clip(found.value, 0, 1)), *_ends(found.interval()))


def difference(left: Values, right: Values, groups: Any = None) -> Estimate:
    """The mean difference of two strategies on the same queries."""
    found = mean_spread(left - right, groups)
    return Estimate(found.value, *_ends(found.interval(share=False)))


def share_kept(
    values: Values, old: Values | None, new: Values, groups: Any = None, seed: int = 0
) -> Estimate | None:
    """The share of the upgrade from ``old`` to ``new`` that ``values`` keep.

    ``(values - old) / (new - old)`` of the means; without ``old`` it is ``values / new``. The
    interval is of draws of the queries, or of whole groups, with replacement; it has no end on a
    side where more than 2.5 % of the draws have no upgrade to keep a share of.

    Returns:
        None where the upgrade is none.
    """
    before = np.zeros_like(new) if old is None else old
    top, _ = group_sums(values - before, groups)
    bottom, _ = group_sums(new - before, groups)
    if bottom.sum() <= 0:
        return None
    drawn = np.concatenate([
        np.stack([w @ top, w @ bottom], axis=1) for w in weights(len(top), DRAWS, seed)
    ])  # fmt: skip
    sound = drawn[:, 1] > 0
    ratio = np.where(sound, drawn[:, 0] / np.where(sound, drawn[:, 1], 1), np.nan)
    # Draws themselves, not numbers between them, as some may be infinite.
    low = np.quantile(np.where(sound, ratio, -np.inf), 0.025, method="lower")
    high = np.quantile(np.where(sound, ratio, np.inf), 0.975, method="higher")
    if len(top) < 2:
        low, high = -np.inf, np.inf
    return Estimate(
        float(top.sum() / bottom.sum()),
        float(low) if np.isfinite(low) else None,
        float(high) if np.isfinite(high) else None,
    )


def _ends(span: Span | None) -> Span | tuple[None, None]:
    return span or (None, None)
