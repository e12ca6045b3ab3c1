"""Relevance judgements (qrels) by rows of queries and gallery, from judgements or class labels."""

import math
import numbers
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError, located
from benchmark.ranking.arrays import Ints, Mask
from benchmark.ranking.grouping import offsets, spread
from benchmark.upgrade.formats.checks import cut, reading, several, shown
from benchmark.upgrade.formats.flat import read_flat
from benchmark.upgrade.formats.ids import Ids, alike, as_ids, index_of, rows_of
from benchmark.upgrade.formats.rows import Rows
from benchmark.upgrade.read.request import UpgradeRequest
from benchmark.upgrade.read.text_files import NamedQrels, read_labels, read_qrels

Criterion = Literal["qrels", "labels", "agreement"]
"""Grounds on which strategies are evaluated: relevance judgements, class labels, or agreement with
the new model."""
_MOST_PAIRS = 2**26
ALIKE = 0.5
"""Share of the relevant items of both from which on two queries belong together."""
_MOST_ALIKE = 20_000_000
"""Pairs of queries with a common item that are looked at; where there are more, only queries with
the very same relevant items belong together."""


class Unused(NamedTuple):
    """Judgements that are not used, by reason; none of class labels."""

    repeated: int = 0  # with the same gain as before
    unknown_queries: int = 0  # of queries that there are no vectors of
    unknown_items: int = 0  # of items that are not in the gallery
    irrelevant: int = 0  # with a gain of 0 or less


_LEFT_OUT = (
    ("query has none and is left out", "queries have none and are left out"),
    ("judgement repeated", "judgements repeated"),
    ("judgement of an unknown query", "judgements of unknown queries"),
    ("judgement of an unknown item", "judgements of unknown items"),
    ("judgement says not relevant", "judgements say not relevant"),
)
"""Words for queries without judgements and for judgements that are not used: of one, of several."""


@dataclass(frozen=True)
class Qrels:
    """Relevant gallery rows of each query."""

    offset: Ints  # query i has the pairs offset[i] to offset[i + 1] - 1, int64 [n_query + 1]
    rows: Ints  # of the gallery, ascending for each query, int64 [n]
    gains: NDArray[np.float64]  # of each pair, [n], above 0
    unused: Unused = field(default_factory=Unused)  # judgements that were left out
    # ids of queries, and of items, hold the number of rows and no 0, as they do where rows are
    # counted from 1
    from_one: tuple[bool, bool] = (False, False)

    @property
    def known(self) -> bool:
        """False without judgements; a report tells agreement with the new model instead."""
        return len(self.rows) > 0

    @property
    def query(self) -> Ints:
        """The query of each pair, ``[n]``."""
        return np.repeat(np.arange(len(self.offset) - 1), np.diff(self.offset))

    def groups(self, queries: Ints, own: Ints | None = None) -> Ints | None:
        """The group of each of some queries, ``[n]``; None where each is one of its own.

        Those that share most of their relevant items share their luck: an interval that takes them
        for independent ones is too short. A query that is an item itself, in a row ``own`` (-1 of
        none), shares that with those that look for it.
        """
        sets, same = _distinct(self if own is None else self.with_own(own), queries)
        groups = _like_the_first(sets)[same]
        return None if len(np.unique(groups)) == len(groups) else groups

    def with_own(self, own: Ints) -> "Qrels":
        """These, and the row of each query's own item, ``[n_query]``, gain 1; -1 of none."""
        other, some = self.rows != own[self.query], np.flatnonzero(own >= 0)
        query = np.append(self.query[other], some)
        rows = np.append(self.rows[other], own[some])
        gains = np.append(self.gains[other], np.ones(len(some)))
        order, sizes = np.lexsort((rows, query)), np.bincount(query, minlength=len(own))
        return replace(self, offset=offsets(sizes), rows=rows[order], gains=gains[order])

    def doubts(self, queries: Rows, gallery: Rows) -> list[str]:
        """Warnings of rows that are known by number, from 0, where judgements count from 1."""
        sides = zip(("query", "item"), (queries, gallery), self.from_one, strict=True)
        return [
            f"Warning: {rows.name} has no ids, so its rows are known by number, from 0; the "
            f"judgements name {side} {rows.rows:,} but no {side} 0: are they counted from 1?"
            for side, rows, from_one in sides if rows.ids is None and from_one
        ]  # fmt: skip

    def __str__(self) -> str:
        """One line for a person."""
        n, found = len(self.offset) - 1, int((np.diff(self.offset) > 0).sum())
        if not self.known:
            return f"{n:,} queries without judgements"
        pairs = several(len(self.rows), "relevant pair")
        parts = [f"{pairs} of {several(found, 'query', 'queries')}"]
        counts = zip((n - found, *self.unused), _LEFT_OUT, strict=True)
        parts += [several(count, *words) for count, words in counts if count]
        return "; ".join(parts)

    @classmethod
    def of(cls, given: Any, query_ids: Ids, gallery_ids: Ids) -> "Qrels":
        """Join judgements with queries and gallery by ids; of nothing without judgements.

        Two forms of files are known by their first line. TREC's has four columns between white
        space: query, a number that is not used, item, gain. BEIR's has a header and tabs: query-id,
        corpus-id, score. Gains of 0 and below say not relevant. ``7`` and ``"7"`` are the same id.

        Args:
            given: UTF-8 text of at most 256 MiB, or query -> item -> gain.
            query_ids: None twice, int64 or text ``[n_query]``; row numbers from 0 where there are
                none.
            gallery_ids: As these, ``[n_gallery]``.

        Raises:
            BenchError: Naming line and field, if something is damaged or an item is judged twice
                with different gains; if no judgement is of these queries and items and says
                relevant.
        """
        if given is None:
            none = np.zeros(len(query_ids) + 1, np.int64)
            return cls(none, np.empty(0, np.int64), np.empty(0))
        if isinstance(given, Mapping):
            with located("qrels"):
                return _joined(_named(given), query_ids, gallery_ids)
        if not isinstance(given, str | Path):
            raise BenchError(f"qrels: expected a file, or query -> item -> gain, got {cut(given)}")
        with located(str(given)):
            return _joined(read_qrels(Path(given)), query_ids, gallery_ids)

    @classmethod
    def of_classes(
        cls, queries: Ids, gallery: Ids, names: tuple[str, str] = ("labels",) * 2
    ) -> "Qrels":
        """Give the items of a query's class gains of 1.

        Queries are other items than the gallery's: one that is both is relevant to itself.

        Args:
            queries: Labels, whole numbers or text ``[n_query]``.
            gallery: As these, ``[n_gallery]``.
            names: Of both in messages.

        Raises:
            BenchError: If no query's class is in the gallery, or there are more than 2^26 pairs.
        """
        labels = alike(queries, gallery)
        codes, _ = index_of(np.concatenate(labels)).factorize()
        mine, its = codes[: len(queries)], codes[len(queries) :]
        order = np.argsort(its, kind="stable")
        first, last = (np.searchsorted(its[order], mine, side) for side in ("left", "right"))
        n = int((last - first).sum())
        if not n:
            raise BenchError(
                f"{names[1]}: expected labels of the queries, {shown(str(labels[0][0]))} and the "
                f"like, got none of them but {shown(str(labels[1][0]))} and the like"
            )
        if n > _MOST_PAIRS:
            raise BenchError(
                f"{names[0]}: expected at most {_MOST_PAIRS} pairs of one class, got {n}: fewer "
                "queries say as much"
            )
        return cls(offsets(last - first), order[spread(first, last)], np.ones(n))


@dataclass(frozen=True)
class RelevantPairs:
    """Pairs of a query and an item of the gallery, sorted by query."""

    n_queries: int  # those without a relevant item among them
    query: Ints  # [n]
    row: Ints  # of the gallery, [n]
    gain: NDArray[np.float64]  # above 0, [n]
    # the pair counts as relevant, [n]; the item of any other is left out of the query's
    # results, as nobody knows where it stands, or the maps have seen it
    counted: Mask

    @cached_property
    def counted_pairs(self) -> tuple[Ints, Ints]:
        """Query and row of each counted pair."""
        return self.query[self.counted], self.row[self.counted]

    @property
    def offset(self) -> Ints:
        """Places where the counted pairs of each query begin."""
        return offsets(np.bincount(self.counted_pairs[0], minlength=self.n_queries))

    @property
    def answered(self) -> Ints:
        """Queries with a counted pair."""
        return np.flatnonzero(np.diff(self.offset) > 0)

    def without_others(self) -> "RelevantPairs":
        """The counted pairs alone: nothing is left out of any query's results."""
        of = self.counted
        return RelevantPairs(self.n_queries, self.query[of], self.row[of], self.gain[of], of[of])

    def by_row(self) -> tuple[Ints, Ints, Mask]:
        """Queries, rows and ``counted`` of all pairs, by row."""
        order = np.lexsort((self.query, self.row))
        return self.query[order], self.row[order], self.counted[order]


def request_qrels(
    request: UpgradeRequest, query_ids: Ids, gallery_ids: Ids
) -> tuple[Qrels, Criterion]:
    """Read what a request brings of relevance."""
    if request.labels is None:
        found = Qrels.of(request.qrels, query_ids, gallery_ids)
        return found, "agreement" if request.qrels is None else "qrels"
    mine, its = request.labels
    if isinstance(mine, str | Path) and isinstance(its, str | Path):
        return read_class_labels(mine, its, query_ids, gallery_ids), "labels"
    mine, its = as_ids(mine), as_ids(its)
    if (len(mine), len(its)) != (len(query_ids), len(gallery_ids)):
        raise BenchError(
            f"labels: expected {len(query_ids)} of queries and {len(gallery_ids)} of the "
            f"gallery, got {len(mine)} and {len(its)}"
        )
    return Qrels.of_classes(mine, its), "labels"


def read_class_labels(
    queries: str | Path, gallery: str | Path, query_ids: Ids, gallery_ids: Ids
) -> Qrels:
    """Read :meth:`Qrels.of_classes` from a file of labels for each side.

    A label for every vector: an npy file ``[n]`` of whole numbers or text, row by row, or a text
    file with tabs and the header ``id``, ``label``, in any order.

    Raises:
        BenchError: If a label is missing or doubled, or a file is damaged.
    """
    sides = (queries, query_ids), (gallery, gallery_ids)
    mine, its = (_labels(Path(path), ids) for path, ids in sides)
    return Qrels.of_classes(mine, its, (str(queries), str(gallery)))


def _labels(path: Path, ids: Ids) -> Ids:
    """A label for each id, whole numbers or text ``[n]``."""
    with located(str(path)):
        if path.suffix.lower() != ".npy":
            return read_labels(path, ids)
        with reading("npy"):
            labels = as_ids(read_flat(path, "labels"))
        if len(labels) != len(ids):
            raise BenchError(f"expected {len(ids)} labels, one a vector, got {len(labels)}")
        return labels


def _named(qrels: Mapping[Any, Any]) -> NamedQrels:
    """Judgements of a mapping; a BenchError without the name ``qrels`` if it is no such mapping."""
    gains: dict[tuple[str, str], float] = {}
    for query, items in qrels.items():
        if not isinstance(items, Mapping):
            raise BenchError(
                f"expected query -> item -> gain, got {cut(items)} for query {shown(query)}"
            )
        for item, gain in items.items():
            pair, number = (str(query), str(item)), _gain(query, item, gain)
            if gains.setdefault(pair, number) != number:  # 7 and "7" are one id
                raise BenchError(
                    f"expected one gain of item {pair[1]} for query {pair[0]}, got "
                    f"{gains[pair]:g} and {number:g}"
                )
    if not gains:
        raise BenchError("expected a relevant item of one of the queries, got none")
    names = [{name: i for i, name in enumerate(dict.fromkeys(side))} for side in zip(*gains)]  # noqa: B905
    queries, items = (np.array([names[k][pair[k]] for pair in gains], np.int64) for k in range(2))
    values = np.array([*gains.values()])
    return NamedQrels(queries, items, values, np.arange(1, len(values) + 1), *map(list, names))


def _gain(query: Any, item: Any, gain: Any) -> float:
    """A gain as a number; a BenchError if it is none, or not finite."""
    with suppress(OverflowError):
        if isinstance(gain, numbers.Real) and math.isfinite(number := float(gain)):
            return number
    raise BenchError(
        f"gain of item {shown(item)} for query {shown(query)}: expected a finite number, "
        f"got {cut(repr(gain))}"
    )


def _joined(found: NamedQrels, query_ids: Ids, gallery_ids: Ids) -> Qrels:
    """Judgements by rows."""
    query = _rows("query", found.query_names, query_ids)[found.queries]
    item = _rows("item", found.item_names, gallery_ids)[found.items]
    used = np.flatnonzero((query >= 0) & (item >= 0))
    used = used[np.lexsort((found.lines[used], item[used], query[used]))]
    double = np.zeros(len(used), bool)
    double[1:] = (np.diff(query[used]) == 0) & (np.diff(item[used]) == 0)
    _require_one_gain(found, used, double)
    kept = used[~double]
    relevant = kept[found.gains[kept] > 0]
    unused = Unused(
        repeated=int(double.sum()), unknown_queries=int((query < 0).sum()),
        unknown_items=int(((query >= 0) & (item < 0)).sum()),
        irrelevant=len(kept) - len(relevant),
    )  # fmt: skip
    if not len(relevant):
        raise BenchError(
            f"expected a relevant item of one of the queries, got none: {unused.irrelevant:,} "
            f"judgements say not relevant, {unused.unknown_queries:,} are of unknown queries, "
            f"{unused.unknown_items:,} of unknown items"
        )
    offset = offsets(np.bincount(query[relevant], minlength=len(query_ids)))
    from_one = (
        _is_from_one(found.query_names, len(query_ids)),
        _is_from_one(found.item_names, len(gallery_ids)),
    )
    return Qrels(offset, item[relevant], found.gains[relevant], unused, from_one)


def _is_from_one(names: list[str], n: int) -> bool:
    return str(n) in names and "0" not in names


def _rows(side: str, names: list[str], ids: Ids) -> Ints:
    rows = rows_of(names, ids)
    if (rows < 0).all():
        raise BenchError(
            f"{side}: expected ids of the vectors, {shown(str(ids[0]))} and the like, got none of "
            f"them but {shown(names[0])} and the like"
        )
    return rows


def _require_one_gain(found: NamedQrels, used: Ints, double: Mask) -> None:
    """Raise a BenchError if an item is judged twice for a query, with different gains."""
    at = np.flatnonzero(double)
    wrong = at[found.gains[used[at]] != found.gains[used[at - 1]]]
    if len(wrong):
        first, second = used[wrong[0] - 1], used[wrong[0]]
        item = found.item_names[found.items[second]]
        raise BenchError(
            f"line {found.lines[second]}: gain: expected {found.gains[first]:g} of item "
            f"{shown(item)}, as in line {found.lines[first]}, got {found.gains[second]:g}"
        )


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


def _like_the_first(sets: list[Ints]) -> Ints:
    """Number of the group of each set: half of its items and of its first one's are common.

    Groups begin with the sets of the fewest items. Chains of sets, each like the next one alone,
    are not one group: that would be all queries where answers are often asked for together.
    """
    from scipy.sparse import csr_matrix

    sizes = np.array([len(rows) for rows in sets])
    rows = np.unique(np.concatenate(sets), return_inverse=True)[1]
    group = np.arange(len(sets))
    if (np.bincount(rows).astype(np.float64) ** 2).sum() > _MOST_ALIKE:
        return group
    owner = np.repeat(np.arange(len(sets)), sizes)
    holds = csr_matrix((np.ones(len(rows)), (owner, rows)))
    common = (holds @ holds.T).tocsr()
    free = np.ones(len(sets), bool)
    for first in sorted(range(len(sets)), key=lambda at: (sizes[at], sets[at].tolist())):
        if free[first]:
            begin, end = common.indptr[first : first + 2]
            others, shared = common.indices[begin:end], common.data[begin:end]
            union = sizes[first] + sizes[others] - shared
            alike = others[free[others] & (shared >= ALIKE * union)]
            group[alike], free[alike] = first, False
    return group
