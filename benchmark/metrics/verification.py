"""1:1 verification: from genuine and impostor scores to operating points and curves.

Genuine scores ``[n]`` are those of pairs of one identity, impostor scores ``[m]`` those of two;
they keep their own precision. A pair is accepted where its score reaches the threshold. TAR is the
share of genuine pairs accepted, FAR that of impostor pairs. A ValueError says which side is empty
or not finite, or which target m impostors cannot resolve.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.catalog import metric
from benchmark.ranking import arrays

RATE = "Ties are accepted or refused together; a target below 1/n is refused."


@dataclass(frozen=True)
class OperatingPoint:
    """TAR at the threshold for a target FAR, the FAR achieved there, and the numbers of pairs."""

    target: float
    tar: float
    far: float
    threshold: float
    n_genuine: int
    n_impostor: int


@dataclass(frozen=True)
class Curve:
    """The ROC at every distinct score, from accepting nothing to accepting all.

    Attributes:
        far: False accept rates, ascending from 0 to 1.
        tar: True accept rates, ascending from 0 to 1.
        threshold: The scores, descending; the first is infinite.
    """

    far: NDArray[np.float64]
    tar: NDArray[np.float64]
    threshold: NDArray[np.float64]

    @property
    def frr(self) -> NDArray[np.float64]:
        """False reject rates, descending: beside ``far`` the DET curve."""
        return 1.0 - self.tar


@metric(
    "tar_at_far_{rate}", "TAR@FAR {rate}",
    f"Smallest threshold whose FAR is within the target. {RATE}",
)  # fmt: skip
def tar_at_far(genuine: Any, impostor: Any, targets: Iterable[float]) -> tuple[OperatingPoint, ...]:
    """TAR at the smallest threshold whose FAR is within each target, FARs in [1/m, 1].

    With ties the achieved FAR may lie well below the target: impostors of equal score are accepted
    or refused together. Source: IJB-C's protocol; evaluation rule of the share >= threshold.

    Example:
        >>> impostor = np.array([0.1, 0.2, 0.3, 0.4])
        >>> point, = tar_at_far(np.array([0.35, 0.9]), impostor, [0.25])
        >>> point.tar, point.far
        (1.0, 0.25)
    """
    good, bad = _sides(genuine, impostor)
    rates = measurable("targets", targets, len(bad), "impostor pairs")
    thresholds = smallest_thresholds(bad, rates, low=float(min(good.min(), bad.min())))
    return tuple(_point(good, bad, *pair) for pair in zip(rates, thresholds, strict=True))


@metric(
    "tar_at_nearest_far_{rate}", "TAR@nearest FAR {rate}",
    "FAR nearest to the target, which it may exceed; of two the larger. For comparison.",
)  # fmt: skip
def tar_at_nearest_far(
    genuine: Any, impostor: Any, targets: Iterable[float]
) -> tuple[OperatingPoint, ...]:
    """TAR where the FAR is *nearest* to each target, which it may exceed; for comparison only.

    Of two equally near rates the larger is taken. Source: the script in common use for IJB-C
    (``argmin |fpr - target|`` on scikit-learn's roc_curve).
    """
    good, bad = _sides(genuine, impostor)
    curve = roc(good, bad)
    points = []
    for target in measurable("targets", targets, len(bad), "impostor pairs"):
        distance = np.abs(curve.far - target)
        at = len(distance) - 1 - int(np.argmin(distance[::-1]))
        points.append(_point(good, bad, target, float(curve.threshold[at])))
    return tuple(points)


def measurable(name: str, targets: Iterable[float], n: int, what: str) -> list[float]:
    """Target rates that ``n`` scores can resolve.

    Raises:
        ValueError: If a target is not in [1/n, 1].
    """
    rates = [float(target) for target in targets]
    for rate in rates:
        if not 0.0 < rate <= 1.0:
            raise ValueError(f"{name}: expected rates in (0, 1], got {rate}")
        if rate < 1.0 / n:
            raise ValueError(f"{name}: expected at least 1/{n} ({n} {what}), got {rate}")
    return rates


def smallest_thresholds(bad: NDArray[Any], targets: list[float], low: float) -> list[float]:
    """The smallest threshold for which the share of ``bad >= threshold`` is within each target.

    Args:
        bad: Scores that should be refused, ``[m]``, m >= 1.
        targets: Rates in [1/m, 1].
        low: What stands for "accept all": no score lies below.

    Returns:
        Thresholds in the precision of ``bad``: one step above the first score to be refused.
    """
    allowed = [_allowed(target, len(bad)) for target in targets]
    refused = sorted({len(bad) - 1 - k for k in allowed if k < len(bad)})
    parted = np.partition(bad, refused) if refused else bad
    up = np.asarray(np.inf, dtype=bad.dtype)
    return [
        low if k >= len(bad) else float(np.nextafter(parted[len(bad) - 1 - k], up)) for k in allowed
    ]


def roc(genuine: Any, impostor: Any) -> Curve:
    """The ROC at every distinct score, as scikit-learn's ``roc_curve(drop_intermediate=False)``."""
    good, bad = _sides(genuine, impostor)
    both = np.concatenate([good, bad])
    both.sort()
    both = both[::-1]
    last = np.flatnonzero(np.append(both[1:] != both[:-1], True))
    values, accepted = both[last], last + 1
    accepted_good = len(good) - np.searchsorted(np.sort(good), values, side="left")
    return Curve(
        far=np.concatenate([[0.0], (accepted - accepted_good) / len(bad)]),
        tar=np.concatenate([[0.0], accepted_good / len(good)]),
        threshold=np.concatenate([[np.inf], values.astype(np.float64)]),
    )


@metric("eer", "EER", "On straight lines between the ROC's points.", higher=False)
def equal_error_rate(genuine: Any, impostor: Any) -> float:
    """The rate in [0, 1] at which FAR and FRR are equal, on straight lines between ROC points.

    Example:
        >>> equal_error_rate(np.array([0.8, 0.9]), np.array([0.1, 0.2]))
        0.0
    """
    curve = roc(genuine, impostor)
    gap = curve.far - curve.frr  # ascends from -1 to 1
    right = int(np.searchsorted(gap, 0.0, side="left"))
    if gap[right] == 0.0:
        return float(curve.far[right])
    left = right - 1
    part = -gap[left] / (gap[right] - gap[left])
    return float(curve.far[left] + part * (curve.far[right] - curve.far[left]))


def _allowed(target: float, n: int) -> int:
    """The largest k with k / n <= target, as float64 compares them."""
    k = min(n, int(target * n))
    while k < n and (k + 1) / n <= target:
        k += 1
    while k > 0 and k / n > target:
        k -= 1
    return k


def _sides(genuine: Any, impostor: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    good, bad = arrays.scores("genuine", genuine), arrays.scores("impostor", impostor)
    for name, side in (("genuine", good), ("impostor", bad)):
        if not len(side):
            raise ValueError(f"{name}: expected at least one score, got none")
    kind = np.result_type(good, bad)
    return good.astype(kind, copy=False), bad.astype(kind, copy=False)


def _point(
    good: NDArray[Any], bad: NDArray[Any], target: float, threshold: float
) -> OperatingPoint:
    tar, far = (int(np.count_nonzero(x >= threshold)) / len(x) for x in (good, bad))
    return OperatingPoint(target, tar, far, threshold, len(good), len(bad))
