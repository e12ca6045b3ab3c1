"""Retrieval: the exact rank of every query, and what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking.ranks import Ranking

if TYPE_CHECKING:
    pass


def cmc(ranking: Ranking, k: int) -> NDArray[np.float64]:
    """Per query with a match: is its best match among the ``k`` nearest items?

    Args:
        ranking: What :func:`rank` returned.
        k: Cut-off, at least 1.

    Returns:
        0.0 or 1.0 for each query with a match; averaging is left to the caller.

    Raises:
        ValueError: If ``k`` is below 1.

    Source:
        Cumulative match characteristic, single-match form.
    """
    _cut_off(k)
    return (ranking.first_rank[ranking.answered] <= k).astype(np.float64)


def reciprocal_rank(ranking: Ranking, k: int | None = None) -> NDArray[np.float64]:
    """Per query with a match: 1 / rank of its best match, 0 where that lies beyond ``k``.

    Args:
        ranking: What :func:`rank` returned.
        k: Cut-off, at least 1; none by default.

    Returns:
        Values in [0, 1], one for each query with a match.

    Raises:
        ValueError: If ``k`` is below 1.
    """
    first = ranking.first_rank[ranking.answered]
    if k is None:
        return 1.0 / first
    _cut_off(k)
    return np.where(first <= k, 1.0 / first, 0.0)


def average_precision(ranking: Ranking) -> NDArray[np.float64]:
    """Average precision of each query with a match; its mean is mAP@1.0."""
    return ranking.average_precision[ranking.answered]


def inverse_negative_penalty(ranking: Ranking) -> NDArray[np.float64]:
    """Inverse negative penalty of each query with a match; its mean is mINP.

    Source:
        Ye et al., Deep Learning for Person Re-identification: A Survey and Outlook, section 4.2.
    """
    return ranking.inverse_negative_penalty[ranking.answered]


def _cut_off(k: int) -> None:
    if k < 1:
        raise ValueError(f"k: expected at least 1, got {k}")
