"""Queries between both models' vectors, for an index that stays as it is.

The new query is rotated into the old space, v; the query then lies between the old one, u, and v.
Source: Ricci et al., SLERP for backward-compatible retrieval, NeurIPS 2026, equations 1, 3 and 40.
"""

import numpy as np

from benchmark.ranking.arrays import Floats
from benchmark.upgrade.gallery import unit

SHARES = tuple(round(0.1 * k, 1) for k in range(11))
"""Places on the way from the old query to the new one, from which one is chosen."""


def rotated(old: Floats, new: Floats, queries: Floats) -> Floats:
    """New queries in the old space, unit vectors ``[q, d_old]``.

    The rotation is fitted on pairs ``[n, d_old]`` and ``[n, d_new]``, not centred; between unequal
    dimensions it is semi-orthogonal.
    """
    u, v = (unit(x, "cosine").astype(np.float64) for x in (old, new))
    left, _, right = np.linalg.svd(v.T @ u, full_matrices=False)
    turned = unit(queries, "cosine") @ (left @ right)
    return unit(turned.astype(np.float32), "cosine")


def slerp(old: Floats, turned: Floats, share: float) -> Floats:
    """Queries on the great circle from ``old`` (share 0) to ``turned`` (share 1), ``[q, d]``.

    Example:
        >>> slerp(np.float32([[1, 0]]), np.float32([[0, 1]]), 0.5).round(3)
        array([[0.707, 0.707]], dtype=float32)
    """
    u, v = unit(old, "cosine"), unit(turned, "cosine")
    cosine = (u.astype(np.float64) * v).sum(axis=1, keepdims=True)
    angle = np.arccos(np.clip(cosine, -1 + 1e-7, 1 - 1e-7))
    between = (np.sin((1 - share) * angle) * u + np.sin(share * angle) * v) / np.sin(angle)
    return unit(between.astype(np.float32), "cosine")


def midpoint(old: Floats, turned: Floats) -> Floats:
    """Queries half-way between, ``[q, d]``."""
    return unit(unit(old, "cosine") + unit(turned, "cosine"), "cosine")
