"""Exact results of lists of a gallery in one pass: ranks of relevant items, and the nearest items.

A list is a set of queries against the gallery in one space. Blocks of the gallery are scored by
the engine of :mod:`benchmark.ranking`: no result depends on how the gallery is cut.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.relevance import Judged
from benchmark.ranking import matching
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.ranking.engine import Scorer
from benchmark.ranking.grouping import Ragged, offsets
from benchmark.upgrade.gallery import Block, Blocks

Keys = NDArray[np.uint64]
_LOW = np.uint64(2**32 - 1)  # the half of a key that has the row


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
        blocks: Starts a pass over the gallery.
        relevant: Pairs to rank, and to leave out.
        known: True vectors of items, those of all judged pairs among them.
        lists: By name.
        distance: ``cosine`` or ``l2``.
        threads: CPU threads; no result depends on it.
    """
    runs = {name: _Run(each, relevant, known, distance, threads) for name, each in lists.items()}
    query, row, judged = relevant.by_row()
    for block in blocks():
        pairs, place = _places(block, row)
        for run in runs.values():
            run.add(block, query[pairs], place, judged[pairs])
    return {name: run.found() for name, run in runs.items()}


def score_pairs(
    blocks: Blocks, query: Ints, row: Ints, each: ResultList, distance: Any = "cosine"
) -> Floats:
    """Scores of listed pairs of queries and rows, in one pass; NaN where a row does not come."""
    order, out = np.argsort(row, kind="stable"), np.full(len(row), np.nan, np.float32)
    ordered = row[order]
    for block in blocks():
        pairs, place = _places(block, ordered)
        if len(pairs):
            scorer = Scorer(each.queries, each.items(block), distance=distance)
            out[order[pairs]] = scorer.pairs(query[order[pairs]], place)
    return out


def _places(block: Block, row: Ints) -> tuple[Ints, Ints]:
    """Which of some ascending rows a block has, and where."""
    a, b = np.searchsorted(row, [block.rows[0], block.rows[-1] + 1])
    place = np.searchsorted(block.rows, row[a:b])
    there = block.rows[place] == row[a:b]
    return a + np.flatnonzero(there), place[there]


def judged_of(ranks: Ints, relevant: Relevant) -> Judged:
    """The ranks of a list as metrics take them."""
    return Judged(relevant.offset, ranks, relevant.gain[relevant.judged])


class _Run:
    """One list during a pass."""

    def __init__(
        self, each: ResultList, relevant: Relevant, known: Block, distance: Any,
        threads: int | None,
    ) -> None:  # fmt: skip
        self.each, self.options = each, {"distance": distance, "threads": threads, "keep": False}
        n = relevant.n_queries
        self.query, row = relevant.query[relevant.judged], relevant.row[relevant.judged]
        self.every = np.arange(n)
        scores = np.empty(0, np.float32)
        if len(row):
            scorer = Scorer(each.queries, each.items(known), **self.options)
            scores = scorer.pairs(self.query, np.searchsorted(known.rows, row))
        self.order = np.lexsort((scores, self.query))
        self.thresholds = Ragged(relevant.offset, scores[self.order])
        self.above = np.zeros(len(scores), np.int64)
        self.best: Keys = np.zeros((n, each.top), np.uint64)

    def add(self, block: Block, query: Ints, place: Ints, judged: Mask) -> None:
        """Count a block; its items at ``place`` are relevant to ``query``, or left out."""
        scorer = Scorer(self.each.queries, self.each.items(block), **self.options)
        if len(self.above):
            self.above += scorer.count_above(self.every, self.thresholds, None)
            order = np.argsort(query, kind="stable")
            own = scorer.pairs(query[order], place[order])
            sizes = np.bincount(query, minlength=len(self.every))
            none = Ragged(np.zeros(len(sizes) + 1, np.int64), np.empty(0, np.float32))
            taken = Ragged(offsets(sizes), own)
            matching.take_away(self.thresholds, none, taken, 0, len(sizes), self.above)
        if self.each.top:
            self._keep(scorer, block, query[~judged], place[~judged])

    def _keep(self, scorer: Scorer, block: Block, query: Ints, place: Ints) -> None:
        """Keep the nearest items, but for those that are left out."""

        def work(first: int, last: int, scores: Floats) -> None:
            out = (query >= first) & (query < last)
            scores[query[out] - first, place[out]] = -np.inf
            best = self.best[first:last]
            lowest = best.min(axis=1)
            # Scores are finite: what is left out never reaches the least there is.
            low = np.where(lowest == 0, np.finfo(np.float32).min, _scores_of(lowest))
            reach = scores >= low[:, None]
            for i in np.flatnonzero(reach.any(axis=1)):
                places = np.flatnonzero(reach[i])
                keys = np.append(best[i], _keys(scores[i, places], block.rows[places]))
                best[i] = np.partition(keys, -self.each.top)[-self.each.top :]

        scorer.blocks(work)

    def found(self) -> Found:
        """What the pass has found."""
        values, owner = self.thresholds.values, self.thresholds.owner
        # Relevant items of a query that score the same count for each other.
        place = np.arange(len(values))
        fresh = (np.diff(values, prepend=np.inf) != 0) | (np.diff(owner, prepend=-1) != 0)
        equal = np.maximum.accumulate(np.where(fresh, place, 0))
        ranks = np.empty(len(values), np.int64)
        ranks[self.order] = self.above + self.thresholds.offset[owner + 1] - equal
        best = np.sort(self.best, axis=1)[:, ::-1]
        rows = np.where(best == 0, -1, (_LOW - (best & _LOW)).astype(np.int64))
        return Found(ranks, rows, np.where(best == 0, np.nan, _scores_of(best)))


def _keys(scores: Floats, rows: Ints) -> Keys:
    """Numbers that ascend with the score; of equal scores the smaller row has the larger one."""
    bits = (scores + np.float32(0)).view(np.uint32)  # no -0.0
    ascending = np.where(bits >> 31 == 1, ~bits, bits | np.uint32(1 << 31))
    return (ascending.astype(np.uint64) << np.uint64(32)) | (_LOW - rows.astype(np.uint64))


def _scores_of(keys: Keys) -> Floats:
    bits = (keys >> np.uint64(32)).astype(np.uint32)
    return np.where(bits >> 31 == 1, bits & np.uint32((1 << 31) - 1), ~bits).view(np.float32)
