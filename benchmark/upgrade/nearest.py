"""Exact nearest items of large galleries: candidates of fast products, scored by the engine.

Matrix products of float32 round differently on every machine. So they only propose some items more
than asked for, whose scores the engine of :mod:`benchmark.ranking` computes as it does everywhere.
Where rounding could hide an item that is nearer, the engine scores all of them. Results depend
neither on how a gallery is cut, nor on threads, nor on whether faiss is installed.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.ranking.engine import Scorer, share, spans
from benchmark.upgrade import faiss_package

_ROOM = 1 << 24
"""Scores that are held at a time."""


class Nearest(NamedTuple):
    """Nearest items of each query, the nearest first, of equal scores the smaller row.

    Attributes:
        rows: Of the gallery, int64 ``[n_query, k]``; -1 where it has fewer.
        scores: Cosines, or negative squared distances, float32 ``[n_query, k]``; NaN for -1.
    """

    rows: Ints
    scores: Floats


def nearest(
    queries: Floats, blocks: Iterable[Floats], k: int, distance: str = "cosine",
    threads: int | None = None,
) -> Nearest:  # fmt: skip
    """Find the ``k`` nearest items of each query in one pass; memory holds one block.

    Args:
        queries: ``[n_query, d]``.
        blocks: The gallery's vectors in order, ``[b, d]`` each.
        k: Items of each query.
        distance: ``cosine`` or ``l2``.
        threads: CPU threads; all by default.

    Raises:
        ValueError: If vectors cannot be compared.
    """
    if k < 1:
        raise ValueError(f"k: expected at least 1, got {k}")
    n = len(queries)
    best = Nearest(np.full((n, k), -1), np.full((n, k), -np.inf, np.float32))
    first = 0
    for vectors in blocks:
        for a, b in spans(len(vectors), max(1, _ROOM // vectors.shape[1])):
            scorer = Scorer(queries, vectors[a:b], distance=distance, threads=threads)
            _add(best, scorer, first + a)
        first += len(vectors)
    return best._replace(scores=np.where(best.rows < 0, np.float32(np.nan), best.scores))


def _add(best: Nearest, scorer: Scorer, first: int) -> None:
    """Keep the nearest of those known and of the scorer's items, whose rows begin at ``first``."""
    n, k = best.rows.shape
    items = np.arange(scorer.shape[1])
    query, item = (
        _prepared(side.part(np.arange(len(side.x))), l2=scorer.l2)
        for side in (scorer.query, scorer.gallery)
    )
    for rows in (np.arange(*span) for span in spans(n, max(1, _ROOM // (k + 64)))):
        known = Nearest(best.rows[rows], best.scores[rows])
        wanted = min(k + max(16, k // 8), len(items))
        rough, found = _proposed(query[rows], item, wanted, scorer)
        scores = scorer.pairs(np.repeat(rows, wanted), found.reshape(-1)).reshape(len(rows), wanted)
        known = _best_of(known, Nearest(found + first, scores))
        if wanted < len(items):
            unsure = known.scores[:, -1] <= rough[:, -1] + _rounding(
                query[rows], item, l2=scorer.l2
            )
            known = _all_scored(known, scorer, rows, unsure, first)
        best.rows[rows], best.scores[rows] = known


def _prepared(part: tuple[Floats, Ints, NDArray[np.float64]], *, l2: bool) -> Floats:
    """Vectors as products take them: of length 1 for cosines."""
    x, places, factors = part
    return x[places] if l2 else x[places] * factors.astype(np.float32)[:, None]


def _proposed(query: Floats, item: Floats, k: int, scorer: Scorer) -> tuple[Floats, Ints]:
    """Items with the largest rough scores, the largest first, ``[n, k]`` both."""
    if not faiss_package.available():
        return _proposed_by_numpy(query, item, k, l2=scorer.l2)
    scores, rows = np.empty((len(query), k), np.float32), np.empty((len(query), k), np.int64)

    def work(a: int, b: int) -> None:
        # Threads of ours, as faiss's wait for each other where a machine is busy.
        with faiss_package.threads(1) as faiss:
            metric = faiss.METRIC_L2 if scorer.l2 else faiss.METRIC_INNER_PRODUCT
            scores[a:b], rows[a:b] = faiss.knn(query[a:b], item, k, metric=metric)

    share(work, spans(len(query), -(-len(query) // scorer.threads)), scorer.threads)
    return -scores if scorer.l2 else scores, rows


def _proposed_by_numpy(query: Floats, item: Floats, k: int, *, l2: bool) -> tuple[Floats, Ints]:
    scores, rows = np.empty((len(query), k), np.float32), np.empty((len(query), k), np.int64)
    for a, b in spans(len(query), max(1, _ROOM // len(item))):
        rough = query[a:b] @ item.T
        if l2:
            lengths = np.einsum("ij,ij->i", item, item)
            rough = 2 * rough - lengths - np.einsum("ij,ij->i", query[a:b], query[a:b])[:, None]
        some = np.argpartition(rough, -k, axis=1)[:, -k:]
        order = np.argsort(-np.take_along_axis(rough, some, 1), axis=1)
        rows[a:b] = np.take_along_axis(some, order, 1)
        scores[a:b] = np.take_along_axis(rough, rows[a:b], 1)
    return scores, rows


def _rounding(query: Floats, item: Floats, *, l2: bool) -> Floats:
    """How far a rough score and the engine's may lie apart, for each query.

    Twice Higham's bound of a float32 sum of ``d`` products (Accuracy and Stability of Numerical
    Algorithms, 3.1), once for either; for distances of the largest terms that are added.
    """
    unit = (query.shape[1] + 16) * np.float32(2.0**-23)
    if not l2:
        return np.full(len(query), 2 * unit, np.float32)
    longest = np.sqrt(np.einsum("ij,ij->i", item, item).max())
    return np.asarray(2 * unit * (np.linalg.norm(query, axis=1) + longest) ** 2, np.float32)


def _all_scored(known: Nearest, scorer: Scorer, rows: Ints, unsure: Mask, first: int) -> Nearest:
    """The same where unsure queries see the engine's scores of all items."""
    places = np.flatnonzero(unsure)
    k = known.rows.shape[1]

    def work(a: int, _: int, scores: Floats) -> None:
        # Items from the k-th best score on, those that tie with it among them.
        least = np.partition(scores, -min(k, scores.shape[1]), axis=1)
        for i, row in enumerate(scores):
            mine = places[a + i]
            found = np.flatnonzero(row >= least[i, -min(k, len(row))])
            # Of the block's items known ones are found again.
            earlier = (known.rows[mine] >= 0) & (known.rows[mine] < first)
            parts = Nearest(
                np.concatenate([known.rows[mine][earlier], found + first]),
                np.concatenate([known.scores[mine][earlier], row[found]]),
            )
            order = np.lexsort((parts.rows, -parts.scores))[:k]
            known.rows[mine, : len(order)] = parts.rows[order]
            known.scores[mine, : len(order)] = parts.scores[order]

    if len(places):
        scorer.blocks(work, q_rows=rows[places])
    return known


def _best_of(known: Nearest, more: Nearest) -> Nearest:
    rows = np.concatenate([known.rows, more.rows], axis=1)
    scores = np.concatenate([known.scores, more.scores], axis=1)
    order = np.lexsort((rows, -scores), axis=1)[:, : known.rows.shape[1]]
    return Nearest(np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1))
