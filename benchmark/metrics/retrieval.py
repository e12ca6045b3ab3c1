"""Retrieval: what follows from the exact rank of every query.

Functions take what :func:`benchmark.ranking.ranks.rank` returned and give one value for each query
with a match; averaging is left to the caller. A ValueError says that ``k`` is below 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.catalog import metric

if TYPE_CHECKING:
    from benchmark.ranking.ranks import Ranking

_RULES = (
    "A query's own item is excluded by id, junk and same-camera matches by the protocol. Queries "
    "without a match are left out and counted. Vectors are normalised for cosine only."
)
_TIES = "The rank is 1 + the non-matching items scoring at least as high as the best match. "
_TIES += _RULES


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
def reciprocal_rank(ranking: Ranking, k: int | None = None) -> NDArray[np.float64]:
    """1 / rank of the best match, 0 where that lies beyond ``k``."""
    first = ranking.first_rank[ranking.answered]
    return 1.0 / first if k is None else np.where(first <= cut_off(k), 1.0 / first, 0.0)


@metric(
    "map", "mAP", f"mAP@1.0; precision with ties merged. {_RULES}",
    chance=lambda _, counts: _share(counts),
)  # fmt: skip
def average_precision(ranking: Ranking) -> NDArray[np.float64]:
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
