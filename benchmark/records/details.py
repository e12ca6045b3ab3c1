"""The details file: what a record's page and paired tests need, and a record is too small for.

It lies beside its record, ``seed-0.json`` and ``seed-0.details.gz``, and is at most 64 KiB: a
gzipped safetensors file (no pickle) whose metadata has one entry, ``details``, the JSON of
:class:`Header`. The record's field ``details`` holds its SHA-256; nothing here differs between two
runs of the same work. :mod:`benchmark.records.details_writer` writes it.

Values of queries that are 0 or 1 (hits) are kept exactly, a bit each. Others (average precision)
are kept in steps: rounded up or down at random with the right mean, by the same draw for the same
query in every record. So means are unbiased, equal values stay equal, and 1 stays 1.
Scores at a threshold that impostors decide also have their values in draws of identities.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter
from pydantic_core import from_json, to_json

from benchmark.config.files import plain_io_errors, read_bytes, write_whole
from benchmark.config.reading import Model, parse
from benchmark.errors import BenchError
from benchmark.records.limits import parse_json
from benchmark.records.record import Record

SCHEMA = 3
"""2 added the draws of scores at a threshold, 3 the nearest items of some queries; files of 1 and 2
are read."""
LIMIT = 64 * 1024
"""Bytes of a details file."""
_UNPACKED = 16 * LIMIT  # bytes; what unpacks to more is no details file of ours
_MOST_QUERIES = 10_000_000
_MOST_SETS = 20  # of queries: each is drawn anew
_GZIP = 16 + zlib.MAX_WBITS  # what zlib takes for gzip

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
    """What a details file holds; ``picture`` as in MixBCT appendix B.2, a class and its nearest."""

    results: Mapping[CaseMetric, QueryResults] = field(default_factory=dict)
    picture: Picture | None = None
    ordering: Ordering | None = None  # None without a priority
    nearest: Nearest | None = None  # None without retrieval
    left_out: tuple[str, ...] = ()  # in words, what would have made the file too large


class Column(Model):
    """Where the values of a case and metric lie."""

    case: str
    metric: str
    array: str
    queries: str
    """Name of the array with the identities of its queries."""
    levels: int = Field(ge=1, le=255)
    """Values are whole numbers up to this, times ``scale / levels``; with 1 they are packed bits,
    highest first."""
    scale: float = Field(ge=1, le=1e6)
    draws: str | None = None
    """Name of the array of the score in draws of identities: 0 to 255, from ``low`` to ``high``."""
    low: float = Field(0.0, ge=-1e6, le=1e6)
    high: float = Field(0.0, ge=-1e6, le=1e6)


class QuerySet(Model):
    """Queries of a task: the array of its name has the identity of each one that is kept."""

    n_queries: int = Field(le=_MOST_QUERIES)
    n: int = Field(ge=1)


class Header(Model):
    """The metadata of the file.

    The picture's arrays are ``label`` and ``xy`` ``[n, 4]`` (old, new), the ordering's ``order``
    ``[n, 2]`` (predicted, true); both are whole numbers of 0 to 65535 for 0 to 1. The nearest items
    are ``nearest`` and ``right`` ``[n_case, k, t]``, of the queries ``looked_at`` ``[k]``.
    """

    schema_version: int = Field(alias="schema")
    columns: tuple[Column, ...] = Field(alias="answers")
    queries: Mapping[str, QuerySet]
    case: str | None = None
    classes: tuple[str, ...] = ()
    tau: float | None = Field(None, ge=-1, le=1)
    n_items: int | None = Field(None, ge=0)
    nearest: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


_HEADER = TypeAdapter(Header)
_KINDS: Mapping[str, np.dtype[Any]] = {
    "U8": np.dtype("u1"), "U16": np.dtype("<u2"), "U32": np.dtype("<u4"),
}  # fmt: skip
"""Types of arrays, as safetensors calls them."""


def details_path(record: Path) -> Path:
    """``seed-0.json`` -> ``seed-0.details.gz``, beside it."""
    return record.with_name(f"{record.stem}.details.gz")


def kept_rows(n_queries: int, n: int) -> Ints:
    """Which queries are kept where not all are: with fewer, a part of those kept with more."""
    drawn = np.random.default_rng([0, n_queries]).permutation(n_queries)[:n]
    return np.sort(drawn).astype(np.int64)


def write_details(record: Path, source: Path) -> None:
    """Copy a details file beside its record, whole or not at all."""
    path = details_path(record)
    with plain_io_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, source.read_bytes())


def find_details(record: Record, path: Path, with_results: bool = True) -> Details | None:
    """The details of a record that was read from ``path``; ``None`` if it has none.

    Raises:
        BenchError: As :func:`read_details`, and if the file is not there.
    """
    if record.details is None:
        return None
    return unpack_details(details_path(path), check_digest(record, path), with_results)


def check_digest(record: Record, path: Path) -> bytes:
    """The bytes of the details file of a record that was read from ``path``; none without one.

    Raises:
        BenchError: If it is not there, cannot be read, is too large, or is of another record.
    """
    if record.details is None:
        return b""
    beside = details_path(path)
    if not beside.is_file():
        raise BenchError(f"{beside}: missing, though {path.name} has its hash")
    packed = read_bytes(beside, LIMIT)
    if f"sha256:{hashlib.sha256(packed).hexdigest()}" != record.details:
        raise BenchError(f"{beside}: of another record than the one beside it (hashes differ)")
    return packed


def read_details(path: Path, with_results: bool = True) -> Details:
    """Read and validate a details file.

    Raises:
        BenchError: If it is too large, damaged, of another schema, or inconsistent.
    """
    return unpack_details(path, read_bytes(path, LIMIT), with_results)


def unpack_details(path: Path, packed: bytes, with_results: bool = True) -> Details:
    """Validate the bytes of a details file, ``path`` in what is said of them.

    Without ``with_results`` the results by query, which are most of the work, are not looked at.

    Raises:
        BenchError: If they are damaged, of another schema, or inconsistent.
    """
    from safetensors import SafetensorError, deserialize

    raw = _unpacked(path, packed)
    try:
        arrays = dict(deserialize(raw))  # type: ignore[no-untyped-call]
        size = int.from_bytes(raw[:8], "little")
        text = from_json(raw[8 : 8 + size])["__metadata__"]["details"].encode()
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise BenchError(f"{path}: not a details file: {reason:.200}") from error
    value = parse_json(text, path)
    schema = value.get("schema") if isinstance(value, dict) else type(value).__name__
    if type(schema) is not int or not 1 <= schema <= SCHEMA:
        raise BenchError(f"{path}: schema: expected 1 to {SCHEMA}, got {schema!r}")
    # Of the very value that was looked at: the text may have a key twice.
    header = parse(_HEADER, to_json(value), str(path))
    reader = _Reader(path, arrays, header)
    results = dict(reader.results()) if with_results else {}
    drawn = reader.picture(), reader.ordering(), reader.nearest()
    return Details(results, *drawn, left_out=header.left_out)


def _unpacked(path: Path, packed: bytes) -> bytes:
    # One call instead of a file's many: a site unpacks thousands.
    unpacker = zlib.decompressobj(wbits=_GZIP)
    try:
        raw = unpacker.decompress(packed, _UNPACKED + 1)
    except zlib.error as error:
        raise BenchError(f"{path}: not gzip: {error}") from error
    if len(raw) > _UNPACKED:
        raise BenchError(f"{path}: unpacks to more than {_UNPACKED} bytes")
    if not unpacker.eof or unpacker.unused_data:
        wrong = "goes on behind its end" if unpacker.eof else "ends before its end"
        raise BenchError(f"{path}: not gzip: the file {wrong}")
    return raw


@dataclass(frozen=True)
class _Reader:
    path: Path
    arrays: Mapping[str, Mapping[str, Any]]  # of safetensors: dtype, shape and bytes of each
    header: Header

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

    def results(self) -> Iterator[tuple[CaseMetric, QueryResults]]:
        """Results by query of every case and metric."""
        if len(self.header.queries) > _MOST_SETS:
            raise BenchError(f"{self.path}: queries: expected at most {_MOST_SETS} sets")
        queries = {name: self.queries(name, each) for name, each in self.header.queries.items()}
        arrays = [column.array for column in self.header.columns]
        if len(set(arrays)) < len(arrays):  # else a small file could name one large array often
            raise BenchError(f"{self.path}: answers: an array comes twice")
        for column in self.header.columns:
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
            identity, rows = queries[column.queries]()
            yield (column.case, column.metric), QueryResults(
                levels.astype(np.float64) * step, identity, rows, about.n_queries,
                0.0 if bits else step, draws,
            )  # fmt: skip

    def queries(self, name: str, about: QuerySet) -> Callable[[], tuple[Ints, Ints]]:
        """Check a set of queries; gives identities and rows, which are made when first wanted."""
        n, n_queries = about.n, about.n_queries
        if n > n_queries:
            raise BenchError(f"{self.path}: {name}: expected at most {n_queries} queries")
        identity = self.array(name, np.uint32, (n,))

        @cache
        def made() -> tuple[Ints, Ints]:
            rows = np.arange(n) if n == n_queries else kept_rows(n_queries, n)
            return identity.astype(np.int64), rows

        return made

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
