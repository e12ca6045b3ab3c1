"""Vectors as npy files, and as arrays of npz files; nothing in them is unpickled."""

import io
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import (
    MOST_NAMES,
    choose,
    cut,
    id_arrays,
    ids_of,
    require_file,
)
from benchmark.upgrade.formats.ids import LONGEST
from benchmark.upgrade.formats.npy import read_header, rows_in_parts, write_flat, write_header
from benchmark.upgrade.formats.sink import Sink
from benchmark.upgrade.formats.source import MOST_BATCH, StreamedSource, Vectors


class NpySource(StreamedSource):
    """An npy file ``[n, dim]``."""

    format = "npy"
    has_sidecar = True

    def _open(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        size = require_file(self.path)
        with self.path.open("rb") as file:
            shape, dtype, self._first = read_header(file)
        expected = self._first + math.prod(shape) * dtype.itemsize
        if expected > size:
            raise BenchError(f"expected {expected} bytes, got {size}: the file is cut off")
        return shape, dtype

    def _stream(self) -> IO[bytes]:
        file = self.path.open("rb")
        file.seek(self._first)
        return file


class NpzSource(StreamedSource):
    """An array ``[n, dim]`` of an npz file, compressed or not; ids in ``ids`` or ``NAME_ids``."""

    format = "npz"
    has_columns = True

    def _open(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        require_file(self.path)
        with self._archive() as archive:
            members = [m for m in archive.namelist() if m.endswith(".npy")]
            if len(members) > MOST_NAMES:
                raise BenchError(f"expected at most {MOST_NAMES} arrays, got {len(members)}")
            # Only shapes: other arrays may be of any type, pickled ones too.
            self._arrays = {n: self._header(archive, n) for n in map(_stem, members)}
            self.part = choose(self.part, {n: shape for n, (shape, _) in self._arrays.items()})
            with archive.open(f"{self.part}.npy") as file:
                shape, dtype, self._first = read_header(file)
        return shape, dtype

    def _header(self, archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], Any]:
        try:
            with archive.open(f"{name}.npy") as file:
                return read_header(file)[:2]
        except BenchError:
            return (), None

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        with _InPieces(self.path) as file, zipfile.ZipFile(file) as archive:
            yield archive

    def _id_places(self) -> tuple[str | None, list[str]]:
        return ids_of(self.part, self._arrays), id_arrays(self._arrays, self.rows)

    def _stored_ids(self, place: str) -> Iterator[Any]:
        with self._archive() as archive, archive.open(f"{place}.npy") as file:
            shape, dtype, first = read_header(file)
            if shape != (self.rows,) or dtype.itemsize > 4 * LONGEST:
                got = f"{cut(list(shape))} {cut(dtype)}"
                raise BenchError(f"{place}: expected an id a row, [{self.rows}], got {got}")
            file.seek(first)
            yield from rows_in_parts(file, dtype, self.rows)

    @contextmanager
    def _stream(self) -> Iterator[IO[bytes]]:
        with self._archive() as archive, archive.open(f"{self.part}.npy") as file:
            file.read(self._first)
            yield file


def _stem(member: str) -> str:
    return member.removesuffix(".npy")


class _InPieces(io.FileIO):
    """A file of which no more than a batch is read at once: a zip's directory may claim more."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MOST_BATCH:
            raise BenchError(f"expected a directory of at most {MOST_BATCH} bytes, got {size}")
        return super().read(size)


class NpySink(Sink):
    """An npy file ``[n, dim]``, its ids in an npy file beside it."""

    has_sidecar = True

    def _begin(self, dim: int) -> None:
        self._file = self._stack.enter_context(self.part.open("wb"))
        write_header(self._file, (self.rows, dim), self.dtype)

    def _append(self, vectors: Vectors) -> None:
        self._file.write(vectors.data)


class NpzSink(Sink):
    """An npz file, not compressed: the array ``vectors``, and ``ids`` if there are some."""

    def _begin(self, dim: int) -> None:
        archive = self._stack.enter_context(zipfile.ZipFile(self.part, "w"))
        if self.ids is not None:
            with archive.open("ids.npy", "w", force_zip64=True) as file:
                write_flat(file, self.ids)
        self._file = self._stack.enter_context(archive.open("vectors.npy", "w", force_zip64=True))
        write_header(self._file, (self.rows, dim), self.dtype)

    def _append(self, vectors: Vectors) -> None:
        self._file.write(vectors.data)
