"""Inputs of a study, checked and joined: vectors of both models, queries, relevance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

import numpy as np

from benchmark.errors import BenchError
from benchmark.metrics.cost_model import Assumptions
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.formats import holds_one_array, open_vectors
from benchmark.upgrade.formats.ids import Ids, rows_of
from benchmark.upgrade.formats.joining import Rearranged, join, join_all
from benchmark.upgrade.formats.rows import ArrayRows, Rows, gather_directions
from benchmark.upgrade.read.gallery import Cluster, EmbeddedSample, Gallery
from benchmark.upgrade.read.order import COMPARED, SameOrder
from benchmark.upgrade.read.qrels import Criterion, Qrels, RelevantPairs, request_qrels
from benchmark.upgrade.read.request import INPUTS, UpgradeRequest
from benchmark.upgrade.read.sampling import split, together
from benchmark.upgrade.read.text_files import read_counts, read_slices, read_texts

LEAST = 100
"""Items with vectors by both models: fewer leave nothing to evaluate by."""


@dataclass(frozen=True)
class Inputs:
    """Vectors of both models, row by row, and relevance."""

    request: UpgradeRequest
    gallery: Gallery
    samples: list[EmbeddedSample]  # in memory
    queries: Floats  # by the new model, [q, d_new]
    old_queries: Floats | None  # [q, d_old]; None if nobody has them
    qrels: Qrels  # relevant rows of the gallery; of nothing for ``agreement``
    criterion: Criterion
    query_ids: Ids  # row numbers where there are none
    gallery_ids: Ids | None  # None where there are none
    texts: dict[str, str] = field(default_factory=dict)  # of queries, by id, to show beside them
    reads: Ints | None = None  # how often each item is read, [n]; None if unknown
    # the row of each query's own item, which is left out for it, [q]; -1 where there is
    # none; None where queries are no items
    own: Ints | None = None
    slices: Sequence[tuple[str, str]] = ()  # ids of queries or items, and slices that they are in
    told: tuple[str, ...] = ()  # lines about what was joined and left out
    # files of items and of other texts, each with vectors of a random part, [k, dim]
    looked: Sequence[tuple[Rows, Floats]] = ()

    @property
    def distance(self) -> str:
        """``cosine``, ``dot`` or ``l2``."""
        return self.gallery.distance

    @property
    def assumed(self) -> Assumptions:
        """The deployment; of as many items as the gallery where no other number was given."""
        asked = self.request
        return Assumptions(asked.items or self.gallery.rows, asked.throughput, asked.price)

    def groups(self, queries: Ints) -> Ints | None:
        """The group of each of some queries, drawn together, ``[n]``; None: each is drawn alone.

        Queries of a class have the same relevant items, and what is hard about it is for all hard.
        """
        if self.criterion == "labels":
            return self.qrels.rows[self.qrels.offset[queries]]
        return self.qrels.groups(queries, self.own) if self.criterion == "qrels" else None

    def pairs(self, held: Ints, *, required: bool = True) -> RelevantPairs:
        """Pairs of queries and relevant items; those count whose item is one of ``held`` rows.

        Raises:
            BenchError: If some are ``required``, and none counts.
        """
        own, found = self.own, self.qrels if self.own is None else self.qrels.with_own(self.own)
        counted = np.isin(found.rows, held)
        if own is not None:
            counted &= found.rows != own[found.query]
        if required and self.qrels.known and not counted.any():
            raise BenchError(
                "relevance: expected new vectors of relevant items, got none: embed the items that "
                "are relevant to the queries, too"
            )
        return RelevantPairs(len(self.queries), found.query, found.rows, found.gains, counted)

    @property
    def n_pairs(self) -> int:
        """Relevant pairs, without those of a query and its own item."""
        rows, own = self.qrels.rows, self.own
        return len(rows) if own is None else int((rows != own[self.qrels.query]).sum())


def read_inputs(
    request: UpgradeRequest, cluster: Cluster | None = None, among: Ints | None = None
) -> Inputs:
    """Read, check and join everything, with one look at all vectors.

    The new vectors count of those rows of the gallery that are ``among`` some, else of all.

    Raises:
        BenchError: If something is missing, damaged or does not fit.
    """
    old, new, queries, *more = (
        open_rows(request, name) for name in INPUTS if getattr(request, name) is not None
    )
    old_queries = more[0] if more else None
    require_dims((queries, new), (old_queries, old))
    _check_cutoffs(request.threshold or (), request.distance or old.metric or "cosine")
    joined = join(new, old)  # the sample's order
    order = np.argsort(joined.right, kind="stable")
    if among is not None:
        order = order[np.isin(joined.right[order], among)]
    left_out = len(joined.right) - len(order)
    if len(order) < LEAST:
        raise BenchError(
            f"{new.name}: expected new vectors of at least {LEAST} items of {old.name}, got "
            f"{len(order)}"
        )
    sample = Rearranged(new, joined.left[order])
    found = read_queries(request, old, sample, joined.right[order], queries, old_queries, cluster)
    samples, compared = _surveyed(found)
    told = [line for each in (old, new, queries, *more) for line in each.told]
    if old.metric and old.metric != found.distance:
        told.append(
            f"Warning: {old.name} says that its vectors compare by {old.metric}, not "
            f"{found.distance}"
        )
    elif old.metric and request.distance is None:
        told.append(f"vectors compare by {found.distance}, as {old.name} says")
    if any(joined.missing) or not joined.in_step:
        told.append(str(joined))
    if left_out:
        estimated = ": only for this are scores estimates" * (len(joined.right) == old.rows)
        told.append(
            f"Warning: {left_out:,} of the {len(joined.right):,} items with its vectors are left "
            f"out, as another model has no vectors of them{estimated}"
        )
    signs = SameOrder.of(joined, *compared).warnings()
    if not signs and more:  # models that are not alike say nothing
        signs = of_queries(queries, more[0], found)
    told.extend(signs)
    looked = (old, samples[0].old), (new, samples[0].new)
    return replace(found, samples=samples, told=(*told, *found.told), looked=looked)


def read_queries(
    request: UpgradeRequest, old: Rows, new: Rearranged, embedded: Ints, queries: Rows,
    old_queries: Rows | None, cluster: Cluster | None,
) -> Inputs:  # fmt: skip
    """Inputs without samples: queries by both models, relevance, and what files say of both.

    The gallery ``old`` has new vectors of the rows ``embedded``, ascending.

    Raises:
        BenchError: If something is damaged or does not fit.
    """
    distance = request.distance or old.metric or "cosine"
    gallery_ids, query_ids = _numbered(old), _numbered(queries)
    vectors, old_vectors, joined = _joined_queries(queries, old_queries, distance)
    qrels, criterion = request_qrels(request, query_ids, gallery_ids)
    own, told = _own_items(request, query_ids, old)
    told = [*joined, *told]
    if criterion == "qrels":
        told = [str(qrels), *qrels.doubts(queries, old), *told]
    if request.items and request.items < old.rows:
        told.append(
            f"Warning: costs are of {request.items:,} items, fewer than the {old.rows:,} of "
            f"{old.name}"
        )
    reads = None
    if request.reads is not None:
        reads, line = read_counts(Path(request.reads), gallery_ids)
        told.append(line)
    return Inputs(
        request, Gallery(old, new, embedded, distance, cluster), [], vectors, old_vectors, qrels,
        criterion, query_ids, old.ids,
        {} if request.texts is None else read_texts(Path(request.texts), query_ids), reads, own,
        () if request.slices is None
        else read_slices(Path(request.slices), query_ids, gallery_ids), tuple(told),
    )  # fmt: skip


def _numbered(rows: Rows) -> Ids:
    """Ids, or row numbers where there are none."""
    return np.arange(rows.rows) if rows.ids is None else rows.ids


def _own_items(
    request: UpgradeRequest, query_ids: Ids, gallery: Rows
) -> tuple[Ints | None, list[str]]:
    """The row of each query's own item, if queries are items, and a line on those without one."""
    if not request.queries_are_items:
        return None, []
    own = rows_of(list(map(str, query_ids)), _numbered(gallery))
    alone = np.flatnonzero(own < 0)
    if not len(alone):
        return own, []
    first = f"the first is {str(query_ids[alone[0]])!r:.60}"
    if len(alone) < len(own):
        return own, [f"{len(alone):,} of {len(own):,} queries are no items by their ids: {first}"]
    return own, [
        f"Warning: queries are items, but no query has the id of an item of {gallery.name}, so "
        f"none is left out of its own results: {first}"
    ]


def common_rows(requests: Sequence[UpgradeRequest]) -> Ints:
    """Rows of the gallery that have a vector by each of several new models, ascending."""
    found = [
        join(open_rows(each, "new_gallery"), open_rows(each, "old_gallery")).right
        for each in requests
    ]
    return reduce(np.intersect1d, found)


def query_places(request: UpgradeRequest, first: UpgradeRequest) -> Ints:
    """The row of each query in another request's queries, ``[q]``; -1 where it is not there."""
    queries, others = open_rows(request, "queries"), open_rows(first, "queries")
    joined, out = join(queries, others), np.full(queries.rows, -1)
    out[joined.left] = joined.right
    return out


def open_rows(request: UpgradeRequest, name: str) -> Rows:
    """One input of a request."""
    vectors = getattr(request, name)
    if not isinstance(vectors, str | Path):
        return ArrayRows(name, vectors, (request.ids or {}).get(name))
    for of in ("vector_column", "id_column"):
        named = getattr(request, of)  # one name of all inputs is of those that have columns
        column = "" if isinstance(named, str) else named.get(name, "")
        if column not in ("", "-") and holds_one_array(vectors):
            raise BenchError(f"{of}: {vectors} holds one array: expected no '{name}={column:.60}'")
    return open_vectors(
        vectors, request.column("vector_column", name), request.column("id_column", name)
    )


def _check_cutoffs(cutoffs: Iterable[float], distance: str) -> None:
    """Raise a BenchError for a cut-off that no score by the distance can pass or miss."""
    for number in cutoffs:
        if distance == "l2" and number < 0:
            raise BenchError(f"threshold: expected a distance of 0 or more, got {number:g}")
        if distance == "cosine" and not -1 <= number <= 1:
            raise BenchError(f"threshold: expected a cosine in [-1, 1], got {number:g}")


def require_dims(*sides: tuple[Rows | None, Rows]) -> None:
    """Raise a BenchError unless queries are as long as the gallery's vectors of the same model."""
    for rows, its in sides:
        if rows is not None and rows.dim != its.dim:
            raise BenchError(
                f"{rows.name}: expected vectors of {its.dim} numbers as in {its.name}, got "
                f"{rows.dim}"
            )


def _joined_queries(
    new: Rows, old: Rows | None, distance: str
) -> tuple[Floats, Floats | None, list[str]]:
    """Query vectors by both models in the new ones' order, and a line on old ones without a new.

    Raises:
        BenchError: If one has no old one.
    """
    queries = gather_directions(new, np.arange(new.rows), distance)
    if old is None:
        return queries, None, []
    joined = join_all(new, old, "a vector of every query")
    told = [f"queries: {joined}"] if joined.missing[1] else []
    return queries, gather_directions(old, joined.right, distance), told


def of_queries(queries: Rows, old: Rows, inputs: Inputs) -> list[str]:
    """Warnings where queries by both models are not the same; a BenchError without ids."""
    joined, by_old = join(queries, old), inputs.old_queries
    if by_old is None:
        return []
    return SameOrder.of(joined, joined.right, by_old, inputs.queries).warnings()


def _surveyed(inputs: Inputs) -> tuple[list[EmbeddedSample], tuple[Ints, Floats, Floats]]:
    """The samples, and some rows with their vectors by both models; one pass over both."""
    gallery = inputs.gallery
    relevant, criterion = inputs.qrels.rows, inputs.criterion
    wanted, masks = split(gallery, relevant, inputs.own, criterion, inputs.request.seed)
    rng, n = np.random.default_rng(0), len(gallery.embedded)
    some = np.sort(rng.choice(n, min(n, COMPARED), replace=False))
    places = np.union1d(wanted, some)
    old, new = gallery.survey(places)
    compared, of_sample = (np.searchsorted(places, each) for each in (some, wanted))
    vectors = gallery.embedded[wanted], old[of_sample], new[of_sample]
    masks = together(vectors[1], np.isin(vectors[0], relevant), masks)
    samples = [EmbeddedSample(*vectors, *each) for each in masks]
    return samples, (gallery.embedded[some], old[compared], new[compared])


def shown_id(ids: Ids | None, row: int) -> str:
    """An id as pages show it: text as it is, or a row's number."""
    return str(row) if ids is None else str(ids[row])
