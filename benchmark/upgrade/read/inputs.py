"""What the user brings, checked and joined: vectors of both models, queries, relevance."""

from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np

from benchmark.errors import BenchError
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.formats.ids import Ids
from benchmark.upgrade.formats.joining import join
from benchmark.upgrade.formats.rows import Rows, gather, require_directions
from benchmark.upgrade.formats.source import Source
from benchmark.upgrade.read.cluster import Cluster
from benchmark.upgrade.read.gallery import Gallery
from benchmark.upgrade.read.new_vectors import NewVectors
from benchmark.upgrade.read.qrels import Relevance

LEAST = 100
"""Items with vectors by both models: fewer leave nothing to judge by."""
Judge = Literal["qrels", "labels", "agreement"]


@dataclass(frozen=True)
class Inputs:
    """Vectors of both models, row by row, and what is relevant.

    Attributes:
        gallery: Stored vectors, and the rows that have new ones.
        queries: By the new model, ``[q, d_new]``.
        old_queries: By the old model, ``[q, d_old]``; None if nobody has them.
        relevance: Relevant rows of the gallery; of nothing for ``agreement``.
        judge: What it is made of.
        query_ids: Of the queries, row numbers where there are none.
        gallery_ids: As these, of the gallery; None where there are none.
        texts: Of queries, by id, to show beside them.
        reads: How often each item is read, ``[n]``; None if unknown.
        own: The row of each query's own item, which is left out for it, ``[q]``; -1 where there is
            none; None where queries are no items.
        told: Lines about what was joined and left out.
    """

    gallery: Gallery
    queries: Floats
    old_queries: Floats | None
    relevance: Relevance
    judge: Judge
    distance: Literal["cosine", "l2"]
    query_ids: Ids
    gallery_ids: Ids | None
    texts: dict[str, str] = field(default_factory=dict)
    reads: Ints | None = None
    own: Ints | None = None
    told: tuple[str, ...] = ()


def joined_gallery(
    old: Rows, new: Rows, distance: str, cluster: Cluster | None = None
) -> tuple[Gallery, list[str]]:
    """The gallery with its new vectors, joined by ids, or row by row; and what there is to tell.

    Raises:
        BenchError: If they cannot be joined, too few items have both vectors, or a vector is zero.
    """
    joined = join(cast(Source, new), cast(Source, old))  # the sample's order
    told = [str(joined)] if any(joined.missing) or not joined.in_step else []
    if len(joined.left) < LEAST:
        raise BenchError(
            f"{new.name}: expected new vectors of at least {LEAST} items of {old.name}, got "
            f"{len(joined.left)}"
        )
    order = np.argsort(joined.right, kind="stable")
    vectors = NewVectors(new, joined.right[order], joined.left[order])
    gallery = Gallery(old, vectors, distance, cluster)
    if not _partners(gallery):
        if not joined.by_id:
            raise BenchError(
                f"{new.name}: expected the items of {old.name} in the same order, got vectors that "
                "are no more alike than shuffled ones; with ids on both sides any order will do"
            )
        told.append(
            f"Warning: items that are near in {old.name} are not near in {new.name}: do the ids "
            "name the same items?"
        )
    return gallery, told


def joined_queries(new: Rows, old: Rows | None, distance: str) -> tuple[Floats, Floats | None, Ids]:
    """Query vectors by both models in the new ones' order, and ids.

    Raises:
        BenchError: If they cannot be joined, or a query has no old vector.
    """
    ids = np.arange(new.rows) if new.ids is None else new.ids
    queries = gather(new, np.arange(new.rows))
    require_directions(new, queries, distance)
    if old is None:
        return queries, None, ids
    joined = join(cast(Source, new), cast(Source, old))
    if joined.missing[0]:
        alone = int(np.setdiff1d(np.arange(new.rows), joined.left)[0])
        raise BenchError(
            f"{old.name}: expected a vector of every query; {joined}, the first at {new.row(alone)}"
        )
    vectors = gather(old, joined.right)
    require_directions(old, vectors, distance, joined.right)
    return queries, vectors, ids


def require_dims(gallery: Gallery, queries: Rows, old_queries: Rows | None) -> None:
    """BenchError unless queries are as long as the gallery's vectors of the same model."""
    for rows, its in ((queries, gallery.new.source), (old_queries, gallery.stored)):
        if rows is not None and rows.dim != its.dim:
            raise BenchError(
                f"{rows.name}: expected vectors of {its.dim} numbers as in {its.name}, got "
                f"{rows.dim}"
            )


def _partners(gallery: Gallery) -> bool:
    """Whether rows look like vectors of the same items.

    Items that are near by one model are near by the other; where one side is shuffled, they are no
    nearer than any. The correlation of similarities must be beyond twice that of any of twenty
    shuffles.
    """
    rng = np.random.default_rng(0)
    n = min(len(gallery.embedded), 400)
    places = np.sort(rng.choice(len(gallery.embedded), n, replace=False))
    old, new = map(_similarities, gallery.sample(places))
    above = np.triu_indices(n, 1)
    if not (np.ptp(old[above]) and np.ptp(new[above])):
        return True  # all alike: nothing can be said

    def correlation(order: Ints) -> float:
        return abs(float(np.corrcoef(old[above], new[order][:, order][above])[0, 1]))

    shuffled = max(correlation(rng.permutation(n)) for _ in range(20))
    return correlation(np.arange(n)) > 2 * shuffled


def _similarities(vectors: Floats) -> Floats:
    x = vectors - vectors.mean(0)
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return x @ x.T


def shown_id(ids: Ids | None, row: int) -> str:
    """An id as pages show it: text as it is, or a row's number."""
    return str(row) if ids is None else str(ids[row])
