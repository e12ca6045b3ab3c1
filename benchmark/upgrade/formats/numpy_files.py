"""Vectors as npy files, and as arrays of npz files; nothing in them is unpickled."""

import io
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import MOST_NAMES, require_file
from benchmark.upgrade.formats.flat import read_header, rows_in_parts, write_flat, write_header
from benchmark.upgrade.formats.sink import FileSink
from benchmark.upgrade.formats.source import MOST_BATCH, ArraysSource, PackedSource, Shape


class NpySource(PackedSource):
    """An npy file ``[n, dim]``."""

    format = "npy"
    has_sidecar = True

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        size = require_file(self.path)
        with self.path.open("rb") as file:
            shape, dtype, self.start = read_header(file)
        expected = self.start + math.prod(shape) * dtype.itemsize
        if expected > size:
            raise BenchError(f"expected {expected} bytes, got {size}: the file is cut off")
        return shape, dtype


class NpzSource(ArraysSource):
    """An array ``[n, dim]`` of an npz file, compressed or not; ids in ``ids`` or ``NAME_ids``."""

    format = "npz"

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        require_file(self.path)
        with self._archive() as archive:
            members = [m for m in archive.namelist() if m.endswith(".npy")]
            if len(members) > MOST_NAMES:
                raise BenchError(f"expected at most {MOST_NAMES} arrays, got {len(members)}")
            # Only shapes: other arrays may be of any type, pickled ones too.
            names = [member.removesuffix(".npy") for member in members]
            self._refused = list[BenchError]()
            self.arrays = {name: self._about(archive, name) for name in names}
            try:
                self._choose()
            except BenchError as error:
                only = len(self._refused) == len(names) == 1
                raise (self._refused[0] if only else error) from None
            with archive.open(f"{self.part}.npy") as file:
                shape, dtype, self._first = read_header(file)
        return shape, dtype

    def _about(self, archive: zipfile.ZipFile, name: str) -> tuple[Shape, np.dtype[Any] | None]:
        try:
            with archive.open(f"{name}.npy") as file:
                return read_header(file)[:2]
        except BenchError as error:
            self._refused.append(error)
            return (), None

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        with _InPieces(self.path) as file, zipfile.ZipFile(file) as archive:
            yield archive

    def _stored_ids(self, place: str) -> Iterator[Any]:
        with self._archive() as archive, archive.open(f"{place}.npy") as file:
            first = read_header(file)[2]
            dtype = self._require_ids(place)
            file.seek(first)
            yield from rows_in_parts(file, dtype, self.rows)

    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        row = self.dim * self.dtype.itemsize
        with self._archive() as archive, archive.open(f"{self.part}.npy") as file:
            file.seek(self._first + first * row)
            for start in range(first, self.rows, size):
                expected = min(size, self.rows - start) * row
                raw = file.read(expected)
                if len(raw) < expected:
                    raise BenchError(f"ends within row {start + len(raw) // row}")
                yield np.frombuffer(raw, self.dtype).reshape(-1, self.dim)


class _InPieces(io.FileIO):
    """A file of which no more than a batch is read at once: a zip's directory may claim more."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MOST_BATCH:
            raise BenchError(f"expected a directory of at most {MOST_BATCH} bytes, got {size}")
        return super().read(size)


class NpySink(FileSink):
    """An npy file ``[n, dim]``, its ids in an npy file beside it."""

    has_sidecar = True

    def _opened(self, dim: int) -> IO[bytes]:
        file = self._stack.enter_context(self.part.open("wb"))
        write_header(file, (self.rows, dim), self.dtype)
        return file


class NpzSink(FileSink):
    """An npz file, not compressed: the array ``vectors``, and ``ids`` if there are some."""

    def _opened(self, dim: int) -> IO[bytes]:
        archive = self._stack.enter_context(zipfile.ZipFile(self.part, "w"))
        if self.ids is not None:
            with archive.open("ids.npy", "w", force_zip64=True) as file:
                write_flat(file, self.ids)
        file = self._stack.enter_context(archive.open("vectors.npy", "w", force_zip64=True))
        write_header(file, (self.rows, dim), self.dtype)
        return file
