"""Vectors as columns of parquet files, or of a folder of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from benchmark.errors import BenchError, located
from benchmark.upgrade.formats.checks import MOST_NAMES, cut, listed, reading, require_file
from benchmark.upgrade.formats.ids import LONGEST
from benchmark.upgrade.formats.sink import Sink
from benchmark.upgrade.formats.source import Source, Vectors

ENDINGS = (".parquet", ".pq")
_ID, _VECTOR = "id", "vector"
_BUFFER = 2**20
_AT_ONCE = 2**23
"""Bytes of a column of a row group that is read at once."""
_MOST_NAME = 2**24
"""Bytes of a text in a file's metadata."""
_GROUP = 2**24
"""Bytes of vectors in a row group, which is written at once."""
_IDS = 2**16
"""Rows whose ids are read at a time."""


@dataclass(frozen=True)
class _Found:
    """What the metadata of a file says."""

    rows: int
    dim: int
    dtype: np.dtype[Any]
    has_ids: bool

    @property
    def layout(self) -> str:
        """What the files of a folder must have in common."""
        return f"{self.dim} numbers of {self.dtype}, {'with' if self.has_ids else 'without'} ids"


class ParquetSource(Source):
    """Columns ``id`` (whole numbers or text; may be missing) and ``vector`` (lists of one length).

    Files of a folder follow each other by name; hidden ones, and those with another ending, are
    passed over.
    """

    format = "parquet"

    def _open(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        self.part = self.part or _VECTOR
        self._files = _files(self.path)
        self._buffers: dict[Path, int] = {}
        found = {path: self._look(path) for path in self._files}
        # Engines that write folders leave files without a row, which tell no dimension.
        filled = {path: each for path, each in found.items() if each.rows} or found
        first_path, first = next(iter(filled.items()))
        for path, each in filled.items():
            if each.layout != first.layout:
                raise BenchError(
                    f"{path.name}: expected {first.layout} as in {first_path.name}, "
                    f"got {each.layout}"
                )
        self._files, self._has_ids = list(filled), first.has_ids
        return (sum(each.rows for each in filled.values()), first.dim), first.dtype

    def _look(self, path: Path) -> "_Found":
        with self._opened(path) as file:
            schema = file.schema_arrow
            if schema.names.count(self.part) != 1:
                raise BenchError(
                    f"expected a column '{cut(self.part)}', there are: {listed(schema.names)}; "
                    "another one is named as FILE:COLUMN"
                )
            kind = schema.field(self.part).type
            dtype = _numbers(kind)
            if pa.types.is_fixed_size_list(kind):
                dim = kind.list_size
            else:
                first = next(_column(file, self.part, 1), None)
                dim = 0 if first is None else int(pc.list_value_length(first)[0].as_py() or 0)
            return _Found(file.metadata.num_rows, dim, dtype, _ID in schema.names)

    @contextmanager
    def _opened(self, path: Path) -> Iterator[Any]:
        """Open a file; errors name it if it is one of a folder."""
        with located(path.name if path != self.path else ""), reading(self.format):
            if path not in self._buffers:
                with _file(path, 0) as file:
                    self._buffers[path] = _buffer(file.metadata, {self.part, _ID}, path)
            with _file(path, self._buffers[path]) as file:
                yield file

    def _stored_ids(self) -> Any:
        if not self._has_ids:
            return None
        return np.concatenate([_ids(part) for part in self._parts(_ID, _IDS)])

    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        start = first
        for part in self._parts(self.part, size, first):
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

    def _parts(self, column: str, size: int, skipped: int = 0) -> Iterator[Any]:
        for path in self._files:
            with self._opened(path) as file:
                if skipped >= file.metadata.num_rows:
                    skipped -= file.metadata.num_rows
                    continue
                yield from _column(file, column, size, skipped)
                skipped = 0


class ParquetSink(Sink):
    """Columns ``id``, where there are ids, and ``vector``, lists of a fixed size."""

    def _begin(self, dim: int) -> None:
        number = pa.float32() if self.dtype.itemsize == 4 else pa.float16()
        fields = []
        if self.ids is not None:
            kind = pa.int64() if self.ids.dtype.kind == "i" else pa.string()
            fields.append(pa.field(_ID, kind, nullable=False))
        item = pa.field("element", number, nullable=False)
        fields.append(pa.field(_VECTOR, pa.list_(item, dim), nullable=False))
        self._schema = pa.schema(fields)
        file = self._stack.enter_context(self.part.open("wb"))
        # Vectors look random: neither compression nor a dictionary makes them smaller.
        writer = pq.ParquetWriter(file, self._schema, compression="none", use_dictionary=False)
        self._writer = self._stack.enter_context(writer)
        self._rows: list[Vectors] = []
        self._group = max(1, _GROUP // (dim * self.dtype.itemsize))

    def _append(self, vectors: Vectors) -> None:
        self._rows.append(vectors)
        stop = self.written + len(vectors)
        waiting = sum(map(len, self._rows))
        if waiting >= self._group or stop == self.rows:
            self._flush(stop - waiting, stop)

    def _flush(self, start: int, stop: int) -> None:
        flat = pa.array(np.concatenate(self._rows).reshape(-1))
        self._rows.clear()
        kind = self._schema.field(_VECTOR).type
        columns = [pa.FixedSizeListArray.from_arrays(flat, type=kind)]
        if self.ids is not None:
            ids = self.ids[start:stop]
            columns.insert(0, pa.array(ids if ids.dtype.kind == "i" else ids.tolist()))
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        require_file(path)
        return [path]
    files = sorted(
        p for p in path.iterdir() if p.suffix in ENDINGS and not p.name.startswith((".", "_"))
    )
    if not 1 <= len(files) <= MOST_NAMES:
        there = listed(sorted(p.name for p in path.iterdir())) if not files else str(len(files))
        raise BenchError(f"expected 1 to {MOST_NAMES} parquet files in the folder, got {there}")
    for file in files:
        with located(file.name):
            require_file(file)
    return files


def _file(path: Path, buffer: int) -> Any:
    return pq.ParquetFile(
        path, buffer_size=buffer, pre_buffer=False, thrift_string_size_limit=_MOST_NAME
    )


def _buffer(metadata: Any, columns: set[str], path: Path) -> int:
    """Bytes of the buffer through which a file is read, 0 for whole row groups.

    With a buffer memory does not grow with a row group, but a page is believed that claims to be
    of gigabytes. Without, a page is looked for in what was read: small files cannot claim much.
    """
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    wanted = [i for i, each in enumerate(paths) if each.partition(".")[0] in columns]
    size, largest = path.stat().st_size, 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        largest = max([largest, *(group.column(i).total_compressed_size for i in wanted)])
    if largest > size:
        raise BenchError(f"a column claims {largest} bytes, the file has {size}")
    return _BUFFER if largest > _AT_ONCE else 0


def _column(file: Any, column: str, size: int, skipped: int = 0) -> Iterator[Any]:
    """A column's rows in order, but for the first ones."""
    groups = list(range(file.metadata.num_row_groups))
    while skipped and skipped >= file.metadata.row_group(groups[0]).num_rows:
        skipped -= file.metadata.row_group(groups.pop(0)).num_rows
    for batch in file.iter_batches(size, row_groups=groups, columns=[column], use_threads=False):
        rows = batch.column(0)[skipped:]
        skipped = max(0, skipped - batch.num_rows)
        if len(rows):
            yield rows


def _numbers(kind: Any) -> np.dtype[Any]:
    """The type of the numbers of a column of lists; BenchError if it is none."""
    types = pa.types
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        raise BenchError("expected lists of numbers, got binary vectors")
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        raise BenchError(f"expected lists of numbers, got {cut(kind)}")
    if not types.is_primitive(kind.value_type):
        raise BenchError(f"expected lists of numbers, got {cut(kind)}")
    return np.dtype(kind.value_type.to_pandas_dtype())


def _ids(part: Any) -> NDArray[Any]:
    """Ids of a part of a column."""
    types = pa.types
    if types.is_dictionary(part.type):
        part = part.dictionary_decode()
    if part.null_count:
        raise BenchError(f"{_ID}: expected an id in each row, got null")
    if types.is_integer(part.type):
        return part.to_numpy(zero_copy_only=False)
    if types.is_string(part.type) or types.is_large_string(part.type):
        if pc.max(pc.binary_length(part)).as_py() > 4 * LONGEST:
            raise BenchError(f"{_ID}: expected at most {LONGEST} letters")
        return np.array(part.to_pylist(), dtype=StringDType())
    raise BenchError(f"{_ID}: expected whole numbers or text, got {cut(part.type)}")
