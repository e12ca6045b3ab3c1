"""Which gallery items are relevant to which queries: judgements in files, or class labels."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError, located
from benchmark.metrics.relevance import Judged
from benchmark.ranking.grouping import offsets, spread
from benchmark.upgrade.formats.checks import reading, shown
from benchmark.upgrade.formats.ids import Ids, as_ids
from benchmark.upgrade.formats.joining import alike, codes, rows_of
from benchmark.upgrade.formats.npy import read_flat
from benchmark.upgrade.read.qrels_files import Judgements, read_judgements, read_labels

Ints = NDArray[np.int64]

_MOST_PAIRS = 2**26


class Told(NamedTuple):
    """What of a file of judgements is not used, in judgements; zero of class labels."""

    repeated: int = 0  # with the same gain as before
    unknown_queries: int = 0  # of queries that there are no vectors of
    unknown_items: int = 0  # of items that are not in the gallery
    irrelevant: int = 0  # with a gain of 0 or less


@dataclass(frozen=True)
class Relevance:
    """Relevant gallery rows of each query.

    Attributes:
        offset: Query i has the pairs ``offset[i]`` to ``offset[i + 1] - 1``, int64
            ``[n_query + 1]``.
        rows: Of the gallery, ascending for each query, int64 ``[n]``.
        gains: How relevant they are, float64 ``[n]``, above 0.
        told: What was left out.
    """

    offset: Ints
    rows: Ints
    gains: NDArray[np.float64]
    told: Told = field(default_factory=Told)

    @property
    def known(self) -> bool:
        """Whether anything is judged; else a report tells agreement with the new model instead."""
        return len(self.rows) > 0

    @property
    def n_answered(self) -> int:
        """Queries with a relevant item."""
        return int((np.diff(self.offset) > 0).sum())

    def judged(self, rank: Ints) -> Judged:
        """With the rank of each pair, ``[n]``, what the metrics take."""
        return Judged(self.offset, rank, self.gains)

    def __str__(self) -> str:
        """One line for a person."""
        n = len(self.offset) - 1
        if not self.known:
            return f"{n:,} queries without judgements"
        words = "repeated", "of unknown queries", "of unknown items", "say not relevant"
        counts = zip(words, self.told, strict=True)
        parts = [
            f"{len(self.rows):,} relevant items of {self.n_answered:,} queries",
            f"{n - self.n_answered:,} queries have none and are left out",
            *(f"{count:,} judgements {what}" for what, count in counts),
        ]
        return "; ".join(part for part in parts if not part.startswith("0 "))


def read_relevance(path: str | Path | None, query_ids: Ids, gallery_ids: Ids) -> Relevance:
    """Judgements of a file, by the ids of queries and gallery; without a file, of nothing.

    Two forms are known by their first line. TREC's has four columns between white space: query, a
    number that is not used, item, gain. BEIR's has a header and tabs: query-id, corpus-id, score.
    Gains of 0 and below say not relevant. ``7`` and ``"7"`` are the same id.

    Args:
        path: UTF-8 text of at most 256 MiB.
        query_ids: None twice, int64 or text ``[n_query]``; row numbers where there are none.
        gallery_ids: As these, ``[n_gallery]``.

    Raises:
        BenchError: Naming line and field, if something is damaged or an item is judged twice with
            different gains; if no judgement is of these queries and items and says relevant.
    """
    if path is None:
        none = np.zeros(len(query_ids) + 1, np.int64)
        return Relevance(none, np.empty(0, np.int64), np.empty(0))
    with located(str(path)):
        found = read_judgements(Path(path))
        query = _rows("query", found.query_names, query_ids)[found.queries]
        item = _rows("item", found.item_names, gallery_ids)[found.items]
        used = np.flatnonzero((query >= 0) & (item >= 0))
        used = used[np.lexsort((found.lines[used], item[used], query[used]))]
        double = np.zeros(len(used), bool)
        double[1:] = (np.diff(query[used]) == 0) & (np.diff(item[used]) == 0)
        _require_one_gain(found, used, double)
        kept = used[~double]
        relevant = kept[found.gains[kept] > 0]
        told = Told(
            repeated=int(double.sum()), unknown_queries=int((query < 0).sum()),
            unknown_items=int(((query >= 0) & (item < 0)).sum()),
            irrelevant=len(kept) - len(relevant),
        )  # fmt: skip
        if not len(relevant):
            raise BenchError(
                f"expected a relevant item of one of the queries, got none: {told.irrelevant:,} "
                f"judgements say not relevant, {told.unknown_queries:,} are of unknown queries, "
                f"{told.unknown_items:,} of unknown items"
            )
        offset = offsets(np.bincount(query[relevant], minlength=len(query_ids)))
        return Relevance(offset, item[relevant], found.gains[relevant], told)


def read_class_labels(
    queries: str | Path, gallery: str | Path, query_ids: Ids, gallery_ids: Ids
) -> Relevance:
    """Gains of 1 for the items of the query's class, from a file of labels for each side.

    A label for every vector: an npy file ``[n]`` of whole numbers or text, row by row, or a text
    file with tabs and the header ``id``, ``label``, in any order. Queries are other items than the
    gallery's: one that is both is relevant to itself.

    Raises:
        BenchError: If a label is missing or doubled, a file is damaged, no query's class is in the
            gallery, or there are more than 2^26 pairs.
    """
    return of_classes(
        _labels(queries, query_ids), _labels(gallery, gallery_ids), (str(queries), str(gallery))
    )


def of_classes(queries: Ids, gallery: Ids, names: tuple[str, str] = ("labels",) * 2) -> Relevance:
    """Gains of 1 for the items of the query's class.

    Args:
        queries: Labels, whole numbers or text ``[n_query]``.
        gallery: As these, ``[n_gallery]``.
        names: Of both in messages.

    Raises:
        BenchError: If no query's class is in the gallery, or there are more than 2^26 pairs.
    """
    labels = alike(queries, gallery)
    mine, its = codes(*labels)
    order = np.argsort(its, kind="stable")
    ordered = its[order]
    first, last = np.searchsorted(ordered, mine), np.searchsorted(ordered, mine, "right")
    n = int((last - first).sum())
    if not n:
        raise BenchError(
            f"{names[1]}: expected labels of the queries, {shown(str(labels[0][0]))} and the like, "
            f"got none of them but {shown(str(labels[1][0]))} and the like"
        )
    if n > _MOST_PAIRS:
        raise BenchError(
            f"{names[0]}: expected at most {_MOST_PAIRS} pairs of one class, got {n}: fewer "
            "queries say as much"
        )
    return Relevance(offsets(last - first), order[spread(first, last)], np.ones(n))


def _rows(side: str, names: list[str], ids: Ids) -> Ints:
    rows = rows_of(names, ids)
    if (rows < 0).all():
        raise BenchError(
            f"{side}: expected ids of the vectors, {shown(str(ids[0]))} and the like, got none of "
            f"them but {shown(names[0])} and the like"
        )
    return rows


def _require_one_gain(found: Judgements, used: Ints, double: NDArray[np.bool_]) -> None:
    """BenchError if an item is judged twice for a query, with different gains."""
    at = np.flatnonzero(double)
    wrong = at[found.gains[used[at]] != found.gains[used[at - 1]]]
    if len(wrong):
        first, second = used[wrong[0] - 1], used[wrong[0]]
        item = found.item_names[found.items[second]]
        raise BenchError(
            f"line {found.lines[second]}: gain: expected {found.gains[first]:g} of item "
            f"{shown(item)}, as in line {found.lines[first]}, got {found.gains[second]:g}"
        )


def _labels(path: str | Path, ids: Ids) -> Ids:
    """A label for each id, whole numbers or text ``[n]``."""
    with located(str(path)):
        if Path(path).suffix.lower() != ".npy":
            return read_labels(Path(path), ids)
        with reading("npy"):
            labels = as_ids(read_flat(Path(path), "labels"))
        if len(labels) != len(ids):
            raise BenchError(f"expected {len(ids)} labels, one a vector, got {len(labels)}")
        return labels
