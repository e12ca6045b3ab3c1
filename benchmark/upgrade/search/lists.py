"""Exact results of lists of a gallery: ranks of relevant items, the nearest items, scores of pairs.

A list is a set of queries against the gallery in one space. Blocks of the gallery are scored by
the engine of :mod:`benchmark.ranking`: no result depends on how the gallery is cut.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmark.errors import BenchError
from benchmark.metrics.relevance import RelevantRanks
from benchmark.ranking import matching
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.ranking.engine import Scorer
from benchmark.ranking.grouping import Ragged, offsets
from benchmark.ranking.nearest_kernels import Best
from benchmark.upgrade.read.gallery import Blocks, GalleryBlock, Taking, one_pass, places_of
from benchmark.upgrade.read.qrels import RelevantPairs


@dataclass(frozen=True)
class ResultList:
    """Queries ``[n, d]``, and the vectors of a block of the gallery for them, ``[k, d]``."""

    queries: Floats
    items: Callable[[GalleryBlock], Floats]
    top: int = 0  # nearest items to keep


@dataclass(frozen=True)
class ListResult:
    """Results of a list."""

    ranks: Ints  # of each counted pair: how many items score at least as high, itself among them
    rows: Ints  # the nearest first, equal ones by row, [n, top]; -1 where there are fewer
    scores: Floats  # theirs


class ListsSearch:
    """A job that searches a gallery with several lists."""

    def __init__(
        self, relevant: RelevantPairs, known: GalleryBlock, lists: Mapping[str, ResultList],
        distance: str, threads: int | None = None, *, new_only: bool = False,
    ) -> None:  # fmt: skip
        """Prepare it.

        Pairs are ``relevant`` to be ranked, or to be left out; ``known`` has true vectors of items,
        those of all counted pairs among them. Only items with a new vector are searched if
        ``new_only``. No result depends on the number of threads.
        """
        self.new_only, self._by_row = new_only, relevant.by_row()
        self._runs = {
            name: _ListRun(each, relevant, known, distance, threads) for name, each in lists.items()
        }

    def begin(self) -> Taking[list[tuple[Ints, Best]]]:
        """Count and find in the blocks of a part."""
        query, row, counted = self._by_row
        states = [run.none() for run in self._runs.values()]
        while (block := (yield)) is not None:
            some = block.with_new if self.new_only else block
            if not len(some.rows):
                continue
            pairs, place = _places(some, row)
            for run, state in zip(self._runs.values(), states, strict=True):
                run.add(state, some, query[pairs], place, counted[pairs])
        return [(above, best.shortened()) for above, best in states]

    def result(self, parts: Sequence[list[tuple[Ints, Best]]]) -> dict[str, ListResult]:
        """Results by name of the list."""
        runs = self._runs.items()
        return {name: run.found([part[k] for part in parts]) for k, (name, run) in enumerate(runs)}


class PairScores:
    """A job that scores pairs of queries and rows in a list; NaN where a row does not come."""

    def __init__(self, query: Ints, row: Ints, each: ResultList, distance: str) -> None:
        self._order = np.argsort(row, kind="stable")
        self._query, self._row = query[self._order], row[self._order]
        self.each, self.distance = each, distance

    def begin(self) -> Taking[list[tuple[Ints, Floats]]]:
        """Score the pairs of a part: their places by ascending row, and scores."""
        found: list[tuple[Ints, Floats]] = []
        while (block := (yield)) is not None:
            pairs, place = _places(block, self._row)
            if len(pairs):
                wanted, place = np.unique(place, return_inverse=True)
                items = self.each.items(block.some(wanted))
                scorer = Scorer(self.each.queries, items, distance=self.distance)
                found.append((pairs, scorer.pairs(self._query[pairs], place)))
        return found

    def result(self, parts: Sequence[list[tuple[Ints, Floats]]]) -> Floats:
        """The score of each pair, as they were given."""
        out = np.full(len(self._row), np.nan, np.float32)
        for pairs, scores in (each for part in parts for each in part):
            out[self._order[pairs]] = scores
        return out


def search(
    blocks: Blocks, relevant: RelevantPairs, known: GalleryBlock, lists: Mapping[str, ResultList],
    distance: str = "cosine",
) -> dict[str, ListResult]:  # fmt: skip
    """Search a gallery with several lists, in one pass; see :class:`ListsSearch`."""
    (found,) = one_pass(blocks, [ListsSearch(relevant, known, lists, distance)])
    return dict(found)


def _places(block: GalleryBlock, row: Ints) -> tuple[Ints, Ints]:
    """Places of those of some ascending rows that a block has, and where it has them."""
    a, b = np.searchsorted(row, [block.rows[0], block.rows[-1] + 1])
    place, there = places_of(row[a:b], block.rows)
    return a + np.flatnonzero(there), place[there]


def relevant_ranks(ranks: Ints, relevant: RelevantPairs) -> RelevantRanks:
    """Pass the ranks of a list to the metrics."""
    return RelevantRanks(relevant.offset, ranks, relevant.gain[relevant.counted])


def possible_ranks(ranks: Ints, query: Ints) -> Ints:
    """Raise ranks of counted pairs to possible ones: a query's k-th nearest has the rank k or more.

    Ranks that come of estimates may have more items at a place than it holds.
    """
    found, nth = _in_order(ranks, query)
    out = ranks.copy()
    out[found] = np.maximum(out[found], nth)
    return out


def joined_ranks(query: Ints, parts: Sequence[tuple[Mask, Ints]]) -> Ints:
    """Ranks of counted pairs that several lists share out: those of a mask are by its own ranks.

    Maps that have seen some relevant items rank them too high, and others of the query too low. So
    items that are not relevant count as above a pair's, and relevant ones stand in that order.
    """
    first = parts[0][1]
    if all(np.array_equal(first, ranks) for _, ranks in parts[1:]):
        return first
    above = np.full(len(query), -1, np.int64)
    for mine, ranks in parts:
        above = np.where(mine, _others_above(ranks, query), above)
    found, nth = _in_order(above + 1, query)
    out = np.zeros(len(above), np.int64)
    out[found] = above[found] + nth
    return out


def _others_above(ranks: Ints, query: Ints) -> Ints:
    """Items that are not relevant and stand above each counted pair's; -1 where it has no rank.

    ``ranks`` count all items that score at least as high, itself among them.
    """
    found, nth = _in_order(ranks, query)
    q, r = query[found], ranks[found]
    last = np.flatnonzero(np.append((np.diff(q) != 0) | (np.diff(r) != 0), True)[: len(q)])
    out = np.full(len(ranks), -1, np.int64)
    out[found] = np.maximum(r - nth[last][np.searchsorted(last, np.arange(len(q)))], 0)
    return out


def _in_order(ranks: Ints, query: Ints) -> tuple[Ints, Ints]:
    """Pairs with a rank, by query and rank, and the place of each in its query, from 1."""
    order = np.lexsort((ranks, query))
    found = order[ranks[order] > 0]
    first = np.flatnonzero(np.diff(query[found], prepend=-1) != 0)
    sizes = np.diff(np.append(first, len(found)))
    return found, np.arange(len(found)) - np.repeat(first, sizes) + 1


class _ListRun:
    """One list; counts and nearest items of parts of a gallery can be added up."""

    def __init__(
        self, each: ResultList, relevant: RelevantPairs, known: GalleryBlock, distance: str,
        threads: int | None,
    ) -> None:  # fmt: skip
        self.each, self.distance, self.threads = each, distance, threads
        self.n = relevant.n_queries
        query, row = relevant.counted_pairs
        scores = np.empty(0, np.float32)
        if len(row):
            scores = self._scorer(known).pairs(query, np.searchsorted(known.rows, row))
        self.order = np.lexsort((scores, query))
        self.thresholds = Ragged(relevant.offset, scores[self.order])

    def none(self) -> tuple[Ints, Best]:
        """Nothing counted, nothing found."""
        return np.zeros(len(self.order), np.int64), Best.none(self.n, self.each.top)

    def add(
        self, state: tuple[Ints, Best], block: GalleryBlock, query: Ints, place: Ints, counted: Mask
    ) -> None:
        """Count a block; its items at ``place`` are relevant to ``query``, or left out."""
        above, best = state
        scorer = self._scorer(block)
        order = np.lexsort((place, query))
        if self.each.top:
            out = order[~counted[order]]
            left_out = Ragged(self._offsets(query[out]), place[out])
            above += scorer.count_and_find(self.thresholds, best, block.rows, left_out)
        elif len(above):
            above += scorer.count_above(np.arange(self.n), self.thresholds, None)
        if len(above):
            own = Ragged(self._offsets(query), scorer.pairs(query[order], place[order]))
            none = Ragged(np.zeros(self.n + 1, np.int64), np.empty(0, np.float32))
            matching.take_away(self.thresholds, none, own, 0, self.n, above)

    def _scorer(self, block: GalleryBlock) -> Scorer:
        """Take a block; a BenchError if a map gave vectors that cannot be compared."""
        try:
            return Scorer(
                self.each.queries, self.each.items(block), distance=self.distance,
                threads=self.threads, keep=False,
            )  # fmt: skip
        except ValueError as error:
            raise BenchError(f"vectors after a map: {error}") from error

    def _offsets(self, query: Ints) -> Ints:
        return offsets(np.bincount(query, minlength=self.n))

    def found(self, parts: Sequence[tuple[Ints, Best]]) -> ListResult:
        """Add up all parts."""
        above, best = self.none()
        for counts, nearest in parts:
            above, best = above + counts, best.added(nearest)
        values, owner = self.thresholds.values, self.thresholds.owner
        # Relevant items of a query that score the same count for each other.
        place = np.arange(len(values))
        fresh = (np.diff(values, prepend=np.inf) != 0) | (np.diff(owner, prepend=-1) != 0)
        equal = np.maximum.accumulate(np.where(fresh, place, 0))
        ranks = np.empty(len(values), np.int64)
        ranks[self.order] = above + self.thresholds.offset[owner + 1] - equal
        return ListResult(ranks, *best.found())
