"""Vectors as columns of parquet files, or of a folder of them."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.upgrade.formats.columns import ID, VECTOR, ColumnsSource, Group
from benchmark.upgrade.formats.sink import Sink

_BUFFER = 2**20
_AT_ONCE = 2**23  # bytes of a column of a row group that is read at once
_MOST_NAME = 2**24  # bytes of a text in a file's metadata
_GROUP = 2**24  # bytes of vectors in a row group, which is written at once
_GROUP_ROWS = 2**15  # rows of it at most: their ids may be long
_RAGGED = re.compile(r"all lists to be of size=(\d+) but index (\d+) had size=(\d+)")


class ParquetSource(ColumnsSource):
    """Columns of a parquet file, or of a folder of them."""

    format = "parquet"
    endings = (".parquet", ".pq")

    def _about(self, path: Path) -> tuple[int, Any]:
        with _file(path, 0) as file:
            return file.metadata.num_rows, file.schema_arrow

    def _groups(self, path: Path, column: str, size: int) -> Iterator[Group]:
        with _file(path, 0) as file:
            metadata = file.metadata
        with _file(path, _buffer(metadata, column, path)) as file:
            for number in range(metadata.num_row_groups):
                read = partial(_column, file, column, size, number)
                yield metadata.row_group(number).num_rows, read


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
        self._rows: list[NDArray[Any]] = []
        self._group = min(_GROUP_ROWS, max(1, _GROUP // (dim * self.dtype.itemsize)))

    def _append(self, vectors: NDArray[Any]) -> None:
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


def _column(file: Any, column: str, size: int, number: int, first: int) -> Iterator[Any]:
    """A column of a row group in parts; its first row is row ``first`` of all files."""
    batches = file.iter_batches(size, row_groups=[number], columns=[column], use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except pa.ArrowInvalid as error:
            found = _RAGGED.search(str(error))
            if found is None:
                raise
            wanted, index, got = map(int, found.groups())  # the index counts from 1, in the batch
            raise BenchError(
                f"expected {wanted} numbers a row, got {got or 'none'} in row {first + index - 1}"
            ) from error
        if batch is None:
            return
        first += batch.num_rows
        yield batch.column(0)
