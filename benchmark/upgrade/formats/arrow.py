"""Vectors as columns of Arrow's own files, as Hugging Face's ``save_to_disk`` writes them.

They are a stream of messages, or a file of them with an index at its end. What a message claims is
looked at before it is read: its sizes, also those of compressed columns, lie in a small table in
front of it (FlatBuffers).

Source: https://arrow.apache.org/docs/format/Columnar.html, "Serialization and Interprocess
Communication"; the tables are those of Arrow's Message.fbs and File.fbs.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from benchmark.errors import BenchError, located
from benchmark.upgrade.formats.checks import reading
from benchmark.upgrade.formats.columns import (
    ColumnsSource,
    Found,
    dim_of,
    id_columns,
    vector_column,
    vector_type,
)

_MAGIC = b"ARROW1"
"""First and last bytes of a file with an index."""
_GOES_ON = 0xFFFFFFFF
_DICTIONARY, _BATCH = 2, 3
"""Kinds of messages with a body, beside the schema."""
_MOST_TABLE = 2**24
"""Bytes of the table in front of a message."""
_MOST_BODY = 2**28
"""Bytes of a message, packed or not."""
_MOST_LISTED = 2**16
"""Columns' buffers of a message, messages of a file with an index."""


class ArrowSource(ColumnsSource):
    """Columns of an Arrow file or stream, or of a folder of them."""

    format = "Arrow"

    def _endings(self) -> tuple[str, ...]:
        return (".arrow", ".feather")

    def _look(self, path: Path) -> Found:
        with located(path.name if path != self.path else ""), reading(self.format):
            rows = _require_sizes(path)
            with _opened(path) as reader:
                schema = reader.schema
            places = id_columns(schema)
            self.part = vector_column(schema, self.part)
            dtype, dim = vector_type(schema.field(self.part).type)
            if dim is None:
                first = next(_column(path, self.part, 1), None)
                dim = 0 if first is None else dim_of(first)
        return Found(rows, dim, dtype, places)

    def _parts(self, column: str, size: int, skipped: int = 0) -> Iterator[Any]:
        for path in self._files:
            with located(path.name if path != self.path else ""), reading(self.format):
                for part in _column(path, column, size):
                    rows = part[skipped:]
                    skipped = max(0, skipped - len(part))
                    if len(rows):
                        yield rows


@contextmanager
def _opened(path: Path, columns: list[int] | None = None) -> Iterator[Any]:
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=columns)
    with path.open("rb") as file:
        opened = pa.ipc.open_file if _has_index(file) else pa.ipc.open_stream
        with opened(file, options=options) as reader:
            yield reader


def _column(path: Path, name: str, size: int) -> Iterator[Any]:
    """A column's rows in parts, looked at in every way: a file may say anything of them."""
    with _opened(path) as reader:
        place = reader.schema.get_field_index(name)
    with _opened(path, [place]) as reader:
        n = getattr(reader, "num_record_batches", None)
        for batch in reader if n is None else map(reader.get_batch, range(n)):
            column = batch.column(0)
            column.validate(full=True)
            for start in range(0, len(column), size):
                yield column[start : start + size]


def _has_index(file: IO[bytes]) -> bool:
    begin = file.read(len(_MAGIC))
    file.seek(0)
    return begin == _MAGIC


def _require_sizes(path: Path) -> int:
    """The rows of a file; BenchError if a message is larger than any that is read."""
    rows, size = 0, path.stat().st_size
    with path.open("rb") as file:
        for body in _indexed(file, size) if _has_index(file) else repeat(None):
            message = _next_message(file)
            if message is None:
                break
            begin = file.tell()
            claimed = max(message.body, body or 0)
            if not 0 <= claimed <= min(_MOST_BODY, size - begin):
                most = min(_MOST_BODY, size - begin)
                raise BenchError(f"expected messages of at most {most} bytes, got {claimed}")
            unpacked = sum(_unpacked(file, begin, each) for each in message.buffers)
            if unpacked > _MOST_BODY:
                raise BenchError(f"expected messages of at most {_MOST_BODY} bytes, got {unpacked}")
            rows += message.rows
            file.seek(begin + message.body)
    return rows


def _indexed(file: IO[bytes], size: int) -> Iterator[int]:
    """Stand at each message that the index names, and give the bytes it says of its body."""
    tail = 4 + len(_MAGIC)
    file.seek(max(0, size - tail))
    n = int.from_bytes(file.read(4), "little")
    if not 0 < n <= min(_MOST_TABLE, size - tail):
        raise BenchError("ends without an index: the file is cut off")
    file.seek(size - tail - n)
    raw = file.read(n)
    try:
        footer = _Table(raw, *struct.unpack_from("<I", raw))
        blocks = [each for number in (2, 3) for each in footer.listed(number, "qiiq")]
    except struct.error as error:
        raise BenchError("expected an index, got what is none") from error
    for place, table, _, body in blocks:
        if not 0 <= place < size or not 0 <= table <= _MOST_TABLE:
            raise BenchError(
                f"expected messages within the file, got one of {table} bytes at {place}"
            )
        file.seek(place)
        yield body


class _Message(NamedTuple):
    """What the table in front of a message says."""

    rows: int
    body: int  # bytes
    buffers: list[tuple[int, ...]]  # place in the body, and bytes, of packed ones


def _next_message(file: IO[bytes]) -> _Message | None:
    """Read the table in front of the next message; None at the end."""
    size = int.from_bytes(file.read(4), "little")
    if size == _GOES_ON:
        size = int.from_bytes(file.read(4), "little")
    if not size:
        return None
    if size > _MOST_TABLE:
        raise BenchError(f"expected a message's table of at most {_MOST_TABLE} bytes, got {size}")
    raw = file.read(size)
    if len(raw) < size:
        raise BenchError("ends within a message")
    try:
        return _read_message(raw)
    except struct.error as error:
        raise BenchError("expected a message, got what is none") from error


def _read_message(raw: bytes) -> _Message:
    message = _Table(raw, *struct.unpack_from("<I", raw))
    kind, body = message.value(1, "<B"), message.value(3, "<q")
    if kind not in (_BATCH, _DICTIONARY):
        return _Message(0, body, [])
    batch = message.table(2)
    rows = batch.value(0, "<q") if kind == _BATCH else 0
    if kind == _DICTIONARY:
        batch = batch.table(1)
    return _Message(rows, body, batch.listed(2, "qq") if batch.place(3) else [])


class _Table:
    """A FlatBuffers table: fields by their number, each at a place that a list in front names."""

    def __init__(self, raw: bytes, at: int) -> None:
        self.raw, self.at = raw, at
        self.names = at - self._get("<i", at)
        self.size = self._get("<H", self.names)

    def _get(self, layout: str, at: int) -> int:
        if at < 0:
            raise struct.error
        return int(struct.unpack_from(layout, self.raw, at)[0])

    def place(self, number: int) -> int:
        """Where a field lies; 0 if it is not there."""
        entry = 4 + 2 * number
        offset = self._get("<H", self.names + entry) if entry < self.size else 0
        return self.at + offset if offset else 0

    def value(self, number: int, layout: str) -> int:
        """A number, 0 if it is not there."""
        at = self.place(number)
        return self._get(layout, at) if at else 0

    def table(self, number: int) -> "_Table":
        """Another table."""
        at = self.place(number)
        if not at:
            raise struct.error
        return _Table(self.raw, at + self._get("<I", at))

    def listed(self, number: int, layout: str) -> list[tuple[int, ...]]:
        """A list of some numbers each; empty if it is not there."""
        at = self.place(number)
        if not at:
            return []
        at += self._get("<I", at)
        n = self._get("<I", at)
        if n > _MOST_LISTED:
            raise BenchError(f"expected a list of at most {_MOST_LISTED}, got {n}")
        each = struct.calcsize(f"<{layout}")
        return [struct.unpack_from(f"<{layout}", self.raw, at + 4 + i * each) for i in range(n)]


def _unpacked(file: IO[bytes], begin: int, buffer: tuple[int, ...]) -> int:
    """Bytes of a packed buffer when it is unpacked, as it says in front; -1 there is not packed."""
    place, size = buffer
    if size <= 0:
        return 0
    if place < 0:
        raise BenchError("expected buffers within their message")
    file.seek(begin + place)
    said = int.from_bytes(file.read(8), "little", signed=True)
    return size if said == -1 else said if said >= 0 else _MOST_BODY + 1
