"""Queries of a board that are looked at: the same ones for every method."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark.records.details import Nearest

EACH = 4
"""Queries of each kind, as far as there are so many."""

KINDS = {"fixed": "Fixed by the update", "broken": "Broken by the update", "typical": "Typical"}


@dataclass(frozen=True)
class LookedAt:
    """A query, and the nearest items before and after the update."""

    kind: str  # a key of KINDS
    query: int  # row of the evaluation set
    before: tuple[tuple[int, bool], ...]  # item and whether it is of the query's class
    after: tuple[tuple[int, bool], ...]


def choose_queries(bounds: Nearest) -> list[tuple[str, int]]:
    """Kind and place among ``bounds.queries`` of the twelve queries that a board's pages show.

    They are chosen by the models alone, without a method: fixed ones have a wrong item first in
    old/old and a right one in new/new, the first and the last case of ``independent``; broken ones
    the other way; typical are the first of the rest, right and wrong ones in the share that the
    rest has of them, and stand in where there are fewer of the others.
    """
    if len(bounds.cases) < 2:
        return []
    before, after = bounds.right[0, :, 0], bounds.right[-1, :, 0]
    chosen = {
        "fixed": np.flatnonzero(~before & after)[:EACH],
        "broken": np.flatnonzero(before & ~after)[:EACH],
    }
    wanted = len(KINDS) * EACH - sum(map(len, chosen.values()))
    chosen["typical"] = _typical(before == after, after, wanted)
    return [(kind, int(place)) for kind in KINDS for place in chosen[kind]]


def kept_nearest(own: Nearest, bounds: Nearest) -> Nearest:
    """Neighbours of the chosen queries alone, from which the very same ones are chosen."""
    places = np.sort(np.array([place for _, place in choose_queries(bounds)], np.int64))
    return Nearest(own.cases, own.queries[places], own.items[:, places], own.right[:, places])


def _typical(
    unmoved: NDArray[np.bool_], right: NDArray[np.bool_], wanted: int
) -> NDArray[np.int64]:
    hits, misses = np.flatnonzero(unmoved & right), np.flatnonzero(unmoved & ~right)
    n = len(hits) + len(misses)
    share = round(min(wanted, n) * len(hits) / n) if n else 0
    return np.sort(np.concatenate([hits[:share], misses[: wanted - share]]))


def look_at(own: Nearest, bounds: Nearest) -> list[LookedAt]:
    """The chosen queries with a method's nearest items: its cross-test's, or else its new/new's.

    None where the method's record is of other queries than the board's.
    """
    if len(own.cases) < 2 or own.queries.tolist() != bounds.queries.tolist():
        return []
    after = 1  # old/old, the cross-test, new/new: without a cross-test new/new is the second
    return [
        LookedAt(kind, int(own.queries[place]), _items(own, 0, place), _items(own, after, place))
        for kind, place in choose_queries(bounds)
    ]


def _items(nearest: Nearest, case: int, place: int) -> tuple[tuple[int, bool], ...]:
    items, right = nearest.items[case, place], nearest.right[case, place]
    return tuple(zip(items.tolist(), right.tolist(), strict=True))
