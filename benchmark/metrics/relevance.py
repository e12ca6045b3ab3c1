"""Retrieval by relevance judgements: graded gains, and relevant items that follow no class.

Functions take :class:`RelevantRanks` and give one value for each query with a relevant item, as
:mod:`benchmark.metrics.retrieval` does, whose reciprocal rank and average precision take them, too;
averaging is left to the caller. Without ties all equal trec_eval's.
A ValueError names an argument that is out of range.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmark.metrics.catalog import metric
from benchmark.metrics.retrieval import cut_off
from benchmark.ranking.arrays import Ints, Mask, Values

_RULES = (
    "Ties stand against the query: of equal scores the item of the smaller gain comes first. "
    "Queries without a relevant item are left out and counted."
)


@dataclass(frozen=True)
class RelevantRanks:
    """Ranks of the relevant items of each query in its result.

    Attributes:
        offset: Query i has the items ``offset[i]`` to ``offset[i + 1] - 1`` of the other two,
            int64 ``[n_query + 1]``.
        rank: How many items score at least as high, the item itself among them, int64 ``[n]``;
            0 where it is not in the result, which a list of some nearest may be.
        gain: How relevant it is, float64 ``[n]``, above 0.

    Example:
        >>> found = RelevantRanks(np.array([0, 2]), np.array([2, 5]), np.array([1.0, 3.0]))
        >>> recall(found, 2), found.average_precision
        (array([0.5]), array([0.45]))
    """

    offset: Ints
    rank: Ints
    gain: Values

    def __post_init__(self) -> None:
        n = len(self.rank)
        if len(self.offset) < 1 or self.offset[0] != 0 or self.offset[-1] != n:
            raise ValueError(f"offset: expected 0 first and {n} last")
        if (self.sizes < 0).any():
            raise ValueError("offset: expected ascending numbers")
        if self.gain.shape != (n,) or not (np.isfinite(self.gain) & (self.gain > 0)).all():
            raise ValueError(f"gain: expected {n} finite numbers above 0")
        short = np.flatnonzero(self.rank < self.relevant_above)
        if len(short):
            at, least = int(short[0]), int(self.relevant_above[short[0]])
            raise ValueError(f"rank: expected at least {least} at {at}, got {self.rank[at]}")

    @property
    def sizes(self) -> Ints:
        """Number of relevant items of each query, int64 ``[n_query]``."""
        return np.diff(self.offset)

    @property
    def answered(self) -> Mask:
        """Queries with a relevant item, bool ``[n_query]``; the others are left out."""
        return self.sizes > 0

    @cached_property
    def place(self) -> Ints:
        """Rank with ties broken against the query, so that no two items share one; int64 ``[n]``.

        The best place of a query's items is 1 + the items that are not relevant and score at least
        as high.
        """
        order = np.lexsort((self.gain, self.rank, self.owner))
        place = np.empty_like(self.rank)
        place[order] = self.rank[order] - (self._last[order] - np.arange(len(order)))
        return np.where(self.rank > 0, place, 0)

    @cached_property
    def relevant_above(self) -> Ints:
        """Number of the query's relevant items that score at least as high, itself among them.

        int64 ``[n]``; 0 where it is not in the result.
        """
        missing = np.bincount(self.owner[self.rank == 0], minlength=len(self.sizes))
        among = self._last + 1 - (self.offset[:-1] + missing)[self.owner]
        return np.where(self.rank == 0, 0, among)

    @cached_property
    def owner(self) -> Ints:
        """The query of each item, int64 ``[n]``."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def _last(self) -> Ints:
        """Place of the last item of equal score when a query's items are sorted by rank."""
        order = np.lexsort((self.rank, self.owner))
        owner, rank = self.owner[order], self.rank[order]
        ends = np.append((owner[1:] != owner[:-1]) | (rank[1:] != rank[:-1]), True)[: len(order)]
        last = np.empty_like(self.rank)
        last[order] = np.flatnonzero(ends)[np.cumsum(ends) - ends]
        return last

    def sums(self, values: Values) -> Values:
        """Sum of the items' values for each query with a relevant item."""
        sums = np.bincount(self.owner, values, minlength=len(self.sizes))
        return sums[self.answered].astype(np.float64)

    @property
    def first_rank(self) -> Ints:
        """The place of the nearest relevant item of each query, int64 ``[n_query]``; 0 for none."""
        first = np.full(len(self.sizes), np.iinfo(np.int64).max)
        found = self.place >= 1
        np.minimum.at(first, self.owner[found], self.place[found])
        return np.where(first < np.iinfo(np.int64).max, first, 0)

    @property
    def average_precision(self) -> Values:
        """Precision at each relevant item, ties merged, averaged over all, ``[n_query]``.

        0 for a query without a relevant item.
        """
        precision = self.relevant_above / np.maximum(self.rank, 1)
        sums = np.bincount(self.owner, precision, minlength=len(self.sizes))
        return np.asarray(sums / np.maximum(self.sizes, 1), np.float64)

    def within(self, k: int) -> Mask:
        """Mask of the items among the ``k`` nearest, bool ``[n]``."""
        return (self.place >= 1) & (self.place <= cut_off(k))


@metric("ndcg_at_{k}", "nDCG@{k}", f"Gains as judged, discounted by log2(1 + rank). {_RULES}")
def ndcg(found: RelevantRanks, k: int) -> Values:
    """Discounted gains of the ``k`` nearest over those of the best order.

    Source: Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002, as
    trec_eval's ndcg_cut has it.
    """
    order = np.lexsort((-found.gain, found.owner))
    ideal = np.empty_like(found.place)
    ideal[order] = np.arange(len(order)) - found.offset[:-1][found.owner] + 1
    return _discounted(found, found.place, k) / _discounted(found, ideal, k)


@metric("recall_at_{k}", "Recall@{k}", f"Share of the query's relevant items. {_RULES}", rises=True)
def recall(found: RelevantRanks, k: int) -> Values:
    """Share of a query's relevant items that are among the ``k`` nearest."""
    return found.sums(found.within(k).astype(np.float64)) / found.sizes[found.answered]


@metric(
    "agreement_at_{k}", "Agreement@{k}",
    "Share of the new model's own nearest items that are among the nearest here, in any order; it "
    "says nothing of relevance. Equal scores go by the smaller row on both sides.",
)  # fmt: skip
def agreement(found: Ints, expected: Ints, k: int) -> Values:
    """Share of the ``k`` items of one result that are among the ``k`` of another, ``[n_query]``.

    Args:
        found: Rows of the nearest items, the nearest first, ``[n_query, >= k]``; negative where a
            result has fewer.
        expected: As ``found``, of the result that is agreed with.
        k: Cut-off; the share is of the expected items, which a small gallery has fewer of.

    Example:
        >>> agreement(np.array([[4, 1, 2]]), np.array([[1, 9, 4]]), 2)
        array([0.5])
    """
    if found.ndim != 2 or expected.ndim != 2 or len(found) != len(expected):
        raise ValueError(f"found: expected {len(expected)} rows, got shape {list(found.shape)}")
    if min(found.shape[1], expected.shape[1]) < cut_off(k):
        raise ValueError(f"k: expected at most the items given, got {k}")
    mine, its = found[:, :k], expected[:, :k]
    n = (its >= 0).sum(axis=1)
    if not n.all():
        raise ValueError(f"expected: expected an item in each row, got none in {int(n.argmin())}")
    # Each side's rows are different ones, so that a row of both comes twice when they are sorted.
    both = np.sort(np.concatenate([mine, its], axis=1), axis=1)
    return ((both[:, 1:] == both[:, :-1]) & (both[:, 1:] >= 0)).sum(axis=1) / n


def _discounted(found: RelevantRanks, place: Ints, k: int) -> Values:
    within = (place >= 1) & (place <= cut_off(k))
    return found.sums(np.where(within, found.gain / np.log2(1.0 + np.maximum(place, 1)), 0.0))
