"""MXNet's RecordIO as InsightFace packs faces: ``train.rec`` and ``train.idx``.

A record is a magic number, its length (29 bits) and its bytes, filled up to four. One that happens
to contain the magic number is cut there into parts, which the upper three bits of the lengths
number. A face's begin with a header: flag, label, two ids, and as many more labels as the flag
says. Record 0 tells where people begin; a person's tells which images are theirs.

Source: MXNet's ``recordio.py`` (IRHeader) and InsightFace's ``face2rec2.py``, as documented there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from benchmark.config.files import file_size
from benchmark.data.base import Ints
from benchmark.data.files import read_integers, readable
from benchmark.errors import BenchError

_MAGIC = 0xCED7230A
_WORD = struct.pack("<I", _MAGIC)
_ONLY, _FIRST, _MIDDLE, _LAST = range(4)
_RECORD = struct.Struct("<II")
_HEADER = struct.Struct("<IfQQ")
_MOST_LABELS = 64
_MOST_IMAGES = 2**26
_MOST_PARTS = 10_000
_MOST_BYTES = 2**28


@dataclass(frozen=True)
class Records:
    """Encoded images inside one file of records."""

    root: Path  # the file
    places: Ints  # first byte and number of bytes of each, [n, 2]

    def __len__(self) -> int:
        return len(self.places)

    def read(self, row: int) -> tuple[str, bytes]:
        """The name for errors, and the encoded image."""
        start, size = self.places[row].tolist()
        where = f"{self.root}: at byte {start}"
        with readable(self.root), self.root.open("rb") as file:
            return where, joined(_read(file, start, size, where))

    def take(self, rows: Ints) -> Records:
        """Some of them."""
        return Records(self.root, self.places[rows])

    def key(self) -> bytes:
        """Numbers that tell them from others of the same file."""
        return np.ascontiguousarray(self.places).tobytes()


def read_faces(rec: Path, idx: Path) -> tuple[Records, Ints]:
    """Places of the images, and the number of the person on each; BenchError on a wrong record.

    Reads no image.
    """
    table, size = read_integers(idx, 2, "a key and an offset"), file_size(rec, 2**50)
    if table[:, 1].min() < 0 or table[:, 1].max() >= size:
        raise BenchError(f"{idx}: expected offsets below {size}, the size of {rec.name}")
    with readable(rec), rec.open("rb") as file:
        return _Reader(rec, file, table).faces()


class _Reader:
    """Records by key; ``table`` has a key and an offset in each row, ``[n, 2]``."""

    def __init__(self, path: Path, file: BinaryIO, table: Ints) -> None:
        self.path, self.file = path, file
        # Of a key that comes twice the last row counts.
        self.keys, rows = np.unique(table[::-1, 0], return_index=True)
        self.offsets = table[::-1, 1][rows]

    def offset(self, key: int) -> int | None:
        """The beginning of a record, if the index has it."""
        row = int(np.searchsorted(self.keys, key))
        return int(self.offsets[row]) if row < len(self.keys) and self.keys[row] == key else None

    def faces(self) -> tuple[Records, Ints]:
        """All images, by key."""
        labels, _, size = self.header(0) if self.offset(0) is not None else ((), 0, 0)
        # Without a table of people every record is an image with its own label, the first of some.
        if len(labels) < 2 or size:
            return self._images(self.keys)
        first, end = (int(v) for v in labels[:2])
        if not 1 < first <= min(end, _MOST_IMAGES):
            raise BenchError(f"{self.path}: record 0: expected where people begin and end")
        person = np.full(first, -1, np.int64)
        for number, key in enumerate(range(first, end)):
            span = self.header(key)[0]
            low, high = (int(v) for v in span[:2]) if len(span) > 1 else (0, 0)
            if not 0 < low <= high <= first:
                raise BenchError(f"{self.path}: record {key}: expected a person's first image")
            person[low:high] = number
        keys = np.flatnonzero(person >= 0)
        return self._images(keys)[0], person[keys]

    def _images(self, keys: Ints) -> tuple[Records, Ints]:
        """Images by key, and the label of each."""
        places, person = np.empty((len(keys), 2), np.int64), np.empty(len(keys), np.int64)
        for row, key in enumerate(keys.tolist()):
            labels, *places[row] = self.header(key)
            person[row] = int(labels[0])
        if (person < 0).any():
            raise BenchError(f"{self.path}: expected people numbered from 0, got {person.min()}")
        return Records(self.path, places), person

    def header(self, key: int) -> tuple[tuple[float, ...], int, int]:
        """Labels, and first byte and number of bytes of what follows."""
        where = f"{self.path}: record {key}"
        offset = self.offset(key)
        if offset is None:
            raise BenchError(f"{where}: not in the index")
        start = end = offset
        lengths: list[int] = []
        kinds: tuple[int, ...] = (_ONLY, _FIRST)
        while kinds:
            magic, length = _RECORD.unpack(_read(self.file, end, _RECORD.size, where))
            kind, length = length >> 29, length & (1 << 29) - 1
            if magic != _MAGIC:
                raise BenchError(f"{where}: expected the magic number {_MAGIC:#x}, got {magic:#x}")
            if kind not in kinds:
                raise BenchError(f"{where}: expected a part of kind {kinds} at byte {end}, {kind}")
            lengths.append(length)
            if len(lengths) > _MOST_PARTS or end + length - start > _MOST_BYTES:
                raise BenchError(f"{where}: expected at most {_MOST_BYTES} bytes and few parts")
            end += _RECORD.size + length
            kinds = () if kind in (_ONLY, _LAST) else (_MIDDLE, _LAST)
        start += _RECORD.size
        flag, label, _, _ = _HEADER.unpack(_read(self.file, start, _HEADER.size, where))
        if flag > _MOST_LABELS or lengths[0] < _HEADER.size + 4 * flag:
            raise BenchError(f"{where}: expected at most {_MOST_LABELS} labels, got {flag}")
        more = struct.unpack(f"<{flag}f", _read(self.file, start + _HEADER.size, 4 * flag, where))
        start += _HEADER.size + 4 * flag
        return more or (label,), start, end - start


def _read(file: BinaryIO, offset: int, size: int, where: str) -> bytes:
    file.seek(offset)
    content = file.read(size)
    if len(content) < size:
        raise BenchError(f"{where}: expected {size} bytes, got {len(content)}")
    return content


def joined(raw: bytes) -> bytes:
    """The bytes of a record as they were before it was cut at the magic number.

    Parts end on multiples of four and begin with the number and their length; the number belongs
    to the record.
    """
    pieces, begin, at = [], 0, raw.find(_WORD)
    while at >= 0:
        if at % 4 == 0:
            pieces.append(raw[begin : at + 4])
            begin = at + 8
        at = raw.find(_WORD, begin if at % 4 == 0 else at + 1)
    return b"".join([*pieces, raw[begin:]])
