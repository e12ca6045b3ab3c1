"""Exact results of lists of a gallery in one pass: ranks of relevant items, and the nearest items.

A list is a set of queries against the gallery in one space. Blocks of the gallery are scored by
the engine of :mod:`benchmark.ranking`: no result depends on how the gallery is cut.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.metrics.relevance import Judged
from benchmark.ranking import matching
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.ranking.engine import Scorer
from benchmark.ranking.grouping import Ragged, offsets
from benchmark.ranking.nearest_kernels import Best
from benchmark.upgrade.read.gallery import Block, Blocks, Whole

T = TypeVar("T")


@dataclass(frozen=True)
class ResultList:
    """Queries ``[n, d]``, and what a block of the gallery is to them, ``[k, d]``."""

    queries: Floats
    items: Callable[[Block], Floats]
    top: int = 0  # nearest items to keep


@dataclass(frozen=True)
class Relevant:
    """Pairs of a query and an item of the gallery, sorted by query.

    Attributes:
        n_queries: Of all queries, those without a relevant item among them.
        query: Of each pair, ``[n]``.
        row: Of the gallery, ``[n]``.
        gain: Above 0, ``[n]``.
        judged: Whether the pair counts as relevant; the item of any other is left out of the
            query's results, as nobody knows where it stands, or the maps have seen it.
    """

    n_queries: int
    query: Ints
    row: Ints
    gain: NDArray[np.float64]
    judged: Mask

    @property
    def offset(self) -> Ints:
        """Where the judged pairs of each query begin."""
        return offsets(np.bincount(self.query[self.judged], minlength=self.n_queries))

    def by_row(self) -> tuple[Ints, Ints, Mask]:
        """Queries, rows and ``judged`` of all pairs, by row."""
        order = np.lexsort((self.query, self.row))
        return self.query[order], self.row[order], self.judged[order]


@dataclass(frozen=True)
class Found:
    """What a pass finds for a list.

    Attributes:
        ranks: For each judged pair, how many items score at least as high, itself among them.
        rows: The nearest items, nearest first, equal ones by row, ``[n, top]``; -1 where there are
            fewer.
        scores: Their scores.
    """

    ranks: Ints
    rows: Ints
    scores: Floats


def search(
    blocks: Blocks, relevant: Relevant, known: Block, lists: Mapping[str, ResultList],
    distance: Any = "cosine", threads: int | None = None,
) -> dict[str, Found]:  # fmt: skip
    """Search a gallery with several lists, in one pass.

    Args:
        blocks: Starts a pass over the gallery; a :class:`Whole` may be shared by a cluster.
        relevant: Pairs to rank, and to leave out.
        known: True vectors of items, those of all judged pairs among them.
        lists: By name.
        distance: ``cosine`` or ``l2``.
        threads: CPU threads; no result depends on it.
    """
    if isinstance(blocks, Whole) and blocks.gallery.cluster is not None:
        threads = 1  # as many CPUs as a worker has
    runs = {name: _Run(each, relevant, known, distance, threads) for name, each in lists.items()}
    for counted in _each(blocks, partial(_counted, runs, relevant)):
        for name, (above, best) in counted.items():
            runs[name].take(above, best)
    return {name: run.found() for name, run in runs.items()}


def score_pairs(
    blocks: Blocks, query: Ints, row: Ints, each: ResultList, distance: Any = "cosine"
) -> Floats:
    """Scores of listed pairs of queries and rows, in one pass; NaN where a row does not come."""
    order, out = np.argsort(row, kind="stable"), np.full(len(row), np.nan, np.float32)
    work = partial(_scored, query[order], row[order], each, distance)
    for pairs, scores in _each(blocks, work):
        out[order[pairs]] = scores
    return out


def _each(blocks: Blocks, work: Callable[[Blocks], T]) -> list[T]:
    """What ``work`` gives for the parts of a gallery, or for all of it at once."""
    return blocks.each(work) if isinstance(blocks, Whole) else [work(blocks)]


def _counted(
    runs: Mapping[str, "_Run"], relevant: Relevant, blocks: Blocks
) -> dict[str, tuple[Ints, Best]]:
    """Counts and nearest items of each list, in the blocks alone."""
    started = {name: run.started() for name, run in runs.items()}
    query, row, judged = relevant.by_row()
    for block in blocks():
        pairs, place = _places(block, row)
        for run in started.values():
            run.add(block, query[pairs], place, judged[pairs])
    return {name: (run.above, run.best.shortened()) for name, run in started.items()}


def _scored(
    query: Ints, row: Ints, each: ResultList, distance: Any, blocks: Blocks
) -> tuple[Ints, Floats]:
    """Which pairs, by ascending row, the blocks have, and their scores."""
    found, scores = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for block in blocks():
        pairs, place = _places(block, row)
        if len(pairs):
            wanted, place = np.unique(place, return_inverse=True)
            scorer = Scorer(each.queries, each.items(block.some(wanted)), distance=distance)
            found.append(pairs)
            scores.append(scorer.pairs(query[pairs], place))
    return np.concatenate(found), np.concatenate(scores)


def _places(block: Block, row: Ints) -> tuple[Ints, Ints]:
    """Which of some ascending rows a block has, and where."""
    a, b = np.searchsorted(row, [block.rows[0], block.rows[-1] + 1])
    place = np.searchsorted(block.rows, row[a:b])
    there = block.rows[place] == row[a:b]
    return a + np.flatnonzero(there), place[there]


def judged_of(ranks: Ints, relevant: Relevant) -> Judged:
    """The ranks of a list as metrics take them."""
    return Judged(relevant.offset, ranks, relevant.gain[relevant.judged])


def possible_ranks(ranks: Ints, query: Ints) -> Ints:
    """Ranks of judged pairs made possible: a query's k-th nearest one has the rank k or more.

    Ranks that come of several lists, or of estimates, may have more items at a place than it holds.
    """
    order = np.lexsort((ranks, query))
    found = order[ranks[order] > 0]
    q, out = query[found], ranks.copy()
    first = np.flatnonzero(np.diff(q, prepend=-1) != 0)
    nth = np.arange(len(q)) - np.repeat(first, np.diff(np.append(first, len(q)))) + 1
    out[found] = np.maximum(out[found], nth)
    return out


class _Run:
    """One list during a pass; counts and nearest items of parts of a gallery can be added up."""

    def __init__(
        self, each: ResultList, relevant: Relevant, known: Block, distance: Any,
        threads: int | None,
    ) -> None:  # fmt: skip
        self.each, self.options = each, {"distance": distance, "threads": threads, "keep": False}
        self.n = relevant.n_queries
        self.query, row = relevant.query[relevant.judged], relevant.row[relevant.judged]
        scores = np.empty(0, np.float32)
        if len(row):
            scorer = self._scorer(known)
            scores = scorer.pairs(self.query, np.searchsorted(known.rows, row))
        self.order = np.lexsort((scores, self.query))
        self.thresholds = Ragged(relevant.offset, scores[self.order])
        self.above = np.zeros(len(scores), np.int64)
        self.best = Best.none(self.n, each.top)

    def add(self, block: Block, query: Ints, place: Ints, judged: Mask) -> None:
        """Count a block; its items at ``place`` are relevant to ``query``, or left out."""
        scorer = self._scorer(block)
        order = np.lexsort((place, query))
        if self.each.top:
            out = order[~judged[order]]
            left_out = Ragged(self._offsets(query[out]), place[out])
            self.above += scorer.count_and_find(self.thresholds, self.best, block.rows, left_out)
        elif len(self.above):
            self.above += scorer.count_above(np.arange(self.n), self.thresholds, None)
        if len(self.above):
            own = Ragged(self._offsets(query), scorer.pairs(query[order], place[order]))
            none = Ragged(np.zeros(self.n + 1, np.int64), np.empty(0, np.float32))
            matching.take_away(self.thresholds, none, own, 0, self.n, self.above)

    def _scorer(self, block: Block) -> Scorer:
        """Take a block; BenchError if a map gave vectors that cannot be compared."""
        try:
            return Scorer(self.each.queries, self.each.items(block), **self.options)
        except ValueError as error:
            raise BenchError(f"vectors after a map: {error}") from error

    def started(self) -> "_Run":
        """Another run of the same list, that has seen nothing."""
        run = copy.copy(self)
        run.above, run.best = np.zeros_like(self.above), Best.none(self.n, self.each.top)
        return run

    def _offsets(self, query: Ints) -> Ints:
        return offsets(np.bincount(query, minlength=self.n))

    def take(self, above: Ints, best: Best) -> None:
        """Add what another run over other items has counted and found."""
        self.above += above
        self.best = self.best.added(best)

    def found(self) -> Found:
        """What the pass has found."""
        values, owner = self.thresholds.values, self.thresholds.owner
        # Relevant items of a query that score the same count for each other.
        place = np.arange(len(values))
        fresh = (np.diff(values, prepend=np.inf) != 0) | (np.diff(owner, prepend=-1) != 0)
        equal = np.maximum.accumulate(np.where(fresh, place, 0))
        ranks = np.empty(len(values), np.int64)
        ranks[self.order] = self.above + self.thresholds.offset[owner + 1] - equal
        return Found(ranks, *self.best.found())
