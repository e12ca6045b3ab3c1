"""Vectors as columns of parquet files, or of a folder of them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmark.errors import BenchError, located
from benchmark.upgrade.formats.checks import reading
from benchmark.upgrade.formats.columns import (
    ID,
    VECTOR,
    ColumnsSource,
    Found,
    dim_of,
    id_columns,
    vector_column,
    vector_type,
)
from benchmark.upgrade.formats.sink import Sink
from benchmark.upgrade.formats.source import Vectors

ENDINGS = (".parquet", ".pq")
_BUFFER = 2**20
_AT_ONCE = 2**23
"""Bytes of a column of a row group that is read at once."""
_MOST_NAME = 2**24
"""Bytes of a text in a file's metadata."""
_GROUP = 2**24
"""Bytes of vectors in a row group, which is written at once."""
_RAGGED = re.compile(r"all lists to be of size=(\d+) but index (\d+) had size=(\d+)")
_GROUP_ROWS = 2**15
"""Rows of it at most: their ids may be long."""


class ParquetSource(ColumnsSource):
    """Columns of a parquet file, or of a folder of them."""

    format = "parquet"

    def _endings(self) -> tuple[str, ...]:
        return ENDINGS

    def _look(self, path: Path) -> Found:
        with self._opened(path, "") as file:
            schema = file.schema_arrow
            rows, places = file.metadata.num_rows, id_columns(schema)
            self.part = vector_column(schema, self.part)
            dtype, dim = vector_type(schema.field(self.part).type)
        if dim is None:
            with self._opened(path, self.part) as file:
                first = next(_column(file, self.part, 1), None)
                dim = 0 if first is None else dim_of(first)
        return Found(rows, dim, dtype, places)

    @contextmanager
    def _opened(self, path: Path, column: str) -> Iterator[Any]:
        """Open a file to read a column; errors name it if it is one of a folder."""
        with located(path.name if path != self.path else ""), reading(self.format):
            with _file(path, 0) as file:
                buffer = _buffer(file.metadata, column, path)
                if not buffer:
                    yield file
                    return
            with _file(path, buffer) as file:
                yield file

    def _parts(self, column: str, size: int, skipped: int = 0) -> Iterator[Any]:
        before = 0
        for path in self._files:
            with self._opened(path, column) as file:
                rows = file.metadata.num_rows
                if skipped < rows:
                    yield from _column(file, column, size, skipped, before)
                skipped, before = max(0, skipped - rows), before + rows


class ParquetSink(Sink):
    """Columns ``id``, where there are ids, and ``vector``, lists of a fixed size."""

    def _begin(self, dim: int) -> None:
        number = pa.float32() if self.dtype.itemsize == 4 else pa.float16()
        fields = []
        if self.ids is not None:
            kind = pa.int64() if self.ids.dtype.kind == "i" else pa.string()
            fields.append(pa.field(ID, kind, nullable=False))
        item = pa.field("element", number, nullable=False)
        fields.append(pa.field(VECTOR, pa.list_(item, dim), nullable=False))
        self._schema = pa.schema(fields)
        file = self._stack.enter_context(self.part.open("wb"))
        # Vectors look random: neither compression nor a dictionary makes them smaller.
        writer = pq.ParquetWriter(file, self._schema, compression="none", use_dictionary=False)
        self._writer = self._stack.enter_context(writer)
        self._rows: list[Vectors] = []
        self._group = min(_GROUP_ROWS, max(1, _GROUP // (dim * self.dtype.itemsize)))

    def _append(self, vectors: Vectors) -> None:
        self._rows.append(vectors)
        stop = self.written + len(vectors)
        waiting = sum(map(len, self._rows))
        if waiting >= self._group or stop == self.rows:
            self._flush(stop - waiting, stop)

    def _flush(self, start: int, stop: int) -> None:
        flat = pa.array(np.concatenate(self._rows).reshape(-1))
        self._rows.clear()
        kind = self._schema.field(VECTOR).type
        columns = [pa.FixedSizeListArray.from_arrays(flat, type=kind)]
        if self.ids is not None:
            ids = self.ids[start:stop]
            columns.insert(0, pa.array(ids if ids.dtype.kind == "i" else ids.tolist()))
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))


def _file(path: Path, buffer: int) -> Any:
    return pq.ParquetFile(
        path, buffer_size=buffer, pre_buffer=False, thrift_string_size_limit=_MOST_NAME
    )


def _buffer(metadata: Any, column: str, path: Path) -> int:
    """Bytes of the buffer through which a file is read, 0 for whole row groups.

    With a buffer memory does not grow with a row group, but a page is believed that claims to be
    of gigabytes. Without, a page is looked for in what was read: small files cannot claim much.
    """
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    wanted = [i for i, each in enumerate(paths) if each.partition(".")[0] == column]
    size, largest = path.stat().st_size, 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        largest = max([largest, *(group.column(i).total_compressed_size for i in wanted)])
    if largest > size:
        raise BenchError(f"a column claims {largest} bytes, the file has {size}")
    return _BUFFER if largest > _AT_ONCE else 0


def _column(file: Any, column: str, size: int, skipped: int = 0, before: int = 0) -> Iterator[Any]:
    """A column's rows in order, but for the first ones; the file's first is row ``before``."""
    groups = list(range(file.metadata.num_row_groups))
    while skipped and skipped >= (rows := file.metadata.row_group(groups[0]).num_rows):
        skipped, before = skipped - rows, before + rows
        groups.pop(0)
    batches = file.iter_batches(size, row_groups=groups, columns=[column], use_threads=False)
    while (batch := _next(batches, before)) is not None:
        before += batch.num_rows
        rest = batch.column(0)[skipped:]
        skipped = max(0, skipped - batch.num_rows)
        if len(rest):
            yield rest


def _next(batches: Iterator[Any], first: int) -> Any:
    """The next batch, which begins with row ``first``; None at the end."""
    try:
        return next(batches, None)
    except pa.ArrowInvalid as error:
        found = _RAGGED.search(str(error))
        if found is None:
            raise
        wanted, index, got = map(int, found.groups())  # the index counts from 1, in the batch
        raise BenchError(
            f"expected {wanted} numbers a row, got {got or 'none'} in row {first + index - 1}"
        ) from error
