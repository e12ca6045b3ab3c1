"""The details file: what a record's page and paired tests need, and a record is too small for.

It lies beside its record, ``seed-0.json`` and ``seed-0.details.xz``, and is at most 64 KiB: a
safetensors file in xz (no pickle) whose metadata has ``details``, the JSON of
:class:`DetailsHeader`, and ``record``, the curves and stage times that the record's file leaves
out. The record's field ``details`` holds its SHA-256. :mod:`benchmark.records.slim` writes it.

An evaluation gives a larger file of the same kind, ``seed-0.queries.gz``, with the results of all
metrics (the record's ``queries``). It is read instead where it lies beside the record; the records
of ``results/`` go without it.

Values of queries that are 0 or 1 (hits) are kept exactly, a bit each. Others (average precision)
are kept in steps: rounded up or down at random with the right mean, by the same draw for the same
query in every record. So means are unbiased, equal values stay equal, and 1 stays 1.
Scores at a threshold that impostors decide also have their values in draws of identities.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter
from pydantic_core import to_json

from benchmark.config.files import read_bytes
from benchmark.config.reading import Model, parse
from benchmark.errors import BenchError
from benchmark.records.layout import changed_at
from benchmark.records.limits import MOST_PACKED, metadata, metadata_of, parse_json, unpacked

SCHEMA = 4
"""Version of the header, the only one that is read but for 3, which evaluations in stores have: 4
adds what a board's base keeps."""
_READ = (3, SCHEMA)
_MOST_QUERIES = 10_000_000
_MOST_SETS = 20  # of queries: each is drawn anew

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CaseMetric = tuple[str, str]


@dataclass(frozen=True)
class QueryResults:
    """Results by query of one case and metric; queries have the same order for every method."""

    values: Floats  # [n], at least 0
    identity: Ints  # of each query, [n]; paired tests draw whole identities
    rows: Ints  # which of the n_queries queries each is, ascending, [n]
    n_queries: int
    step: float = 0.0  # how far apart kept values are; 0 where they are exact
    # the score in each draw of identities, the threshold found anew, [k]; the same draws for every
    # method; None of other metrics, and where too few impostors decide
    draws: Floats | None = None


@dataclass(frozen=True)
class Picture:
    """t-SNE of items of a few classes, each item twice: as stored before the update, and new.

    ``case`` is the cross-test whose vectors are shown: stored ones after the method's conversion,
    new ones as its queries.
    """

    case: str
    classes: tuple[str, ...]  # the one chosen, then its nearest, nearest first
    label: Ints  # index into the classes of each item, [n]
    old: Floats  # where the stored vector of each item lies, [n, 2], in [0, 1]
    new: Floats  # where its new vector lies, [n, 2], in [0, 1], in the same plane


@dataclass(frozen=True)
class Ordering:
    """A method's priority against the true order, for some of the stored items.

    The true order is by the distance of an item's stored vector to its new one, which only an
    oracle knows.
    """

    predicted: Floats  # share of all items that come before each by the method's priority, [n]
    true: Floats  # share that comes before by the true order, [n]
    tau: float | None  # Kendall's, of the two orders over all items
    n_items: int  # all of them


@dataclass(frozen=True)
class Nearest:
    """The nearest gallery items of some queries, the same queries for every method.

    Items are rows of the evaluation set. ``cases`` are old/old, the cross-test and new/new, as far
    as there are such.
    """

    cases: tuple[str, ...]
    queries: Ints  # [k], ascending
    items: Ints  # [n_case, k, t], nearest first
    right: NDArray[np.bool_]  # whether each is of the query's class, [n_case, k, t]


@dataclass(frozen=True)
class Details:
    """Content of a details file; ``picture`` as in MixBCT appendix B.2, a class and its nearest."""

    results: Mapping[CaseMetric, QueryResults] = field(default_factory=dict)
    picture: Picture | None = None
    ordering: Ordering | None = None  # None without a priority
    nearest: Nearest | None = None  # None without retrieval
    left_out: tuple[str, ...] = ()  # in words, what would have made the file too large


class Column(Model):
    """Place of the values of a case and metric."""

    case: str
    metric: str
    array: str | None = None
    """Null where the base has the very same values."""
    queries: str = ""
    """Name of the set of its queries."""
    levels: int = Field(1, ge=1, le=255)
    """Values are whole numbers up to this, times ``scale / levels``; with 1 they are packed bits,
    highest first."""
    scale: float = Field(1.0, ge=1, le=1e6)
    draws: str | None = None
    """Name of the array of the score in draws of identities: 0 to 255, from ``low`` to ``high``."""
    low: float = Field(0.0, ge=-1e6, le=1e6)
    high: float = Field(0.0, ge=-1e6, le=1e6)


class QuerySet(Model):
    """Queries of a task: the array of its name has the identity of each one that is kept."""

    n_queries: int = Field(le=_MOST_QUERIES)
    n: int = Field(ge=1)
    base: str | None = None
    """Name of the set in the base that has the same identities; null where the array is here."""


class DetailsHeader(Model):
    """The metadata of the file.

    The picture's arrays are ``label`` and ``xy`` ``[n, 4]`` (old, new), the ordering's ``order``
    ``[n, 2]`` (predicted, true); both are whole numbers of 0 to 65535 for 0 to 1. The nearest items
    are ``nearest`` and ``right`` ``[n_case, k, t]``, of the queries ``looked_at`` ``[k]``.
    """

    schema_version: int = Field(alias="schema")
    base: str | None = Field(None, pattern="^[0-9a-f]{16}$")
    """Name of the file ``base-<hash>.details.xz`` of the board, whose hash it begins."""
    columns: tuple[Column, ...] = Field(alias="answers")
    queries: Mapping[str, QuerySet]
    case: str | None = None
    classes: tuple[str, ...] = ()
    tau: float | None = Field(None, ge=-1, le=1)
    n_items: int | None = Field(None, ge=0)
    nearest: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


_HEADER = TypeAdapter(DetailsHeader)
_KINDS: Mapping[str, np.dtype[Any]] = {
    "U8": np.dtype("u1"), "U16": np.dtype("<u2"), "U32": np.dtype("<u4"),
}  # fmt: skip
"""Types of arrays, as safetensors calls them."""


def kept_rows(n_queries: int, n: int) -> Ints:
    """Rows of the queries that are kept, if not all are: of fewer, a part of those of more."""
    drawn = np.random.default_rng([0, n_queries]).permutation(n_queries)[:n]
    return np.sort(drawn).astype(np.int64)


def main_cases(names: Sequence[str]) -> tuple[str, ...]:
    """Cases of the first and the last of some generations: cross-test, self-tests, converted."""
    first, last, old = names[0], names[-1], names[0] + "'" * (len(names) - 1)
    return (f"{last}/{first}", f"{last}/{last}", f"{first}/{first}", f"{old}/{old}")


def details_base_path(record: Path, name: str) -> Path:
    """Place of the base of a record's details: in the folder of its board."""
    return record.parent.parent / f"base-{name}.details.xz"


def base_digest(packed: bytes) -> str:
    """Name of a base by its content: 16 hexadecimal digits."""
    return hashlib.sha256(packed).hexdigest()[:16]


def unpack_details(path: Path, packed: bytes, with_results: bool = True) -> Details:
    """Validate the bytes of a details file; BenchError if damaged or of another schema.

    Without ``with_results`` the results by query, which are most of the work, are not looked at.
    """
    header, arrays = read_arrays(path, packed)
    base = None
    if with_results and header.base is not None:
        base = read_base(details_base_path(path, header.base))
    reader = _Reader(path, arrays, header, base)
    results = reader.found if with_results else {}
    drawn = reader.picture(), reader.ordering(), reader.nearest()
    return Details(results, *drawn, left_out=header.left_out)


def read_arrays(path: Path, packed: bytes) -> tuple[DetailsHeader, Mapping[str, Mapping[str, Any]]]:
    """Header of a details file, and its arrays as safetensors gives them; BenchError if damaged."""
    from safetensors import SafetensorError, deserialize

    raw = unpacked(path, packed)
    header = _header(path, metadata_of(path, raw))
    try:
        return header, dict(deserialize(raw))  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise BenchError(f"{path}: not a details file: {error!s:.200}") from error


def named_base(path: Path, packed: bytes) -> str | None:
    """Name of the base of a details file, if any; BenchError if damaged, or of another schema."""
    return _header(path, metadata(path, packed)).base


def _header(path: Path, found: Mapping[str, str]) -> DetailsHeader:
    text = found.get("details")
    if text is None:
        raise BenchError(f"{path}: not a details file: without details")
    value = parse_json(text.encode(), path)
    schema = value.get("schema") if isinstance(value, dict) else type(value).__name__
    if type(schema) is not int or schema not in _READ:
        raise BenchError(f"{path}: schema: expected {SCHEMA}, got {schema!r}")
    # Of the very value that was looked at: the text may have a key twice.
    return parse(_HEADER, to_json(value), str(path))


def read_base(path: Path) -> "_Reader":
    """The base of details files; BenchError if missing, damaged, or not what its name says."""
    return _base(path, changed_at(path))


@lru_cache(maxsize=16)
def _base(path: Path, _changed: int) -> "_Reader":
    packed = read_bytes(path, MOST_PACKED)
    if path.name != details_base_path(path, base_digest(packed)).name:
        raise BenchError(f"{path}: edited since it was written: its name does not fit")
    header, arrays = read_arrays(path, packed)
    if header.base is not None:
        raise BenchError(f"{path}: base: expected none of a base")
    return _Reader(path, arrays, header)


@dataclass(frozen=True)
class _Reader:
    path: Path
    arrays: Mapping[str, Mapping[str, Any]]  # of safetensors: dtype, shape and bytes of each
    header: DetailsHeader
    base: "_Reader | None" = None

    def array(self, name: str, dtype: type, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """An array of the file, checked; ``None`` in its shape is any length."""
        stored = self.arrays.get(name)
        if stored is None:
            raise BenchError(f"{self.path}: missing array '{name}'")
        kind = _KINDS.get(stored["dtype"])
        if kind is None:
            raise BenchError(
                f"{self.path}: {name}: expected {np.dtype(dtype)}, got {stored['dtype']}"
            )
        array: NDArray[Any] = np.frombuffer(stored["data"], kind).reshape(stored["shape"])
        fits = len(array.shape) == len(shape) and all(
            expected in (None, n) for expected, n in zip(shape, array.shape, strict=True)
        )
        if array.dtype != dtype or not fits:
            raise BenchError(
                f"{self.path}: {name}: expected {np.dtype(dtype)} {list(shape)}, got "
                f"{array.dtype} {list(array.shape)}"
            )
        return array

    @cached_property
    def found(self) -> dict[CaseMetric, QueryResults]:
        """Results by query of every case and metric."""
        results: dict[CaseMetric, QueryResults] = {}
        if len(self.header.queries) > _MOST_SETS:
            raise BenchError(f"{self.path}: queries: expected at most {_MOST_SETS} sets")
        queries = {name: self.queries(name, each) for name, each in self.header.queries.items()}
        arrays = [column.array for column in self.header.columns if column.array is not None]
        if len(set(arrays)) < len(arrays):  # else a small file could name one large array often
            raise BenchError(f"{self.path}: answers: an array comes twice")
        for column in self.header.columns:
            if column.array is None:
                results[column.case, column.metric] = self.of_base(column)
                continue
            about = self.header.queries.get(column.queries)
            if about is None:
                raise BenchError(f"{self.path}: queries: no '{column.queries}'")
            n, bits = about.n, column.levels == 1
            levels = self.array(column.array, np.uint8, ((n + 7) // 8 if bits else n,))
            if not bits and int(levels.max()) > column.levels:
                raise BenchError(f"{self.path}: {column.array}: value above its scale")
            draws = self.draws(column)
            step = column.scale / column.levels
            levels = np.unpackbits(levels, count=n) if bits else levels
            values, exact = levels.astype(np.float64) * step, 0.0 if bits else step
            results[column.case, column.metric] = QueryResults(
                values, *queries[column.queries], about.n_queries, exact, draws
            )
        return results

    def of_base(self, column: Column) -> QueryResults:
        """Results that the base has the same."""
        found = self.base and self.base.found.get((column.case, column.metric))
        if not found:
            raise BenchError(f"{self.path}: base: no {column.case} {column.metric} in it")
        return found

    def queries(self, name: str, about: QuerySet) -> tuple[Ints, Ints]:
        """Identities and rows of a set of queries."""
        n, n_queries = about.n, about.n_queries
        if n > n_queries:
            raise BenchError(f"{self.path}: {name}: expected at most {n_queries} queries")
        holder = self if about.base is None else self.base
        if holder is None:
            raise BenchError(f"{self.path}: {name}: of a base, and none is named")
        identity = holder.array(about.base or name, np.uint32, (n,))
        rows = np.arange(n) if n == n_queries else kept_rows(n_queries, n)
        return identity.astype(np.int64), rows

    def draws(self, column: Column) -> Floats | None:
        """The score of a column in draws of identities."""
        if column.draws is None:
            return None
        steps = self.array(column.draws, np.uint8, (None,)).astype(np.float64)
        if not len(steps) or column.low > column.high:
            raise BenchError(f"{self.path}: {column.draws}: expected draws from low to high")
        return column.low + steps * ((column.high - column.low) / 255)

    def picture(self) -> Picture | None:
        if self.header.case is None:
            return None
        xy = self.array("xy", np.uint16, (None, 4)) / 65535
        label = self.array("label", np.uint8, (len(xy),)).astype(np.int64)
        if (label >= len(self.header.classes)).any():
            raise BenchError(f"{self.path}: label: expected below {len(self.header.classes)}")
        return Picture(self.header.case, self.header.classes, label, xy[:, :2], xy[:, 2:])

    def ordering(self) -> Ordering | None:
        if self.header.n_items is None:
            return None
        order = self.array("order", np.uint16, (None, 2)) / 65535
        return Ordering(order[:, 0], order[:, 1], self.header.tau, self.header.n_items)

    def nearest(self) -> Nearest | None:
        cases = self.header.nearest
        if not cases:
            return None
        queries = self.array("looked_at", np.uint32, (None,)).astype(np.int64)
        items = self.array("nearest", np.uint32, (len(cases), len(queries), None))
        right = self.array("right", np.uint8, items.shape)
        if right.max(initial=0) > 1:
            raise BenchError(f"{self.path}: right: expected 0 or 1, got {right.max()}")
        return Nearest(cases, queries, items.astype(np.int64), right > 0)
