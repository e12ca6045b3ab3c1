"""Vectors of a file, read batch by batch: the base of every format."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError, located
from benchmark.ranking.arrays import Floats
from benchmark.upgrade.formats.checks import (
    choose,
    cut,
    likely_ids,
    reading,
    require_vectors,
    shown,
)
from benchmark.upgrade.formats.flat import flat_parts, sidecar
from benchmark.upgrade.formats.ids import LONGEST, ROWS, Ids, gathered, pick, require_unique

BATCH = 8192
"""Rows of a batch, by default."""
MOST_BATCH = 2**26
"""Bytes of a batch: of long vectors fewer are read at a time."""
Shape = tuple[int, ...]


def files_of(path: Path, *, has_sidecar: bool = True) -> list[Path]:
    """A file of vectors and the ids beside it, or a folder and all that is in it."""
    if path.is_dir():
        return [path, *path.rglob("*")]
    beside = sidecar(path)
    return [path, beside] if has_sidecar and beside.exists() else [path]


class Source(ABC):
    """Vectors of a file or folder, checked while they are read.

    Errors begin with its ``name``, as the user wrote it.
    """

    format: ClassVar[str]  # its name in messages
    has_sidecar: ClassVar[bool] = False  # ids may stand in a file beside, NAME.ids.npy
    has_columns: ClassVar[bool] = False  # of several arrays or columns one may hold ids
    has_bytes: ClassVar[bool] = False  # bytes are numbers there, not packed bits
    metric: str = ""  # ``cosine``, ``dot`` or ``l2``, if the file says so
    rows: int  # at least 1
    dim: int
    dtype: np.dtype[Any]  # as they are read
    number_size = 0  # bytes of a stored number; 0: those of ``dtype``

    def __init__(self, name: str, path: Path, part: str = "", id_column: str = "") -> None:
        """Look at what is there; ``part`` is the array or column of a name after a colon.

        Without the name of an ``id_column`` ids are looked for.

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
    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        """Shape and type of the vectors, as far as the file's beginning says."""

    @abstractmethod
    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        """Vectors from row ``first`` on, as stored, ``[k, dim]`` with ``1 <= k <= size``."""

    def _id_places(self) -> tuple[str | None, list[str]]:
        """Name the place of ids by convention, if it is there, and what else may hold some."""
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
        """Lines about ids that were found under another name than the usual one."""
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

    def vectors(
        self, size: int = BATCH, first: int = 0, last: int | None = None, *, finite: bool = True
    ) -> Iterator[Floats]:
        """Vectors of the rows ``first`` ... ``last - 1`` in order, ``[k, dim]``, ``k <= size``.

        Memory holds one batch of vectors, whatever the number of rows. Numbers that are NaN or
        infinite are refused if ``finite``.

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
            if finite:
                self._require_finite(vectors, start)
            yield vectors
            start += len(vectors)
        if start != last:
            raise BenchError(f"{self.name}: expected {self.rows} rows, got {start}")

    def read(self) -> Floats:
        """All vectors, ``[rows, dim]`` float32.

        Raises:
            BenchError: As :meth:`vectors`; if memory cannot hold them.
        """
        try:
            vectors = np.empty((self.rows, self.dim), np.float32)
        except (MemoryError, ValueError) as error:
            size = 4 * self.rows * self.dim
            raise BenchError(f"{self.name}: memory cannot hold its {size} bytes") from error
        start = 0
        for batch in self.vectors():
            vectors[start : start + len(batch)] = batch
            start += len(batch)
        return vectors

    def row(self, number: int) -> str:
        """A row's name in messages: its number from 0, and its id if it has one."""
        return f"row {number}" + ("" if self.ids is None else f", id {shown(self.ids[number])}")

    def _require_finite(self, vectors: Floats, first: int) -> None:
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            row = self.row(first + int(np.argmin(finite)))
            raise BenchError(
                f"{self.name}: vector: expected finite numbers, got NaN or infinity in {row}"
            )


class PackedSource(Source):
    """A source whose rows lie one after another in a file."""

    start: int = 0  # byte of the first row

    @property
    def packed(self) -> np.dtype[Any]:
        """Type of a whole row as it is stored."""
        return np.dtype((self.dtype, (self.dim,)))

    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        packed = self.packed
        for a in range(first, self.rows, size):
            n = min(size, self.rows - a)
            # Read, not mapped: mapped pages count as the memory of the process.
            offset = self.start + a * packed.itemsize
            stored = np.fromfile(self.path, packed, n, offset=offset)
            if len(stored) < n:
                raise BenchError(f"ends within row {a + len(stored)}")
            yield self._numbers(stored, a)

    def _numbers(self, stored: NDArray[Any], first: int) -> NDArray[Any]:  # noqa: ARG002
        """The vectors ``[k, dim]`` of some stored rows, the first of which is row ``first``."""
        return stored


class ArraysSource(Source):
    """A source of a file with several named arrays, of which another one may hold ids."""

    has_columns = True
    # name -> shape and type; no type for what is not read
    arrays: dict[str, tuple[Shape, np.dtype[Any] | None]]

    def _choose(self) -> None:
        """Set ``part``, the array of vectors."""
        self.part = choose(self.part, {name: shape for name, (shape, _) in self.arrays.items()})

    def _id_places(self) -> tuple[str | None, list[str]]:
        """Name ``NAME_ids``, ``ids`` or ``id``, and other arrays of one number or text a row.

        ``NAME_ids`` are those of another array. Whole numbers that are stored as floating-point
        ones count where their name is one that ids go by.
        """
        usual = [name for name in (f"{self.part}_ids", "ids", "id") if name in self.arrays]
        taken = {f"{name}_ids" for name in self.arrays}
        others = [
            name
            for name, (shape, dtype) in self.arrays.items()
            if shape == (self.rows,)
            and name not in taken
            and dtype is not None
            and (dtype.kind in "iuUST" or (dtype.kind == "f" and likely_ids(name)))
        ]
        return (usual[0] if usual else super()._id_places()[0]), others

    def _require_ids(self, place: str) -> np.dtype[Any]:
        """The type of an array of ids; a BenchError if it has not one id a row."""
        shape, dtype = self.arrays[place]
        is_long = dtype is not None and dtype.itemsize > 4 * LONGEST
        if shape != (self.rows,) or dtype is None or is_long:
            got = f"{cut(list(shape))} {cut(dtype)}"
            raise BenchError(
                f"{cut(place)}: expected an id a row, [{self.rows}], of at most {LONGEST} "
                f"letters, got {got}"
            )
        return dtype
