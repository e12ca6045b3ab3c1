"""Vectors of a file, read batch by batch: what every format offers."""

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError, located
from benchmark.upgrade.formats.candidates import ROWS, pick
from benchmark.upgrade.formats.checks import cut, reading, require_vectors, shown
from benchmark.upgrade.formats.ids import Ids, gathered, require_unique
from benchmark.upgrade.formats.npy import flat_parts, sidecar

Vectors = NDArray[np.float32]
BATCH = 8192
"""Rows of a batch, by default."""
MOST_BATCH = 2**26
"""Bytes of a batch: of long vectors fewer are read at a time."""


def files_of(path: Path, *, has_sidecar: bool = True) -> list[Path]:
    """A file of vectors and the ids beside it, or a folder and all that is in it."""
    if path.is_dir():
        return [path, *path.iterdir()]
    beside = sidecar(path)
    return [path, beside] if has_sidecar and beside.exists() else [path]


class Source(ABC):
    """Vectors of a file or folder, checked while they are read.

    Class attributes:
        format: Its name in messages.
        has_sidecar: Whether ids may stand in a file beside, ``NAME.ids.npy``.
        has_columns: Whether a file has several arrays or columns, of which one may hold ids.
        has_bytes: Whether bytes are numbers there, not packed bits.

    Attributes:
        name: As the user wrote it; errors begin with it.
        path: Its file or folder.
        rows: Number of vectors, at least 1.
        dim: Numbers of each.
        dtype: As they are stored.
        part: Their array or column, where the file has several.
        id_column: That of ids, as the user names it; empty where they are looked for.
    """

    format: ClassVar[str]
    has_sidecar: ClassVar[bool] = False
    has_columns: ClassVar[bool] = False
    has_bytes: ClassVar[bool] = False
    rows: int
    dim: int
    dtype: np.dtype[Any]

    def __init__(self, name: str, path: Path, part: str = "", id_column: str = "") -> None:
        """Look at what is there; ``part`` is the array or column of a name after a colon.

        Raises:
            BenchError: If there are no vectors.
        """
        self.name, self.path, self.part = name, path, part
        self.id_column = id_column if self.has_columns or id_column == ROWS else ""
        with located(name), reading(self.format):
            shape, self.dtype = self._open()
            require_vectors(shape, self.dtype, self.has_bytes)
            self.rows, self.dim = shape

    @abstractmethod
    def _open(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of the vectors, as far as the file's beginning says."""

    @abstractmethod
    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        """Vectors from row ``first`` on, as stored, ``[k, dim]`` with ``1 <= k <= size``."""

    def _id_places(self) -> tuple[str | None, list[str]]:
        """Where ids are by convention, if there, and what else may hold one id a row."""
        beside = sidecar(self.path)
        return (beside.name if beside in self.paths else None), []

    def _stored_ids(self, place: str) -> Iterator[Any]:
        """Ids of a place of :meth:`_id_places` in parts, as :func:`as_ids` takes them."""
        with located(place), reading("npy"):
            yield from flat_parts(sidecar(self.path))

    @property
    def paths(self) -> list[Path]:
        """Every file that is read, and the folder that holds them."""
        return files_of(self.path, has_sidecar=self.has_sidecar)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the ids, which may be many: whoever needs them reads them again."""
        return {name: value for name, value in self.__dict__.items() if name != "_picked"}

    @property
    def ids(self) -> Ids | None:
        """Ids of all rows, int64 or text ``[rows]``, none twice; None where there are none.

        Raises:
            BenchError: If they cannot be read, are not one a row, or one comes twice; if several
                columns may be meant.
        """
        return self._picked[0]

    @property
    def told(self) -> list[str]:
        """What to tell of ids that were found under another name than the usual one."""
        column = self._picked[1]
        return [f"{self.name}: ids are those of '{cut(column)}'"] if column else []

    @cached_property
    def _picked(self) -> tuple[Ids | None, str]:
        with located(self.name), reading(self.format):
            return pick(self.id_column, *self._id_places(), self._read_ids)

    def _read_ids(self, place: str) -> Ids:
        size = sum(path.stat().st_size for path in self.paths if path.is_file())
        ids = gathered(partial(self._stored_ids, place), size)
        if len(ids) != self.rows:
            raise BenchError(f"ids: expected {self.rows}, one a row, got {len(ids)}")
        require_unique(ids)
        return ids

    def batches(self, size: int = BATCH) -> Iterator[tuple[Ids | None, Vectors]]:
        """Ids, or None, and vectors in order, ``[k, dim]`` float32, ``k <= size``.

        Memory holds one batch of vectors, whatever the number of rows, and the ids.

        Raises:
            BenchError: As :meth:`vectors`.
        """
        ids, start = self.ids, 0
        for vectors in self.vectors(size):
            stop = start + len(vectors)
            yield None if ids is None else ids[start:stop], vectors
            start = stop

    def vectors(
        self, size: int = BATCH, first: int = 0, last: int | None = None
    ) -> Iterator[Vectors]:
        """Vectors of the rows ``first`` ... ``last - 1`` in order, ``[k, dim]``, ``k <= size``.

        Raises:
            BenchError: If a number is NaN or infinite, also as float32, or a row cannot be read.
        """
        start, last = first, self.rows if last is None else last
        blocks = self._blocks(max(1, min(size, MOST_BATCH // (8 * self.dim))), first)
        while start < last or last == self.rows:  # at the end more rows than expected are told
            with located(self.name), reading(self.format):
                stored = next(blocks, None)
            if stored is None:
                break
            if last < self.rows:
                stored = stored[: last - start]
            with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite
                vectors = stored.astype(np.float32, copy=False)
            self._require_finite(vectors, start)
            yield vectors
            start += len(vectors)
        if start != last:
            raise BenchError(f"{self.name}: expected {self.rows} rows, got {start}")

    def read(self) -> Vectors:
        """All vectors, ``[rows, dim]`` float32.

        Raises:
            BenchError: As :meth:`batches`; if memory cannot hold them.
        """
        try:
            vectors = np.empty((self.rows, self.dim), np.float32)
        except (MemoryError, ValueError) as error:
            size = 4 * self.rows * self.dim
            raise BenchError(f"{self.name}: memory cannot hold its {size} bytes") from error
        start = 0
        for _, batch in self.batches():
            vectors[start : start + len(batch)] = batch
            start += len(batch)
        return vectors

    def row(self, number: int) -> str:
        """A row's name in messages: its number from 0, and its id if it has one."""
        return f"row {number}" + ("" if self.ids is None else f", id {shown(self.ids[number])}")

    def _require_finite(self, vectors: Vectors, first: int) -> None:
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            row = self.row(first + int(np.argmin(finite)))
            raise BenchError(
                f"{self.name}: vector: expected finite numbers, got NaN or infinity in {row}"
            )


class StreamedSource(Source):
    """A source whose rows lie one after another in a file, or in a stream from one."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.dim * self.dtype.itemsize

    @abstractmethod
    def _stream(self) -> AbstractContextManager[IO[bytes]]:
        """A stream that begins with the first row."""

    def _vectors(self, raw: bytes) -> NDArray[Any]:
        """The vectors ``[k, dim]`` of the bytes of some rows."""
        return np.frombuffer(raw, self.dtype).reshape(-1, self.dim)

    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        with self._stream() as stream:
            if first:
                stream.seek(first * self.row_bytes, io.SEEK_CUR)
            for start in range(first, self.rows, size):
                expected = min(size, self.rows - start) * self.row_bytes
                # Read, not mapped: mapped pages count as the memory of the process.
                raw = stream.read(expected)
                if len(raw) < expected:
                    raise BenchError(f"ends within row {start + len(raw) // self.row_bytes}")
                yield self._vectors(raw)
