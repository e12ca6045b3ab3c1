"""Exact results of lists of a gallery: ranks of relevant items, the nearest items, scores of pairs.

A list is a set of queries against the gallery in one space. Blocks of the gallery are scored by
the engine of :mod:`benchmark.ranking`: no result depends on how the gallery is cut.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from benchmark.errors import BenchError
from benchmark.metrics.relevance import RelevantRanks
from benchmark.ranking import matching
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.ranking.engine import Scorer
from benchmark.ranking.grouping import Ragged, offsets
from benchmark.ranking.nearest_kernels import Best
from benchmark.upgrade.read.gallery import (
    Blocks,
    EmbeddedSample,
    GalleryBlock,
    Taking,
    one_pass,
    places_of,
)
from benchmark.upgrade.read.qrels import RelevantPairs


@dataclass(frozen=True)
class ResultList:
    """Queries ``[n, d]``, and the vectors of a block of the gallery for them, ``[k, d]``."""

    queries: Floats
    items: Callable[[GalleryBlock], Floats]
    top: int = 0  # nearest items to keep
    fitted: bool = False  # what was fitted on pairs makes its queries or its items' vectors

    def parts(self, block: GalleryBlock) -> Iterator[tuple["ResultList", GalleryBlock]]:
        """Parts of a block, each with the list that scores it."""
        yield self, block


class FoldOf:
    """The fold that scores an item: the first whose maps have not seen it; 0 if all have.

    An item beside the sample that is equal to one of it is scored by the same fold: scores of
    several maps would break their tie.
    """

    def __init__(self, samples: Sequence[EmbeddedSample]) -> None:
        """Take the samples of the folds, which have the same items."""
        sample = samples[0]
        self.seen = [each.rows[each.fitted] for each in samples]
        self.keys, at = np.unique(_checksums(sample.old), return_index=True)
        self.fold = np.argmax([~each.fitted for each in samples], axis=0)[at]

    def __call__(self, block: GalleryBlock) -> Ints:
        """The fold of each item of a block."""
        unseen = [~np.isin(block.rows, rows) for rows in self.seen]
        fold, free = np.argmax(unseen, axis=0), np.flatnonzero(np.all(unseen, axis=0))
        keys = _checksums(block.old[free])
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        fold[free] = np.where(self.keys[at] == keys, self.fold[at], 0)
        return fold


def _checksums(rows: Floats) -> Ints:
    return np.fromiter((crc32(row.tobytes()) for row in rows), np.int64, len(rows))


@dataclass(frozen=True)
class CrossFittedList(ResultList):
    """A list of several folds, each item of which is scored by maps that have not seen it.

    Maps rank what they were fitted on too high; here no item has that advantage over another.
    """

    folds: tuple[ResultList, ...] = ()
    fold_of: Callable[[GalleryBlock], Ints] = lambda block: np.zeros(len(block.rows), np.int64)

    def parts(self, block: GalleryBlock) -> Iterator[tuple[ResultList, GalleryBlock]]:
        """Parts of a block, by the fold that scores them."""
        fold = self.fold_of(block)
        for k, each in enumerate(self.folds):
            places = np.flatnonzero(fold == k)
            if len(places):
                yield each, block.some(places)


@dataclass(frozen=True)
class MixedList(ResultList):
    """A list of ``filled`` items, and another of the rest; their scores compare."""

    filled: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # rows, ascending
    rest: ResultList | None = None  # None: nothing is left

    def parts(self, block: GalleryBlock) -> Iterator[tuple[ResultList, GalleryBlock]]:
        """The filled items of a block, and its others."""
        is_filled = np.isin(block.rows, self.filled)
        for each, some in ((self, is_filled), (self.rest, ~is_filled)):
            if each is not None and some.any():
                yield each, block.some(np.flatnonzero(some))


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
            whole = _places(some, row)
            for run, state in zip(self._runs.values(), states, strict=True):
                for each, part in run.each.parts(some):
                    pairs, place = whole if part is some else _places(part, row)
                    run.add(state, each, part, query[pairs], place, counted[pairs])
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
            for each, part in self.each.parts(block):
                pairs, place = _places(part, self._row)
                if len(pairs):
                    wanted, place = np.unique(place, return_inverse=True)
                    items = each.items(part.some(wanted))
                    scorer = Scorer(each.queries, items, distance=self.distance)
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
    order = np.lexsort((ranks, query))
    found = order[ranks[order] > 0]
    q, out = query[found], ranks.copy()
    first = np.flatnonzero(np.diff(q, prepend=-1) != 0)
    nth = np.arange(len(q)) - np.repeat(first, np.diff(np.append(first, len(q)))) + 1
    out[found] = np.maximum(out[found], nth)
    return out


class _ListRun:
    """One list; counts and nearest items of parts of a gallery can be added up."""

    def __init__(
        self, each: ResultList, relevant: RelevantPairs, known: GalleryBlock, distance: str,
        threads: int | None,
    ) -> None:  # fmt: skip
        self.each, self.distance, self.threads = each, distance, threads
        self.n = relevant.n_queries
        query, row = relevant.counted_pairs
        scores = np.empty(len(row), np.float32)
        for its, part in each.parts(known) if len(row) else ():
            some = np.isin(row, part.rows)
            place = np.searchsorted(part.rows, row[some])
            scores[some] = self._scorer(its, part).pairs(query[some], place)
        self.order = np.lexsort((scores, query))
        self.thresholds = Ragged(relevant.offset, scores[self.order])

    def none(self) -> tuple[Ints, Best]:
        """Nothing counted, nothing found."""
        return np.zeros(len(self.order), np.int64), Best.none(self.n, self.each.top)

    def add(
        self, state: tuple[Ints, Best], each: ResultList, block: GalleryBlock, query: Ints,
        place: Ints, counted: Mask,
    ) -> None:  # fmt: skip
        """Count a block by its list; its items at ``place`` are relevant, or left out."""
        above, best = state
        scorer = self._scorer(each, block)
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

    def _scorer(self, each: ResultList, block: GalleryBlock) -> Scorer:
        """Take a block; a BenchError if a map gave vectors that cannot be compared."""
        try:
            return Scorer(
                each.queries, each.items(block), distance=self.distance,
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
