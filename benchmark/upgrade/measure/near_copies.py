"""Items without a new vector that are near copies of one that has some.

A regression of new vectors on old ones misses about the same of an item and of its near copies,
such as photographs of one product or a text with a word changed. So a copy of a relevant item
scores as that item does, not as the regression foresees: taken for an item of its own it would seem
to stand below most relevant items, whose vectors are true.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
        return cls(items, distance, reach, max(1e-3, float(np.sqrt(error[:, some].mean()))))

    def of(self, old: Floats) -> Ints:
        """The original of each item ``[k, d_old]``; -1 of those that are no copies, ``[k]``."""
        place, far = _nearest(unit(old, self.distance), self.originals)
        return np.where(far <= self.reach, place, -1)


@dataclass(frozen=True)
class CopiesFound:
    """Rows of a gallery that are near copies, ascending, and their originals in the sample."""

    rows: Ints
    original: Ints

    @classmethod
    def joined(cls, parts: Sequence["CopiesFound"]) -> "CopiesFound":
        """All of them."""
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([none, *(each.rows for each in parts)]),
            np.concatenate([none, *(each.original for each in parts)]),
        )

    def of_rows(self, rows: Ints) -> Ints:
        """The original of each row; -1 of those that are no copies."""
        if not len(self.rows):
            return np.full(len(rows), -1)
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[at] == rows, self.original[at], -1)

    def above(
        self, true: Floats, width: Values, left_out: tuple[Ints, Ints], query: Ints,
        scores: Values, own: Ints | None = None,
    ) -> tuple[Values, Ints]:  # fmt: skip
        """Copies that are expected to score at least so much; those of the item itself, apart.

        Args:
            true: New scores of all queries with the sample, ``[n_query, a]``.
            width: Deviation of a copy's score from its original's, by query, ``[n_query]``.
            left_out: Queries and rows whose pairs do not count.
            query: Of each score, ``[n]``.
            scores: Where copies are counted, ``[n]``.
            own: Place in the sample of the item that has the score, ``[n]``; -1 of none.

        Returns:
            The number of other items' copies, and of copies of ``own`` wherever they score.
        """
        from scipy.special import ndtr

        others, its = np.zeros(len(query)), np.zeros(len(query), np.int64)
        if not len(self.rows):
            return others, its
        copies = np.bincount(self.original, minlength=true.shape[1])
        originals = np.flatnonzero(copies)
        there = self.of_rows(left_out[1])
        order = np.argsort(query, kind="stable")
        ends = np.searchsorted(query[order], np.arange(len(true) + 1))
        for q in np.unique(query):
            mine = order[ends[q] : ends[q + 1]]
            gone = there[(left_out[0] == q) & (there >= 0)]
            number = copies - np.bincount(gone, minlength=len(copies))
            chance = ndtr((true[q, originals] - scores[mine, None]) / width[q])
            if own is not None:
                its[mine] = np.where(own[mine] >= 0, number[own[mine]], 0)
                chance[originals == own[mine, None]] = 0.0
            others[mine] = chance @ number[originals]
        return others, its


def share_above(copies: NearCopies, true: Floats, rival: Mask, query: Ints, own: Ints) -> float:
    """Share of a relevant item's copies that score at least as it does, by those in the sample.

    Half of them where queries say nothing of which copy they want; fewer where each is made for one
    item. Drawn to one half as by ten copies.

    Args:
        copies: Those of the gallery; their originals are the sample.
        true: New scores of all queries with the sample, ``[n_query, a]``.
        rival: Those that are not relevant, ``[n_query, a]``.
        query: Of each relevant pair, ``[n]``.
        own: Place of its item in the sample, ``[n]``.
    """
    seen, above = float(LEAST_PAIRS), LEAST_PAIRS / 2
    items, again = np.unique(own, return_inverse=True)
    for a in range(0, len(items), _BLOCK):
        far = _squared(copies.originals[items[a : a + _BLOCK]], copies.originals)
        pairs = np.flatnonzero((again >= a) & (again < a + _BLOCK))
        near = (far <= copies.reach)[again[pairs] - a] & rival[query[pairs]]
        near[np.arange(len(pairs)), own[pairs]] = False
        pair, other = np.nonzero(near)
        q = query[pairs[pair]]
        seen += len(q)
        above += float((true[q, other] >= true[q, own[pairs[pair]]]).sum())
    return above / seen


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
