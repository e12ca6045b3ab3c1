"""Queries that belong together: those that share most of their relevant items share their luck."""

import numpy as np

from benchmark.ranking.arrays import Ints
from benchmark.upgrade.read.qrels import Qrels

ALIKE = 0.5
"""Share of the relevant items of both from which on two queries belong together."""
_MOST = 20_000_000
"""Pairs of queries with a common item that are looked at; where there are more, only queries with
the very same relevant items belong together."""


def query_groups(qrels: Qrels, criterion: str, queries: Ints) -> Ints | None:
    """The group of each evaluated query, ``[n]``; None where each is one of its own.

    Queries of a class have the same relevant items, and what is hard about a class is hard for all
    of them: an interval that takes them for independent ones is too short.

    Args:
        qrels: Relevant rows of the gallery.
        criterion: ``labels`` or ``qrels``.
        queries: Rows of the evaluated queries, ``[n]``.
    """
    if criterion == "labels":  # queries of a class have the same relevant items
        return qrels.rows[qrels.offset[queries]]
    sets, same = _distinct(qrels, queries)
    groups = _connected(sets)[same]
    return None if len(np.unique(groups)) == len(groups) else groups


def _distinct(qrels: Qrels, queries: Ints) -> tuple[list[Ints], Ints]:
    """Different sets of relevant items, and which one each query has."""
    known: dict[bytes, int] = {}
    sets: list[Ints] = []
    same: list[int] = []
    for q in queries:
        rows = np.unique(qrels.rows[qrels.offset[q] : qrels.offset[q + 1]])
        place = known.setdefault(rows.tobytes(), len(sets))
        if place == len(sets):
            sets.append(rows)
        same.append(place)
    return sets, np.array(same, np.int64)


def _connected(sets: list[Ints]) -> Ints:
    """Number of the group of each set: sets with common items, half of theirs at least."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    sizes = np.array([len(rows) for rows in sets])
    rows = np.unique(np.concatenate(sets), return_inverse=True)[1]
    if (np.bincount(rows).astype(np.float64) ** 2).sum() > _MOST:
        return np.arange(len(sets))
    owner = np.repeat(np.arange(len(sets)), sizes)
    holds = csr_matrix((np.ones(len(rows)), (owner, rows)))
    common = (holds @ holds.T).tocoo()
    union = sizes[common.row] + sizes[common.col] - common.data
    alike = common.data >= ALIKE * union
    edges = csr_matrix(
        (np.ones(alike.sum()), (common.row[alike], common.col[alike])), shape=common.shape
    )
    return np.asarray(connected_components(edges, directed=False)[1], np.int64)
