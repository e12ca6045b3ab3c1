"""MXNet's RecordIO as InsightFace packs faces: ``train.rec`` and ``train.idx``. Not a dataset.

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
from numpy.typing import NDArray

from benchmark.data.base import Ints
from benchmark.errors import BenchError

_MAGIC = 0xCED7230A
_WORD = struct.pack("<I", _MAGIC)
_ONLY, _FIRST, _LAST = 0, 1, 3
_RECORD = struct.Struct("<II")
_HEADER = struct.Struct("<IfQQ")
_MOST_LABELS = 64


@dataclass(frozen=True)
class Faces:
    """Images of a file of records.

    Attributes:
        places: First byte and number of bytes of each encoded image, ``[n, 2]``.
        person: Number of the person on each, ``[n]``.
    """

    places: Ints
    person: Ints


def read_faces(rec: Path, idx: Path) -> Faces:
    """Where the images lie and who is on them; reads no image.

    Raises:
        BenchError: Naming the file and the record that is not as expected.
    """
    keys, offsets = _index(idx, rec)
    try:
        with rec.open("rb") as file:
            reader = _Reader(rec, file, dict(zip(keys.tolist(), offsets.tolist(), strict=True)))
            return reader.faces()
    except OSError as error:
        raise BenchError(f"{rec}: cannot be read: {error.strerror}") from error


def _index(idx: Path, rec: Path) -> tuple[Ints, Ints]:
    """Keys and offsets, tab separated."""
    try:
        table: NDArray[np.int64] = np.loadtxt(idx, np.int64, ndmin=2)
        size = rec.stat().st_size
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise BenchError(f"{idx}: expected a key and an offset in each line: {error}") from error
    if not len(table) or table.shape[1] != 2:
        raise BenchError(f"{idx}: expected a key and an offset in each line, got {table.shape[1:]}")
    if table[:, 1].min() < 0 or table[:, 1].max() >= size:
        raise BenchError(f"{idx}: expected offsets below {size}, the size of {rec.name}")
    return table[:, 0], table[:, 1]


class _Reader:
    def __init__(self, path: Path, file: BinaryIO, offsets: dict[int, int]) -> None:
        self.path, self.file, self.offsets = path, file, offsets

    def faces(self) -> Faces:
        """All images, by key."""
        flag, labels = self.header(0)[:2] if 0 in self.offsets else (0, ())
        if flag < 2:  # no table of people: every record is an image with its own label
            return self._of(np.array(sorted(self.offsets), np.int64), None)
        first, end = (int(v) for v in labels[:2])
        if not 1 < first <= end:
            raise BenchError(f"{self.path}: record 0: expected where people begin and end")
        person = np.full(first, -1, np.int64)
        for number, key in enumerate(range(first, end)):
            kind, span, _, _ = self.header(key)
            low, high = (int(v) for v in span[:2]) if kind >= 2 else (0, 0)
            if not 0 < low <= high <= first:
                raise BenchError(f"{self.path}: record {key}: expected a person's first image")
            person[low:high] = number
        keys = np.flatnonzero(person >= 0)
        return self._of(keys, person[keys])

    def _of(self, keys: Ints, person: Ints | None) -> Faces:
        places = np.empty((len(keys), 2), np.int64)
        found = np.empty(len(keys), np.int64)
        for row, key in enumerate(keys.tolist()):
            _, labels, start, size = self.header(key)
            places[row], found[row] = (start, size), int(labels[0])
        if (found < 0).any():
            raise BenchError(f"{self.path}: expected people numbered from 0, got {found.min()}")
        return Faces(places, found if person is None else person)

    def header(self, key: int) -> tuple[int, tuple[float, ...], int, int]:
        """Flag, labels, and first byte and number of bytes of what follows."""
        where = f"{self.path}: record {key}"
        if key not in self.offsets:
            raise BenchError(f"{where}: not in the index")
        offset = self.offsets[key]
        raw = self._read(offset, _RECORD.size + _HEADER.size, where)
        magic, length = _RECORD.unpack_from(raw)
        if magic != _MAGIC:
            raise BenchError(f"{where}: expected the magic number {_MAGIC:#x}, got {magic:#x}")
        length, end = self._whole(offset, length, where)
        flag, label, _, _ = _HEADER.unpack_from(raw, _RECORD.size)
        if flag > _MOST_LABELS or length < _HEADER.size + 4 * flag:
            raise BenchError(f"{where}: expected at most {_MOST_LABELS} labels, got {flag}")
        start = offset + _RECORD.size + _HEADER.size
        labels: tuple[float, ...] = (label,)
        if flag:
            labels = struct.unpack(f"<{flag}f", self._read(start, 4 * flag, where))
        return flag, labels, start + 4 * flag, end - start - 4 * flag

    def _whole(self, offset: int, length: int, where: str) -> tuple[int, int]:
        """Length of the first part, and where the last one ends."""
        kind, length = length >> 29, length & (1 << 29) - 1
        first, end = length, offset + _RECORD.size + length
        if kind not in (_ONLY, _FIRST):
            raise BenchError(f"{where}: expected the beginning of a record, got a later part")
        while kind not in (_ONLY, _LAST):
            magic, more = _RECORD.unpack(self._read(end, _RECORD.size, where))
            kind, length = more >> 29, more & (1 << 29) - 1
            if magic != _MAGIC or kind in (_ONLY, _FIRST):
                raise BenchError(f"{where}: expected another part at byte {end}")
            end += _RECORD.size + length
        return first, end

    def _read(self, offset: int, size: int, where: str) -> bytes:
        self.file.seek(offset)
        found = self.file.read(size)
        if len(found) < size:
            raise BenchError(f"{where}: expected {size} bytes, the file ends after {len(found)}")
        return found


def joined(raw: bytes) -> bytes:
    """The bytes of a record as they were before it was cut at the magic number.

    Parts end on multiples of four and begin with the number and their length; the number belongs
    to the record.
    """
    at = raw.find(_WORD)
    while at >= 0:
        if at % 4 == 0:
            raw = raw[: at + 4] + raw[at + 8 :]
        at = raw.find(_WORD, at + 4 if at % 4 == 0 else at + 1)
    return raw
