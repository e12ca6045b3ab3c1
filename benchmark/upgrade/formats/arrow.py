"""Vectors as columns of Arrow's own files, as Hugging Face's ``save_to_disk`` writes them.

They are a stream of messages, or a file of them with an index at its end. Sizes that packed columns
claim lie in a small table in front of each message (FlatBuffers), and are looked at before anything
is unpacked.

Source: https://arrow.apache.org/docs/format/Columnar.html, "Serialization and Interprocess
Communication"; the tables are those of Arrow's Message.fbs and File.fbs.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmark.errors import BenchError
from benchmark.upgrade.formats.columns import ColumnsSource, Group

_MARK = b"ARROW1"  # first and last bytes of a file with an index
_TAIL = 10  # bytes behind an index: its size, and the mark
_MOST_BODY = 2**28  # bytes of a message, packed or not
_MOST_LISTED = 2**16  # columns' buffers of a message, messages of a file with an index


class ArrowSource(ColumnsSource):
    """Columns of an Arrow file or stream, or of a folder of them."""

    format = "Arrow"
    endings = (".arrow", ".feather")

    def _about(self, path: Path) -> tuple[int, Any]:
        rows = _require_sizes(path)
        with _opened(path) as reader:
            return rows, reader.schema

    def _groups(self, path: Path, column: str, size: int) -> Iterator[Group]:
        with _opened(path) as reader:
            place = reader.schema.get_field_index(column)
        with _opened(path, [place]) as reader:
            n = getattr(reader, "num_record_batches", None)
            for batch in reader if n is None else map(reader.get_batch, range(n)):
                values = batch.column(0)
                values.validate(full=True)  # a file may say anything of them
                slices = [values[a : a + size] for a in range(0, len(values), size)]
                yield len(values), lambda _, slices=slices: iter(slices)  # type: ignore[misc]


@contextmanager
def _opened(path: Path, columns: list[int] | None = None) -> Iterator[Any]:
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=columns)
    with path.open("rb") as file:
        is_indexed = file.read(len(_MARK)) == _MARK
        file.seek(0)
        opened = pa.ipc.open_file if is_indexed else pa.ipc.open_stream
        with opened(file, options=options) as reader:
            yield reader


def _require_sizes(path: Path) -> int:
    """Count the rows of a file; a BenchError if a message is larger than any that is read."""
    rows = 0
    # Mapped: a message is not read, whatever size it claims.
    with pa.memory_map(str(path)) as mapped:
        content = mapped.read_buffer()
        try:
            for message in _messages(content):
                n, buffers = _batch(message)
                sizes = [0 if message.body is None else message.body.size]
                sizes.append(sum(_unpacked(message.body, *each) for each in buffers))
                _require_at_most(max(sizes))
                rows += n
        except struct.error as error:
            raise BenchError("expected a message, got what is none") from error
    return rows


def _messages(content: Any) -> Iterator[Any]:
    """Messages of a stream, or those that a file's index names."""
    if content[: len(_MARK)].to_pybytes() != _MARK:
        yield from pa.ipc.MessageReader.open_stream(content)
        return
    end = content.size - _TAIL
    n = int.from_bytes(content[max(0, end) : end + 4].to_pybytes(), "little")
    if content[-len(_MARK) :].to_pybytes() != _MARK or not 0 < n <= end:
        raise BenchError("ends without an index: the file is cut off")
    raw = content[end - n : end].to_pybytes()
    footer = _Table(raw, *struct.unpack_from("<I", raw))
    for place, _, _, body in (each for k in (2, 3) for each in footer.listed(k, "qiiq")):
        if not 0 <= place < end:
            raise BenchError(f"expected messages within the file, got one at {place}")
        _require_at_most(body)
        yield pa.ipc.MessageReader.open_stream(content[place:]).read_next_message()


def _require_at_most(size: int) -> None:
    if not 0 <= size <= _MOST_BODY:
        raise BenchError(f"expected messages of at most {_MOST_BODY} bytes, got {size}")


def _batch(message: Any) -> tuple[int, list[tuple[int, ...]]]:
    """Rows of a message, and place and bytes of its buffers where they are packed."""
    if message.type not in ("record batch", "dictionary"):
        return 0, []
    raw = message.metadata.to_pybytes()
    table = _Table(raw, *struct.unpack_from("<I", raw)).table(2)
    rows = table.value(0, "<q") if message.type == "record batch" else 0
    if message.type == "dictionary":
        table = table.table(1)
    return rows, table.listed(2, "qq") if table.place(3) else []


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
        """Place of a field; 0 if it is not there."""
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
        n, layout = self._get("<I", at), f"<{layout}"
        if n > _MOST_LISTED:
            raise BenchError(f"expected a list of at most {_MOST_LISTED}, got {n}")
        size = struct.calcsize(layout)
        return [struct.unpack_from(layout, self.raw, at + 4 + i * size) for i in range(n)]


def _unpacked(body: Any, place: int, size: int) -> int:
    """Bytes of a packed buffer when it is unpacked, as it says in front; -1 there is not packed."""
    if size <= 0:
        return 0
    if place < 0 or body is None:
        raise BenchError("expected buffers within their message")
    said = int.from_bytes(body[place : place + 8].to_pybytes(), "little", signed=True)
    return size if said == -1 else said if said >= 0 else _MOST_BODY + 1
