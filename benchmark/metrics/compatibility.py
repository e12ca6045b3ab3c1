"""Compatibility of a new model with the old gallery, and what the update gains.

Functions take the cases' values of one metric, higher being better: ``old_old`` is the lower bound,
``new_old`` the cross-test, ``new_new`` the self-test. A ``matrix`` M, ``[n, n]``, has the value of
queries by generation i on the gallery of generation j; what lies above its diagonal is not read and
may be NaN. A ValueError says what is missing, not finite or of the wrong shape.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.catalog import metric
from benchmark.ranking import arrays

AVERAGED = ("tar_at_far_1e-4", "tpir_at_fpir_1e-2")
"""The metrics that MixBCT's AVG is made of."""
LEAST_UPGRADE = 0.02
"""Least advantage of the new model: below it there is no upgrade to keep a share of."""
ROUNDING = 8 * float(np.finfo(np.float32).eps)
"""Difference of two float32 cosines that rounding explains: a few units in the last place of 1."""


@metric("compatible", "Compatible", "new/old > old/old, strictly; 0 or 1.")
def compatible(new_old: float, old_old: float) -> bool:
    """The cross-test beats the lower bound, strictly (BCT eq. 2; BT2 definition 1, empirical)."""
    return _number("new_old", new_old) > _number("old_old", old_old)


@metric("not_hurting", "Not hurting", "new/new >= the independent new model's; 0 or 1.")
def not_hurting(new_new: float, independent: float) -> bool:
    """The new model is no worse than one trained independently (BT2 definition 2)."""
    return _number("new_new", new_new) >= _number("independent", independent)


@metric("absolute_gain", "Absolute gain", "new/old minus old/old.", low=-1.0, unit="coefficient")
def absolute_gain(new_old: float, old_old: float) -> float:
    """Gain of the cross-test over the lower bound."""
    return _number("new_old", new_old) - _number("old_old", old_old)


@metric(
    "update_gain", "Update gain",
    "None where not compatible or where the upper bound does not exceed old/old.",
    low=None, high=None,
)  # fmt: skip
def update_gain(new_old: float, old_old: float, upper: float) -> float | None:
    """Share of the possible gain that comes without backfilling (BCT eq. 9).

    It is ``(new_old - old_old) / (upper - old_old)``, ``upper`` being the upper bound (paragon);
    None where the update is not compatible, or the upper bound does not exceed the lower one.

    Example:
        >>> update_gain(0.5, 0.25, 0.75)
        0.5
    """
    upper = _number("upper", upper)
    return share_of_upgrade(new_old, old_old, upper) if compatible(new_old, old_old) else None


N = TypeVar("N", float, NDArray[np.float64])


def share_of_upgrade(value: N, lower: N, upper: N, least: float = 0.0) -> N | None:
    """The share of the way from ``lower`` to ``upper`` that ``value`` goes; higher is better.

    Args:
        value: A score; or ``[1 + n]``, the score itself and then draws of it.
        lower: That of the old model, of the same shape.
        upper: That of the new model alone.
        least: How much better the new model must be, by the score itself.

    Returns:
        Of the same shape, not finite in draws without an upgrade; None where there is none to keep
        a share of.

    Example:
        >>> share_of_upgrade(0.5, 0.25, 0.75), share_of_upgrade(0.5, 0.5, 0.5)
        (0.5, None)
    """
    upgrade = upper - lower
    whole = float(np.ravel(upgrade)[0])
    if whole <= 0 or whole < least:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return (value - lower) / upgrade


@metric(
    "avg", "AVG",
    "Mean of cross-test and new/new on TAR@FAR 1e-4 and TPIR@FPIR 1e-2; the cross-test is old/new, "
    "the old model first, of 1:1, and new/old of 1:N.",
)  # fmt: skip
def average(
    old_new: Mapping[str, float], new_old: Mapping[str, float], new_new: Mapping[str, float]
) -> float:
    """Mean of the metrics ``AVERAGED`` in both tests (column AVG of MixBCT, section 4.4).

    MixBCT's cross-test of 1:1 has the first template by the old model, ``old_new``; that of 1:N has
    the gallery by the old one, ``new_old``.
    """
    tar, tpir = AVERAGED
    parts = [("old_new", old_new, tar), ("new_old", new_old, tpir)]
    values = []
    for name, case, key in [*parts, ("new_new", new_new, tar), ("new_new", new_new, tpir)]:
        if key not in case:
            raise ValueError(f"{name}: expected {key!r}, got {sorted(case)}")
        values.append(_number(f"{name}[{key}]", case[key]))
    return float(np.mean(values))


@metric("average_compatibility", "AC", "Share of pairs i > j with M_ij > M_jj, strictly.")
def average_compatibility(matrix: Any) -> float:
    """Share of pairs i > j of a sequence for which M_ij > M_jj, strictly; n >= 2.

    Source: average compatibility (AC) of CoReS and CL2R, the multi-model form of BCT's criterion.
    Their released code counts a tie M_ij = M_jj as compatible; here it is not, as in BCT eq. 2.

    Example:
        >>> average_compatibility([[0.4, 0.0], [0.5, 0.6]])
        1.0
    """
    values = _matrix(matrix, 2)
    i, j = np.tril_indices(len(values), -1)
    return float(np.mean(values[i, j] > values[j, j]))


@metric("average_accuracy", "AM", "Mean of M_ij over i >= j.")
def average_accuracy(matrix: Any) -> float:
    """Mean of M_ij over i >= j; n >= 1.

    Average multi-model accuracy of CoReS; its released code leaves out values of 0, this does not.
    """
    values = _matrix(matrix, 1)
    return float(np.mean(values[np.tril_indices(len(values))]))


@metric(
    "pairwise",
    "Pairs kept",
    "Share of pairs that keep BCT eq. 1; scores within rounding are ties, which keep it.",
)
def pairwise(
    old_query: Any, old_gallery: Any, new_query: Any, query_labels: Any, gallery_labels: Any
) -> float:
    """Share of all pairs that a new query keeps as near or as far (BCT eq. 1; BT2 definition 1).

    A pair of one class must not score lower with the new query than with the old one, a pair of two
    classes not higher. Ties keep it: scores no farther apart than ``ROUNDING``. Scores are cosines.
    Queries are ``[n, d]``, the old gallery,
    after conversion if any, is ``[m, d]``; labels ``[n]`` and ``[m]`` are integers or strings.
    """
    from benchmark.ranking.pair_scores import tiles

    old = arrays.vectors("old_query", old_query)
    gallery = arrays.vectors("old_gallery", old_gallery, dim=old.shape[1])
    new = arrays.vectors("new_query", new_query, dim=old.shape[1])
    if len(new) != len(old) or not len(old) or not len(gallery):
        raise ValueError(f"new_query: expected {len(old)} > 0 rows, got {len(new)}")
    ql, gl = arrays.codes("labels", (query_labels, gallery_labels), (len(old), len(gallery)))
    kept = 0
    for (rows, before), (_, after) in zip(tiles(old, gallery), tiles(new, gallery), strict=True):
        same = ql[rows, None] == gl
        change = np.where(same, after - before, before - after)
        kept += int((change >= -ROUNDING).sum())
    return kept / (len(old) * len(gallery))


def _number(name: str, value: float) -> float:
    if not np.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, got {value}")
    return float(value)


def _matrix(matrix: Any, least: int) -> NDArray[np.float64]:
    values = np.asarray(matrix, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) < least:
        raise ValueError(f"matrix: expected [n, n] with n >= {least}, got {values.shape}")
    if not np.isfinite(values[np.tril_indices(len(values))]).all():
        raise ValueError("matrix: expected finite values on and below the diagonal")
    return values
