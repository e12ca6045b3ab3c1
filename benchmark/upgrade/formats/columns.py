"""Ids and vectors as columns of Arrow's types, whatever file they come from."""

import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from benchmark.errors import BenchError, located
from benchmark.upgrade.formats.checks import (
    MOST_NAMES,
    another_column,
    cut,
    likely_ids,
    listed,
    reading,
    require_file,
)
from benchmark.upgrade.formats.ids import AT_ONCE, LONGEST
from benchmark.upgrade.formats.source import Shape, Source

ID, VECTOR = "id", "vector"
_SOUGHT = 64  # rows that are read at a time for one that has a vector
types = pa.types
Group = tuple[int, Callable[[int], Iterator[Any]]]
"""Rows that a file keeps together: how many, and what reads a column of them, the first row of all
files being given."""


@dataclass(frozen=True)
class Layout:
    """Rows and columns of a file, as its metadata say."""

    rows: int
    dim: int  # numbers of a vector
    dtype: np.dtype[Any]
    places: tuple[str, ...]  # columns that may hold ids

    def __str__(self) -> str:
        """The layout that the files of a folder must have in common."""
        with_ids = "with" if ID in self.places else "without"
        return f"{self.dim} numbers of {self.dtype}, {with_ids} ids"


class ColumnsSource(Source):
    """A column of vectors, ``vector`` or the only one, and one of ids, of a file or several.

    Files of a folder follow each other by name; hidden ones, and those with other ``endings``, are
    passed over.
    """

    has_columns = True
    endings: ClassVar[tuple[str, ...]]

    @abstractmethod
    def _about(self, path: Path) -> tuple[int, Any]:
        """Rows of a file, and its schema."""

    @abstractmethod
    def _groups(self, path: Path, column: str, size: int) -> Iterator[Group]:
        """The groups of a file in order; a column is read at most ``size`` rows at a time."""

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        found = {path: self._look(path) for path in _files(self.path, self.endings, self.format)}
        # Engines that write folders leave files without a row, which tell no dimension.
        filled = {path: each for path, each in found.items() if each.rows} or found
        first_path, first = next(iter(filled.items()))
        for path, each in filled.items():
            if str(each) != str(first):
                raise BenchError(
                    f"{path.name}: expected {first} as in {first_path.name}, got {each}"
                )
        self._files = list(filled)
        shared = set.intersection(*(set(each.places) for each in filled.values()))
        self._places = [name for name in first.places if name in shared]
        return (sum(each.rows for each in filled.values()), first.dim), first.dtype

    def _look(self, path: Path) -> Layout:
        """Look at a file, and set ``part`` where that is open."""
        with self._named(path):
            rows, schema = self._about(path)
            self.part = _vector_column(schema, self.part)
            dtype, dim = _vector_type(schema.field(self.part).type)
            dim = self._first_length(path) if dim is None else dim
        return Layout(rows, dim, dtype, _id_columns(schema))

    def _first_length(self, path: Path) -> int:
        """Numbers of the first vector that is not null; 0 if all are."""
        groups = self._groups(path, self.part, _SOUGHT)
        for part in (part for rows, read in groups if rows for part in read(0)):
            some = pc.list_value_length(_plain(part)).drop_null()
            if len(some):
                return int(some[0].as_py())
        return 0

    @contextmanager
    def _named(self, path: Path) -> Iterator[None]:
        """Put the name of a file before errors, if it is one of a folder."""
        with located(path.name if path != self.path else ""), reading(self.format):
            yield

    def _parts(self, column: str, size: int, skipped: int = 0) -> Iterator[Any]:
        """A column of all files in order, but for the first rows, at most ``size`` at a time."""
        before = 0
        for path in self._files:
            with self._named(path):
                for rows, read in self._groups(path, column, size):
                    start, before = before, before + rows
                    if before <= skipped:
                        continue
                    for part in read(start):
                        rest = part[max(0, skipped - start) :]
                        start += len(part)
                        if len(rest):
                            yield rest

    def _id_places(self) -> tuple[str | None, list[str]]:
        others = [name for name in self._places if name not in (ID, self.part)]
        return (ID if ID in self._places and self.part != ID else None), others

    def _stored_ids(self, place: str) -> Iterator[Any]:
        for part in self._parts(place, AT_ONCE):
            yield _ids(part, place)

    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        start = first
        for stored in self._parts(self.part, size, first):
            part = _plain(stored)
            lengths = pc.fill_null(pc.list_value_length(part), -1)
            fits = pc.equal(lengths, self.dim).to_numpy(zero_copy_only=False)
            if not fits.all():
                at = int(np.argmin(fits))
                got = "null" if lengths[at].as_py() < 0 else lengths[at]
                raise BenchError(
                    f"expected {self.dim} numbers a row, got {got} in row {start + at}"
                )
            numbers = part.flatten()
            if numbers.null_count:
                at = int(np.argmax(numbers.is_null().to_numpy(zero_copy_only=False))) // self.dim
                raise BenchError(f"expected numbers, got null in row {start + at}")
            start += len(part)
            yield numbers.to_numpy(zero_copy_only=False).reshape(-1, self.dim)


def _files(path: Path, endings: tuple[str, ...], what: str) -> list[Path]:
    """The file, or those of a folder; a BenchError for none, or one that is no regular file."""
    if not path.is_dir():
        require_file(path)
        return [path]
    every = sorted(p for p in path.iterdir() if not p.name.startswith((".", "_")))
    found = [p for p in every if p.suffix.lower() in endings]
    for inner in (p for p in every if found and p.is_dir() and p not in found):
        if any(p.suffix.lower() in endings for p in inner.iterdir()):
            raise BenchError(f"expected one folder of {what} files, got more in {inner.name}")
    if not 1 <= len(found) <= MOST_NAMES:
        there = listed(sorted(p.name for p in path.iterdir())) if not found else str(len(found))
        raise BenchError(f"expected 1 to {MOST_NAMES} {what} files in the folder, got {there}")
    for file in found:
        with located(file.name):
            require_file(file)
    return found


def _vector_column(schema: Any, wanted: str) -> str:
    """The column of vectors: by a name, ``vector``, or the only one that has lists of numbers."""
    name = wanted or VECTOR
    if schema.names.count(name) == 1:
        return name
    lists = [field.name for field in schema if _is_numbers(_storage(field.type))]
    if not wanted and len(lists) == 1 and schema.names.count(lists[0]) == 1:
        return str(lists[0])
    raise BenchError(
        f"expected a column '{cut(name)}', there are: {listed(schema.names)}; "
        + another_column(
            () if lists else schema.names,
            "another one is named as FILE:COLUMN, or by --vector-column",
        )
    )


def _vector_type(kind: Any) -> tuple[np.dtype[Any], int | None]:
    """The type of the numbers of a column of lists, and how many there are, if it says so."""
    stored = _storage(kind)
    if _is(stored, _BYTES):
        raise BenchError("expected lists of numbers, got binary vectors")
    if not _is_numbers(stored):
        raise BenchError(f"expected lists of numbers, got {cut(kind)}")
    dim = stored.list_size if types.is_fixed_size_list(stored) else None
    return np.dtype(stored.value_type.to_pandas_dtype()), dim


def _id_columns(schema: Any) -> tuple[str, ...]:
    """Columns that may hold ids, by their type and name."""
    return tuple(
        field.name
        for field in schema
        if schema.names.count(field.name) == 1 and _may_be_ids(field.type, field.name)
    )


_LISTS = (
    types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view,
    types.is_large_list_view,
)  # fmt: skip
_BYTES = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
_WORDS = (*_BYTES, types.is_string, types.is_large_string, types.is_string_view)


def _is(kind: Any, checks: tuple[Callable[[Any], bool], ...]) -> bool:
    return any(check(kind) for check in checks)


def _is_numbers(stored: Any) -> bool:
    return _is(stored, _LISTS) and types.is_primitive(stored.value_type)


def _may_be_ids(kind: Any, name: str) -> bool:
    stored = _storage(kind)
    if types.is_dictionary(stored):
        stored = stored.value_type
    if types.is_floating(stored):
        return name == ID or likely_ids(name)
    is_whole = types.is_integer(stored) or (types.is_decimal(stored) and stored.scale == 0)
    return name == ID or is_whole or _is(stored, _WORDS)


def _storage(kind: Any) -> Any:
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return kind


def _plain(part: Any) -> Any:
    """A column without what stands for another type: extensions, dictionaries, views."""
    while isinstance(part, pa.ExtensionArray):
        part = part.storage
    kind = part.type
    if types.is_dictionary(kind):
        return _plain(part.dictionary_decode())
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return part.cast(pa.large_string() if types.is_string_view(kind) else pa.large_binary())
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        # Not a cast, which loses the last offset of pyarrow's arrays.
        lengths = pc.fill_null(pc.list_value_length(part), 0).cast(pa.int64())
        ends = np.cumsum(lengths.to_numpy(zero_copy_only=False))
        offsets = pa.array(np.concatenate([[0], ends]))
        return pa.LargeListArray.from_arrays(offsets, part.flatten(), mask=part.is_null())
    return part


def _ids(stored: Any, name: str) -> Any:
    """Ids of a part of a column, as :func:`benchmark.upgrade.formats.ids.as_ids` takes them."""
    part, is_uuid = _plain(stored), getattr(stored.type, "extension_name", "") == "arrow.uuid"
    kind = part.type
    if part.null_count:
        raise BenchError(f"{name}: expected an id in each row, got null")
    if types.is_decimal(kind) and kind.scale == 0:
        try:
            part, kind = part.cast(pa.int64()), pa.int64()
        except pa.ArrowInvalid as error:
            raise BenchError(f"{name}: expected whole numbers below 2^63") from error
    if types.is_integer(kind) or types.is_floating(kind):
        return part.to_numpy(zero_copy_only=False)
    if not _is(kind, _WORDS):
        raise BenchError(f"{name}: expected whole numbers or text, got {cut(kind)}")
    if pc.max(pc.binary_length(part)).as_py() > 4 * LONGEST:
        raise BenchError(f"{name}: expected at most {LONGEST} letters")
    values = part.to_pylist()
    if is_uuid:
        values = [str(uuid.UUID(bytes=value)) for value in values]
    return values if isinstance(values[0], bytes) else np.array(values, StringDType())
