"""1:1 verification: from genuine and impostor scores to operating points and curves.

Genuine scores ``[n]`` are those of pairs of one identity, impostor scores ``[m]`` those of two. TAR
is the share of genuine pairs whose score reaches the threshold, FAR that of impostor pairs. A
ValueError says which side is empty or not finite, or which target m impostors cannot resolve.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.catalog import metric
from benchmark.ranking import arrays
from benchmark.ranking.arrays import Values

Scores = NDArray[Any]
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
class RocCurve:
    """The ROC at every distinct score, from accepting nothing to accepting all.

    Rates ascend from 0 to 1; the thresholds are the scores, descending, the first infinite.
    """

    far: Values
    tar: Values
    threshold: Values

    @property
    def frr(self) -> Values:
        """False reject rates, descending: beside ``far`` the DET curve."""
        return 1.0 - self.tar


@metric(
    "tar_at_far_{rate}", "TAR@FAR {rate}",
    f"Smallest threshold whose FAR is within the target. {RATE}",
    threshold=True, rises=True, chance=lambda rate, _: rate,
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
    pairs = thresholds(good, bad, targets, "impostor pairs")
    return tuple(_point(good, bad, *pair) for pair in pairs)


@metric(
    "tar_at_nearest_far_{rate}", "TAR@nearest FAR {rate}",
    "FAR nearest to the target, which it may exceed, on the ROC without points between two equal "
    "steps; of two the larger. For comparison.",
    threshold=True, rises=True,
)  # fmt: skip
def tar_at_nearest_far(
    genuine: Any, impostor: Any, targets: Iterable[float]
) -> tuple[OperatingPoint, ...]:
    """TAR where the FAR is *nearest* to each target, which it may exceed; for comparison only.

    Of two equally near rates the larger is taken. Source: the script in common use for IJB-C
    (``argmin |fpr - target|`` on scikit-learn's roc_curve, which by default drops points between
    two equal steps, so that the nearest one left may lie farther off).
    """
    good, bad = _sides(genuine, impostor)
    curve = roc(good, bad, drop_intermediate=True)
    points = []
    for target in _measurable(targets, len(bad), "impostor pairs"):
        distance = np.abs(curve.far - target)
        at = len(distance) - 1 - int(np.argmin(distance[::-1]))
        points.append(_point(good, bad, target, float(curve.threshold[at])))
    return tuple(points)


def thresholds(
    good: Scores, bad: Scores, targets: Iterable[float], what: str
) -> list[tuple[float, float]]:
    """Each target, and the smallest threshold for which the share of ``bad >= threshold`` is in it.

    A threshold is one step, in the precision of ``bad``, above the first score to be refused; where
    none is refused, the lowest score. ``what`` says whose scores ``bad`` are, ``[m]``, m >= 1. A
    ValueError names a target that is not in [1/m, 1].
    """
    m = len(bad)
    rates = _measurable(targets, m, what)
    refused = [m - 1 - allowed(rate, m) for rate in rates]  # place in ascending order, or -1
    places = sorted({place for place in refused if place >= 0})
    parted = np.partition(bad, places) if places else bad
    lowest, up = float(min(good.min(), bad.min())), np.asarray(np.inf, dtype=bad.dtype)
    return [
        (rate, lowest if place < 0 else float(np.nextafter(parted[place], up)))
        for rate, place in zip(rates, refused, strict=True)
    ]


def roc(genuine: Any, impostor: Any, *, drop_intermediate: bool = False) -> RocCurve:
    """The ROC at every distinct score, as scikit-learn's ``roc_curve``.

    With ``drop_intermediate``, scikit-learn's default, a point is left out that lies between two
    equal steps, of as many genuine and as many impostor pairs.
    """
    good, bad = _sides(genuine, impostor)
    both = np.concatenate([good, bad])
    both.sort()
    both = both[::-1]
    last = np.flatnonzero(np.append(both[1:] != both[:-1], True))
    values, accepted = both[last], last + 1
    accepted_good = len(good) - np.searchsorted(np.sort(good), values, side="left")
    if drop_intermediate and len(values) > 2:
        turns = (np.diff(x, 2) != 0 for x in (accepted_good, accepted - accepted_good))
        kept = np.concatenate([[True], np.logical_or(*turns), [True]])
        values, accepted, accepted_good = values[kept], accepted[kept], accepted_good[kept]
    return RocCurve(
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


def _measurable(targets: Iterable[float], n: int, what: str) -> list[float]:
    """Check that ``n`` scores can resolve the rates."""
    rates = [float(target) for target in targets]
    for rate in rates:
        if not 0.0 < rate <= 1.0:
            raise ValueError(f"targets: expected rates in (0, 1], got {rate}")
        if rate < 1.0 / n:
            raise ValueError(f"targets: expected at least 1/{n} ({n} {what}), got {rate}")
    return rates


def allowed(target: float, n: int) -> int:
    """The largest k with ``k / n <= target``, as float64 compares them."""
    near = int(target * n)
    return max(k for k in (0, near - 1, near, near + 1) if k <= n and k / n <= target)


def _sides(genuine: Any, impostor: Any) -> tuple[Scores, Scores]:
    sides = {"genuine": genuine, "impostor": impostor}
    good, bad = (arrays.scores(name, side) for name, side in sides.items())
    if not len(good) or not len(bad):
        name = "impostor" if len(good) else "genuine"
        raise ValueError(f"{name}: expected at least one score, got none")
    kind = np.result_type(good, bad)
    return good.astype(kind, copy=False), bad.astype(kind, copy=False)


def _point(good: Scores, bad: Scores, target: float, threshold: float) -> OperatingPoint:
    tar, far = (int(np.count_nonzero(x >= threshold)) / len(x) for x in (good, bad))
    return OperatingPoint(target, tar, far, threshold, len(good), len(bad))
