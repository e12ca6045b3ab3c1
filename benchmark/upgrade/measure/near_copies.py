"""Items without a new vector that are near copies of one that has some.

A regression of new vectors on old ones misses about the same of an item and of its near copies,
such as photographs of one product or a text with a word changed. So a copy of a relevant item
scores as that item does, not as the regression foresees: taken for an item of its own it would seem
to stand below most relevant items, whose vectors are true.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmark.metrics.similarity import unit
from benchmark.ranking.arrays import Floats, Ints, Mask, Values

_BLOCK = 512
_PROBES = 4000
"""Items of the sample whose nearest other one is looked for."""
LEAST_PAIRS = 10
"""Near pairs of the sample from which on copies are told apart."""
_BETTER = 0.25
"""Squared error of a near item's score in place of an item's own, in that of the regression."""
_SHARE = 0.05
"""Share of the gallery from which on near copies are looked for in all of it."""
_EQUAL = 1e-5
"""Squared distance of copies but for rounding, in those of any two items."""


@dataclass(frozen=True)
class NearCopies:
    """Items with a new vector, and the distance within which an item is a copy of one."""

    originals: Floats  # old vectors, as they are compared, [a, d_old]
    distance: str
    reach: float  # largest squared distance of a copy
    width: float  # deviation of its score from its original's, in those of what predictions miss
    equal: float = 0.0  # largest squared distance of items that differ by rounding alone

    @classmethod
    def found(
        cls, old: Floats, true: Floats, width: Values, plain: Mask, distance: str, rows: int
    ) -> "NearCopies | None":
        """Copies in a gallery, by those in a sample of it; None where there are few, or none.

        An item is a near copy up to the distance at which its nearest item of the sample tells its
        score twice as well as the regression does, by deviation.

        Args:
            old: Old vectors of the sample, ``[a, d_old]``.
            true: New scores of all queries with it, ``[n_query, a]``.
            width: Deviation of what predictions miss, by query, ``[n_query]``.
            plain: Those of the sample that stand for the gallery, relevant to no query, ``[a]``.
            distance: ``cosine``, ``dot`` or ``l2``.
            rows: Items of the gallery.
        """
        items = unit(old, distance)
        probes = np.unique(np.linspace(0, len(items) - 1, _PROBES).astype(np.int64))
        other, far = _nearest(items[probes], items, probes)
        error = ((true[:, probes] - true[:, other]) / width[:, None]) ** 2
        order = np.argsort(far, kind="stable")
        # Of ten neighbours in the order of their distance.
        window = np.full(LEAST_PAIRS, 1 / LEAST_PAIRS)
        smooth = np.convolve(error.mean(axis=0)[order], window, "valid")
        near = int(np.logical_and.accumulate(smooth <= _BETTER).sum())
        if not near:
            return None
        some = order[: near + LEAST_PAIRS - 1]
        typical = 2 * float(((items - items.mean(axis=0)) ** 2).sum(axis=1).mean())
        reach = max(float(far[some].max()), _EQUAL * typical)
        # Of a copy and its original a sample holds both by its share of the gallery.
        if (far[plain[probes]] <= reach).sum() / max(1, plain[probes].sum()) < _SHARE * min(
            1.0, len(items) / rows
        ):
            return None
        # Equal items have no width, and rounding some.
        missed = max(1e-3, float(np.sqrt(error[:, some].mean())))
        return cls(items, distance, reach, missed, _EQUAL * typical)

    def of(self, old: Floats) -> tuple[Ints, Mask]:
        """The original of each item ``[k, d_old]``, -1 of those that are no copies, ``[k]``.

        And those that are equal to it.
        """
        place, far = _nearest(unit(old, self.distance), self.originals)
        return np.where(far <= self.reach, place, -1), far <= self.equal


class CopiesFound(NamedTuple):
    """Rows of a gallery that are near copies, ascending, and their originals in the sample."""

    rows: Ints
    original: Ints
    equal: Mask  # those that differ from it by rounding alone

    @classmethod
    def joined(cls, parts: Sequence["CopiesFound"]) -> "CopiesFound":
        """All of them."""
        none = np.zeros(0, np.int64)
        columns = zip((none, none, none.astype(bool)), *parts, strict=True)
        return cls(*map(np.concatenate, columns))

    def _places(self, rows: Ints) -> Ints:
        """The place of each row among these; -1 of those that are no copies."""
        if not len(self.rows):
            return np.full(len(rows), -1)
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[at] == rows, at, -1)

    def of_rows(self, rows: Ints, *, equal: bool = False) -> Ints:
        """The original of each row; -1 of those that are no copies, or not ``equal`` to it."""
        at = self._places(rows)
        if not len(self.rows):
            return at
        return np.where((at >= 0) & (self.equal[at] | (not equal)), self.original[at], -1)

    def above(
        self, true: Floats, width: Values, left_out: tuple[Ints, Ints], query: Ints,
        scores: Values, own: Ints | None = None,
    ) -> "CopiesAbove":  # fmt: skip
        """Copies that score at least so much; those of the item itself apart.

        Args:
            true: New scores of all queries with the sample, ``[n_query, a]``.
            width: Deviation of a copy's score from its original's, by query, ``[n_query]``.
            left_out: Queries and rows whose pairs do not count.
            query: Of each score, ``[n]``.
            scores: Where copies are counted, ``[n]``.
            own: Place in the sample of the item that has the score, ``[n]``; -1 of none.
        """
        from scipy.special import ndtr

        found = CopiesAbove.none(len(query))
        if not len(self.rows):
            return found
        # Of each item of the sample the copies that are near it, and those that are equal.
        kind, n = self.equal.astype(np.int64), true.shape[1]
        copies = np.bincount(2 * self.original + kind, minlength=2 * n)
        originals = np.unique(self.original)
        at = self._places(left_out[1])
        order = np.argsort(query, kind="stable")
        ends = np.searchsorted(query[order], np.arange(len(true) + 1))
        for q in np.unique(query):
            mine = order[ends[q] : ends[q + 1]]
            gone = at[(left_out[0] == q) & (at >= 0)]
            left = np.bincount(2 * self.original[gone] + kind[gone], minlength=2 * n)
            near, equal = (copies - left).reshape(n, 2).T
            score, its = scores[mine, None], true[q, originals]
            chance, sure = ndtr((its - score) / width[q]), its >= score
            if own is not None:
                there = own[mine] >= 0
                found.own_near[mine] = np.where(there, near[own[mine]], 0)
                found.own_equal[mine] = np.where(there, equal[own[mine]], 0)
                alone = originals == own[mine, None]
                chance, sure = np.where(alone, 0.0, chance), sure & ~alone
            found.near[mine] = chance @ near[originals]
            found.equal[mine] = sure @ equal[originals]
        return found


class CopiesAbove(NamedTuple):
    """Numbers of copies that score at least as high as some items, ``[n]`` each."""

    near: Values  # of other items, as expected; without equal ones
    equal: Ints  # of other items that they are equal to
    own_near: Ints  # of the item itself, wherever they score
    own_equal: Ints  # of the item itself, equal to it

    @classmethod
    def none(cls, n: int) -> "CopiesAbove":
        """No copies of ``n`` items."""
        return cls(np.zeros(n), *np.zeros((3, n), np.int64))


def own_copies(copies: NearCopies, rival: Mask, query: Ints, own: Ints) -> tuple[Ints, Ints, Mask]:
    """Near copies of relevant items in the sample.

    Args:
        copies: Those of the gallery; their originals are the sample.
        rival: Items that are not relevant, ``[n_query, a]``.
        query: Of each relevant pair, ``[n]``.
        own: Place of its item in the sample, ``[n]``.

    Returns:
        The pair of each, its place in the sample, and those that are equal to the pair's item.
    """
    none = np.zeros(0, np.int64)
    found = [(none, none, none.astype(bool))]
    items, again = np.unique(own, return_inverse=True)
    for a in range(0, len(items), _BLOCK):
        far = _squared(copies.originals[items[a : a + _BLOCK]], copies.originals)
        pairs = np.flatnonzero((again >= a) & (again < a + _BLOCK))
        near = (far <= copies.reach)[again[pairs] - a] & rival[query[pairs]]
        near[np.arange(len(pairs)), own[pairs]] = False
        at, other = np.nonzero(near)
        found.append((pairs[at], other, far[again[pairs[at]] - a, other] <= copies.equal))
    pair, other, equal = (np.concatenate(each) for each in zip(*found, strict=True))
    return pair, other, equal


def share_above(copies: NearCopies, true: Floats, rival: Mask, query: Ints, own: Ints) -> float:
    """Share of a relevant item's copies that score at least as it does, by those in the sample.

    Of copies that are not equal to it, as of equal ones all do. Half of them where queries say
    nothing of which copy they want; fewer where each is made for one item. Drawn to one half as by
    ten copies. ``true`` are new scores of all queries with the sample, ``[n_query, a]``, the others
    as of :func:`own_copies`.
    """
    pair, other, equal = own_copies(copies, rival, query, own)
    pair, other = pair[~equal], other[~equal]
    above = true[query[pair], other] >= true[query[pair], own[pair]]
    return (LEAST_PAIRS / 2 + float(above.sum())) / (LEAST_PAIRS + len(pair))


def _squared(some: Floats, items: Floats) -> Values:
    """Squared distances, ``[k, a]``."""
    between = (items**2).sum(axis=1) - 2 * (some @ items.T)
    return np.maximum(between + (some**2).sum(axis=1)[:, None], 0.0)


def _nearest(some: Floats, items: Floats, own: Ints | None = None) -> tuple[Ints, Values]:
    """The nearest item of each, but for those that are its ``own``, and the squared distance."""
    place, far = np.empty(len(some), np.int64), np.empty(len(some))
    for a in range(0, len(some), _BLOCK):
        between = _squared(some[a : a + _BLOCK], items)
        rows = np.arange(len(between))
        if own is not None:
            between[rows, own[a : a + _BLOCK]] = np.inf
        place[a : a + _BLOCK] = between.argmin(axis=1)
        far[a : a + _BLOCK] = between[rows, place[a : a + _BLOCK]]
    return place, far
