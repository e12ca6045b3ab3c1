"""Retrieval: what follows from the exact rank of every query.

Functions take what :func:`benchmark.ranking.ranks.rank` returned, or ranks of judged items, and
give one value for each query with a match; averaging is left to the caller. A ValueError says that
``k`` is below 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.catalog import metric
from benchmark.ranking.arrays import Ints, Mask

if TYPE_CHECKING:
    from benchmark.ranking.ranks import Ranking

_RULES = (
    "A query's own item is excluded by id, junk and same-camera matches by the protocol. Queries "
    "without a match are left out and counted. Vectors are normalised for cosine only."
)
_TIES = "The rank is 1 + the non-matching items scoring at least as high as the best match. "
_TIES += _RULES


class Ranked(Protocol):
    """Ranks of queries: a :class:`Ranking`, or those of judged items."""

    @property
    def answered(self) -> Mask:
        """Queries with a match, bool ``[n]``; the others are left out."""

    @property
    def first_rank(self) -> Ints:
        """Rank of the best match, ``[n]``; below 1 where it is not in the result."""

    @property
    def average_precision(self) -> NDArray[np.float64]:
        """Average precision, ``[n]``."""


def _share(counts: Mapping[str, float]) -> float:
    """Matches among all pairs."""
    return counts["n_genuine"] / (counts["n_genuine"] + counts["n_impostor"])


def _some_match(k: float, counts: Mapping[str, float]) -> float:
    return 1.0 - (1.0 - _share(counts)) ** k


@metric("cmc_at_{k}", "CMC@{k}", _TIES, rises=True, chance=_some_match)
def cmc(ranking: Ranking, k: int) -> NDArray[np.float64]:
    """1.0 where the best match is among the ``k`` nearest, else 0.0 (CMC, single-match form)."""
    return (ranking.first_rank[ranking.answered] <= cut_off(k)).astype(np.float64)


@metric("mrr", "MRR", _TIES)
@metric("mrr_at_{k}", "MRR@{k}", f"0 where the rank exceeds the cut-off. {_TIES}", rises=True)
def reciprocal_rank(ranking: Ranked, k: int | None = None) -> NDArray[np.float64]:
    """1 / rank of the best match, 0 where that lies beyond ``k`` or is not in the result."""
    first = ranking.first_rank[ranking.answered]
    found = (first >= 1) & ((first <= cut_off(k)) if k is not None else True)
    return np.where(found, 1.0 / np.maximum(first, 1), 0.0)


@metric(
    "map", "mAP", f"mAP@1.0; precision with ties merged. {_RULES}",
    chance=lambda _, counts: _share(counts),
)  # fmt: skip
def average_precision(ranking: Ranked) -> NDArray[np.float64]:
    """Average precision; its mean is mAP@1.0."""
    return ranking.average_precision[ranking.answered]


@metric("minp", "mINP", f"Matches over the rank of the hardest, ties against it. {_RULES}")
def inverse_negative_penalty(ranking: Ranking) -> NDArray[np.float64]:
    """Inverse negative penalty; its mean is mINP.

    Source: Ye et al., Deep Learning for Person Re-identification: A Survey and Outlook, 4.2.
    """
    return ranking.inverse_negative_penalty[ranking.answered]


def cut_off(k: int) -> int:
    """Check a cut-off."""
    if k < 1:
        raise ValueError(f"k: expected at least 1, got {k}")
    return k
