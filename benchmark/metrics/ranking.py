"""Retrieval: the exact rank of every query, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics import arrays

Distance = Literal["cosine", "l2"]


@dataclass(frozen=True)
class Ranking:
    """What ranking leaves of each query, in the queries' order.

    Attributes:
        first_rank: 1 + the number of non-matching items that score at least as high as the best
            match, int64 ``[n]``; 0 where the query has no match.
        average_precision: Precision averaged over the query's matches, ties merged, float64 ``[n]``
            in (0, 1]; NaN where the query has no match.
        inverse_negative_penalty: Matches over the rank of the hardest match, float64 ``[n]`` in
            (0, 1]; NaN where the query has no match.
        n_positives: The query's matches, int64 ``[n]``.
    """

    first_rank: NDArray[np.int64]
    average_precision: NDArray[np.float64]
    inverse_negative_penalty: NDArray[np.float64]
    n_positives: NDArray[np.int64]

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Queries with a match, bool ``[n]``; the others are left out of every metric."""
        return self.n_positives > 0

    @property
    def n_excluded(self) -> int:
        """How many queries are left out."""
        return int((self.n_positives == 0).sum())


def rank(
    query: Any,
    gallery: Any,
    query_labels: Any,
    gallery_labels: Any,
    *,
    query_ids: Any = None,
    gallery_ids: Any = None,
    query_cameras: Any = None,
    gallery_cameras: Any = None,
    junk: Any = None,
    distance: Distance = "cosine",
    device: str = "cpu",
    threads: int | None = None,
) -> Ranking:
    """Rank the gallery for every query, exactly.

    Args:
        query: Query vectors, ``[n_query, d]``.
        gallery: Gallery vectors, ``[n_gallery, d]``.
        query_labels: Integers or strings, ``[n_query]``.
        gallery_labels: Integers or strings, ``[n_gallery]``.
        query_ids: With ``gallery_ids``: an item of the query's id is left out for that query.
        gallery_ids: Ids of the gallery.
        query_cameras: With ``gallery_cameras``: items of the query's label and camera are left out.
        gallery_cameras: Cameras of the gallery.
        junk: Gallery items dropped for all queries, bool ``[n_gallery]``.
        distance: ``cosine`` or ``l2``.
        device: ``cpu``, or a torch device such as ``cuda``.
        threads: CPU threads; all by default. The result does not depend on it.

    Returns:
        Ranks, average precisions and counts per query.

    Raises:
        ValueError: If an argument has the wrong shape, type or value.
    """
    del device, threads
    q = arrays.vectors("query", query)
    g = arrays.vectors("gallery", gallery, dim=q.shape[1])
    if junk is not None:
        keep = ~np.asarray(junk, dtype=bool)
        g = g[keep]
        gallery_labels = np.asarray(gallery_labels)[keep]
        gallery_ids = None if gallery_ids is None else np.asarray(gallery_ids)[keep]
        gallery_cameras = None if gallery_cameras is None else np.asarray(gallery_cameras)[keep]
    ql, gl = arrays.codes("labels", query_labels, len(q), gallery_labels, len(g))
    if distance == "cosine":
        q, g = _unit(q), _unit(g)
    qi = gi = qc = gc = None
    if query_ids is not None:
        qi, gi = arrays.codes("ids", query_ids, len(q), gallery_ids, len(g))
    if query_cameras is not None:
        qc, gc = arrays.codes("cameras", query_cameras, len(q), gallery_cameras, len(g))
    n = len(q)
    first, ap = np.zeros(n, np.int64), np.full(n, np.nan)
    inp, pos = np.full(n, np.nan), np.zeros(n, np.int64)
    half = 0.5 * np.einsum("nd,nd->n", g, g) if distance == "l2" else np.zeros(len(g), np.float32)
    for start in range(0, n, 256):
        scores = q[start : start + 256] @ g.T - half
        for i, row in enumerate(scores, start):
            same = gl == ql[i]
            out = np.zeros(len(g), bool)
            if qi is not None:
                out |= gi == qi[i]
            if qc is not None:
                out |= same & (gc == qc[i])
            up = np.sort(row[same & ~out])
            down = np.sort(row[~same & ~out])
            pos[i] = len(up)
            if len(up):
                p = len(up) - np.searchsorted(up, up, "left")
                m = len(down) - np.searchsorted(down, up, "left")
                ap[i] = np.mean(p / (p + m))
                first[i] = 1 + m[-1]
                inp[i] = len(up) / (len(up) + m[0])
    return Ranking(first, ap, inp, pos)


def _unit(x: NDArray[np.float32]) -> NDArray[np.float32]:
    norm = np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    return (x / np.where(norm == 0, 1, norm)).astype(np.float32)


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
