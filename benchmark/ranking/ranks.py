"""The exact rank of every query."""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import engine, matching
from benchmark.ranking.arrays import Ints, Mask
from benchmark.ranking.device import CPU
from benchmark.ranking.grouping import Grouped, Labels, Ragged

_PAIRS = 2_000_000  # matches whose scores and counts are held at a time

Distance = Literal["cosine", "l2"]


class Options(TypedDict, total=False):
    """Options of rankings and of backfilling curves.

    Attributes:
        query_ids: Integers or strings, ``[n_query]``; with ``gallery_ids``: an item of the query's
            id is left out for that query.
        query_cameras: With ``gallery_cameras``: items of the query's label and camera are left out.
        distance: ``cosine`` (the default) or ``l2``.
        threads: CPU threads; all by default. No result depends on it.
    """

    query_ids: Any
    gallery_ids: Any
    query_cameras: Any
    gallery_cameras: Any
    distance: Distance
    threads: int | None


class RankOptions(Options, total=False):
    """As :class:`Options`; ``junk``, bool ``[n_gallery]``: items dropped for all queries."""

    junk: Any


@dataclass(frozen=True)
class Ranking:
    """Results of ranking for each query, in the queries' order.

    Attributes:
        first_rank: 1 + the number of non-matching items that score at least as high as the best
            match, int64 ``[n]``; 0 where the query has no match.
        average_precision: Precision averaged over the query's matches, ties merged, float64 ``[n]``
            in (0, 1]; NaN where the query has no match.
        inverse_negative_penalty: Matches over the rank of the hardest match, float64 ``[n]`` in
            (0, 1]; NaN where the query has no match.
        n_positives: The query's matches, int64 ``[n]``.
    """

    first_rank: Ints
    average_precision: NDArray[np.float64]
    inverse_negative_penalty: NDArray[np.float64]
    n_positives: Ints

    @property
    def answered(self) -> Mask:
        """Queries with a match, bool ``[n]``; the others are left out of every metric."""
        return self.n_positives > 0

    @property
    def n_excluded(self) -> int:
        """Number of queries that are left out."""
        return int((~self.answered).sum())


class Matches(NamedTuple):
    """Float32 scores of each query's items in one gallery, or in the shards of one."""

    scores: Ragged  # of the matches, ascending for each query
    left_out: Ragged  # of the items that the query's id or camera leaves out


def rank(
    query: Any, gallery: Any, query_labels: Any, gallery_labels: Any, *, device: str | None = None,
    **options: Unpack[RankOptions],
) -> Ranking:  # fmt: skip
    """Rank the gallery for every query, exactly.

    On CPUs the result is equal to the last bit for any number of threads, tiles, shards and
    machines. Other devices count the same on integer-valued vectors with L2; elsewhere a score may
    differ in its last bits, so that items whose scores nearly tie may change places. A ValueError
    names an argument of the wrong shape, type or value.

    Args:
        query: Query vectors, ``[n_query, d]``; a zero vector scores 0 with all by cosine.
        gallery: Gallery vectors, ``[n_gallery, d]``.
        query_labels: Integers or strings, ``[n_query]``.
        gallery_labels: As these, ``[n_gallery]``; a label that no query has is a distractor's.
        device: ``cpu``, or a torch device such as ``cuda`` or ``torch:cpu``; by default the one
            chosen by :func:`benchmark.ranking.device.on_device`.
        **options: See :class:`RankOptions`.

    Example:
        >>> items = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.6, 0.5]])
        >>> labels, ids = np.array([0, 0, 1, 1]), np.arange(4)
        >>> rank(items, items, labels, labels, query_ids=ids, gallery_ids=ids).first_rank
        array([1, 1, 1, 3])
    """
    problem = RankingProblem(query, gallery, query_labels, gallery_labels, **options)
    device = problem.scorer.device if device is None else device
    if device != CPU:
        from benchmark.ranking import torch_backend

        return ranking_of(*torch_backend.count(problem.scorer, problem.labels, device))
    n = problem.scorer.shape[0]
    result = Ranking(*(np.empty(n, dtype) for dtype in (np.int64, float, float, np.int64)))
    order = np.argsort(problem.labels.query, kind="stable")
    pairs = np.cumsum(problem.labels.matches()[order])
    cuts = [0]
    while cuts[-1] < n:  # some millions of matches at a time
        done = int(pairs[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(pairs, done + _PAIRS, "right"))))
    for first, last in itertools.pairwise(cuts):
        rows = order[first:last]
        matches = problem.matches_of(problem.labels.grouped(rows))
        part = ranking_of(matches.scores, problem.count_above(rows, matches, matches))
        for field in dataclasses.fields(Ranking):
            getattr(result, field.name)[rows] = getattr(part, field.name)
    return result


class RankingProblem:
    """Checked arguments of a ranking: vectors, labels and what leaves items out."""

    def __init__(
        self, query: Any, gallery: Any, query_labels: Any, gallery_labels: Any, *,
        distance: Distance = "cosine", threads: int | None = None, **left_out: Any,
    ) -> None:  # fmt: skip
        """Take the arguments of :func:`rank`."""
        self.scorer = engine.Scorer(query, gallery, distance=distance, threads=threads, keep=False)
        self.labels = Labels.checked(self.scorer.shape, query_labels, gallery_labels, **left_out)

    def matches_of(self, by: Grouped) -> Matches:
        """The matches of some queries, in the order of ``by.q_order``."""
        scores = Ragged(by.offset, self.scorer.class_scores(by))
        matches, left_out = scores.split(*self.scorer.left_out(by, self.labels))
        rows, items = self.labels.strangers(by.q_order)
        if len(rows):
            left_out = left_out.added(rows, self.scorer.pairs(by.q_order[rows], items))
        pieces = engine.spans(len(by.q_order), 1024)
        engine.share(functools.partial(engine.sort, matches), pieces, self.scorer.threads)
        return Matches(matches, left_out)

    def count_above(self, rows: Ints, thresholds: Matches, matches: Matches) -> Ints:
        """Non-matching items that score at least each threshold; ``matches`` are the own ones."""
        above = self.scorer.count_above(rows, thresholds.scores, self.labels.junk)
        engine.share(
            lambda a, b: matching.take_away(thresholds.scores, *matches, a, b, above),
            engine.spans(len(rows), 1024),
            self.scorer.threads,
        )
        return above


class Shard(RankingProblem):
    """One part of a gallery that lies on several disks or machines.

    First each shard gives its ``matches``, of all queries in their order; joined, they are the
    thresholds. Then each shard counts, and the counts add up: ``ranking_of(joined.scores, sum of
    the counts)`` equals :func:`rank` on the whole.

    Example:
        >>> x, y = np.eye(2), np.array([0, 1])
        >>> shards = [Shard(x, x[:1], y, y[:1]), Shard(x, x[1:], y, y[1:])]
        >>> joined = join([shard.matches for shard in shards])
        >>> ranking_of(joined.scores, sum(shard.count(joined) for shard in shards)).first_rank
        array([1, 1])
    """

    def __init__(self, *arguments: Any, **options: Unpack[RankOptions]) -> None:
        """Take the arguments of :func:`rank`, with all queries and the shard's items."""
        super().__init__(*arguments, **options)
        self._rows = np.arange(self.scorer.shape[0])
        by = self.labels.grouped(self._rows)
        self.matches = self.matches_of(by.some(np.argsort(by.q_order)))

    def count(self, thresholds: Matches) -> Ints:
        """Non-matching items of this shard that score at least each threshold."""
        return self.count_above(self._rows, thresholds, self.matches)


def join(parts: Sequence[Matches]) -> Matches:
    """The matches of several shards as one; a ValueError if they had other queries."""
    if len({len(part.scores.offset) for part in parts}) != 1:
        raise ValueError("parts: expected at least one shard, all with the same queries")
    columns = []
    for column in zip(*parts, strict=True):
        values = np.concatenate([part.values for part in column])
        order = np.lexsort((values, np.concatenate([part.owner for part in column])))
        columns.append(Ragged(np.sum([part.offset for part in column], axis=0), values[order]))
    return Matches(*columns)


def ranking_of(scores: Ragged, above: Ints) -> Ranking:
    """The ranking that follows from the scores of joined matches, and added counts."""
    n = len(scores.sizes)
    first, ap, inp = np.empty(n, np.int64), np.empty(n), np.empty(n)
    matching.summarise(scores, above, first, ap, inp)
    return Ranking(first, ap, inp, scores.sizes)
