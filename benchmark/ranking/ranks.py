"""The exact rank of every query."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from benchmark.ranking.grouping import Grouped
    from benchmark.ranking.job import Job


Distance = Literal["cosine", "l2"]


_PAIRS = 2_000_000  # matches whose scores and counts are held at a time


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


@dataclass(frozen=True)
class Matches:
    """Scores of each query's matches in one gallery, or in the shards of one.

    Attributes:
        offset: Where each query's scores begin, int64 ``[n + 1]``.
        scores: Ascending for each query, float32.
        left_offset: Where each query's left-out scores begin, int64 ``[n + 1]``.
        left_out: Scores of the items that the query's id or camera leaves out, float32.
    """

    offset: NDArray[np.int64]
    scores: NDArray[np.float32]
    left_offset: NDArray[np.int64]
    left_out: NDArray[np.float32]


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

    On CPUs the result is equal to the last bit for any number of threads, tiles, shards and
    machines. Other devices count the same on integer-valued vectors with L2; elsewhere a score may
    differ in its last bits, so that items whose scores nearly tie may change places.

    Args:
        query: Query vectors, ``[n_query, d]``; a zero vector scores 0 with all by cosine.
        gallery: Gallery vectors, ``[n_gallery, d]``.
        query_labels: Integers or strings, ``[n_query]``.
        gallery_labels: Integers or strings, ``[n_gallery]``; a label that no query has is a
            distractor's.
        query_ids: With ``gallery_ids``: an item of the query's id is left out for that query.
        gallery_ids: Ids of the gallery.
        query_cameras: With ``gallery_cameras``: items of the query's label and camera are left out.
        gallery_cameras: Cameras of the gallery.
        junk: Gallery items dropped for all queries, bool ``[n_gallery]``.
        distance: ``cosine`` or ``l2``.
        device: ``cpu``, or a torch device such as ``cuda`` or ``torch:cpu``.
        threads: CPU threads; all by default.

    Returns:
        Ranks, average precisions and counts per query.

    Raises:
        ValueError: If an argument has the wrong shape, type or value.

    Example:
        >>> items = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.6, 0.5]])
        >>> labels, ids = np.array([0, 0, 1, 1]), np.arange(4)
        >>> found = rank(items, items, labels, labels, query_ids=ids, gallery_ids=ids)
        >>> found.first_rank
        array([1, 1, 1, 3])
    """
    from benchmark.ranking.job import make_job

    job = make_job(query, gallery, query_labels, gallery_labels, query_ids, gallery_ids,
               query_cameras, gallery_cameras, junk, distance, threads)  # fmt: skip
    if device != "cpu":
        from benchmark.ranking import torch_backend

        return _summary(*torch_backend.count(job, device.removeprefix("torch:")))
    from benchmark.ranking import grouping

    n = len(job.query.x)
    result = Ranking(
        np.zeros(n, np.int64), np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.int64)
    )
    order = np.argsort(job.query_labels, kind="stable")
    pairs = np.cumsum(grouping.matches_of(job.query_labels, job.gallery_labels, job.junk)[order])
    cuts = [0]
    while cuts[-1] < n:  # some millions of matches at a time
        done = int(pairs[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(pairs, done + _PAIRS, "right"))))
    for first, last in itertools.pairwise(cuts):
        rows = order[first:last]
        matches = _matches(job, _grouped(job, rows))
        above = _count(job, matches, rows, matches)
        part = _summary(matches.offset, matches.scores, above)
        for name in ("first_rank", "average_precision", "inverse_negative_penalty", "n_positives"):
            getattr(result, name)[rows] = getattr(part, name)
    return result


def _grouped(job: Job, q_rows: NDArray[np.int64]) -> Grouped:
    """Some queries, and the items of their labels but for junk, by label."""
    from benchmark.ranking import grouping

    labels = job.query_labels[q_rows]
    items = grouping.among(np.unique(labels), job.gallery_labels, job.junk)
    by = grouping.grouped(labels, job.gallery_labels[items])
    return grouping.Grouped(q_rows[by.q_order], items[by.g_order], by.start, by.stop)


def _matches(job: Job, by: Grouped) -> Matches:
    """The matches of the queries, in the order of ``by.q_order``."""
    from benchmark.ranking import engine, grouping

    found = engine.own_scores(job.query, job.gallery, by, job.rules, l2=job.l2, threads=job.threads)
    offset, scores, left_offset, left = found
    rows, items = grouping.strangers(
        by.q_order, job.query_labels, job.gallery_labels, job.rules, job.junk
    )
    if len(rows):
        more = engine.pairs(
            job.query, job.gallery, by.q_order[rows], items, l2=job.l2, threads=job.threads
        )
        left_offset, left = grouping.added(left_offset, left, rows, more)
    return Matches(offset, scores, left_offset, left)


def _count(
    job: Job, own: Matches, order: NDArray[np.int64], thresholds: Matches
) -> NDArray[np.int64]:
    """Non-matching items of the job's gallery that score at least each threshold."""
    from benchmark.ranking import engine, matching

    above = engine.count_above(
        job.query.take(order), job.gallery, thresholds.offset, thresholds.scores,
        l2=job.l2, threads=job.threads, junk=job.junk,
    )  # fmt: skip

    def work(span: tuple[int, int]) -> None:
        matching.take_away(
            thresholds.offset, thresholds.scores, own.offset, own.scores,
            own.left_offset, own.left_out, *span, above,
        )  # fmt: skip

    engine.share(work, engine.spans(len(order), 1024), job.threads)
    return above


def _summary(
    offset: NDArray[np.int64], scores: NDArray[np.float32], above: NDArray[np.int64]
) -> Ranking:
    from benchmark.ranking import matching

    n = len(offset) - 1
    first, ap, inp = np.empty(n, np.int64), np.empty(n), np.empty(n)
    matching.summarise(offset, scores, above, first, ap, inp)
    return Ranking(first, ap, inp, np.diff(offset))


class Shard:
    """One part of a gallery that lies on several disks or machines.

    First each shard gives its matches; joined, they are the thresholds. Then each shard counts, and
    the counts add up: ``ranking_of(joined, sum of the counts)`` equals :func:`rank` on the whole.

    Example:
        >>> x, y = np.eye(2), np.array([0, 1])
        >>> shards = [Shard(x, x[:1], y, y[:1]), Shard(x, x[1:], y, y[1:])]
        >>> joined = join([shard.matches for shard in shards])
        >>> ranking_of(joined, sum(shard.count(joined) for shard in shards)).first_rank
        array([1, 1])
    """

    def __init__(
        self,
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
        threads: int | None = None,
    ) -> None:
        """Take the arguments of :func:`rank`, with all queries and the shard's items."""
        from benchmark.ranking import grouping
        from benchmark.ranking.job import make_job

        self._job = make_job(query, gallery, query_labels, gallery_labels, query_ids, gallery_ids,
                         query_cameras, gallery_cameras, junk, distance, threads)  # fmt: skip
        n = len(self._job.query.x)
        by = _grouped(self._job, np.arange(n))
        back = np.argsort(by.q_order)
        in_order = grouping.Grouped(np.arange(n), by.g_order, by.start[back], by.stop[back])
        self.matches = _matches(self._job, in_order)

    def count(self, thresholds: Matches) -> NDArray[np.int64]:
        """Non-matching items of this shard that score at least each threshold."""
        return _count(self._job, self.matches, np.arange(len(self._job.query.x)), thresholds)


def join(parts: Sequence[Matches]) -> Matches:
    """The matches of several shards as one.

    Raises:
        ValueError: If the shards had different numbers of queries.
    """
    if len({len(part.offset) for part in parts}) != 1:
        raise ValueError("parts: expected at least one shard, all with the same queries")
    joined: list[NDArray[Any]] = []
    for pair in (("offset", "scores"), ("left_offset", "left_out")):
        sizes = [np.diff(getattr(part, pair[0])) for part in parts]
        values = np.concatenate([getattr(part, pair[1]) for part in parts])
        owner = np.concatenate([np.repeat(np.arange(len(size)), size) for size in sizes])
        order = np.lexsort((values, owner))
        joined += [np.concatenate([[0], np.cumsum(np.sum(sizes, axis=0))]), values[order]]
    return Matches(*joined)


def ranking_of(matches: Matches, above: NDArray[np.int64]) -> Ranking:
    """The ranking that joined matches and added counts make."""
    return _summary(matches.offset, matches.scores, above)
