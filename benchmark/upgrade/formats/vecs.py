"""Vectors as fvecs and bvecs files: each row is its length (int32), then its numbers.

Source: http://corpus-texmex.irisa.fr, the files of SIFT1M and its like.
"""

from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import MOST_DIM, require_file
from benchmark.upgrade.formats.sink import Sink
from benchmark.upgrade.formats.source import StreamedSource, Vectors


class FvecsSource(StreamedSource):
    """A file of float32 vectors."""

    format = "fvecs"
    has_sidecar = True
    number: np.dtype[Any] = np.dtype("<f4")

    def _open(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        size = require_file(self.path)
        with self.path.open("rb") as file:
            dim = int.from_bytes(file.read(4), "little", signed=True)
        if not 1 <= dim <= MOST_DIM:
            raise BenchError(f"expected rows of 1 to {MOST_DIM} numbers, got {dim} in row 0")
        rows, rest = divmod(size, 4 + dim * self.number.itemsize)
        if rest:
            raise BenchError(f"expected whole rows of {dim} numbers, {rest} bytes are left over")
        return (rows, dim), self.number

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, its length included."""
        return 4 + self.dim * self.number.itemsize

    def _stream(self) -> IO[bytes]:
        return self.path.open("rb")

    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        self._read = first
        yield from super()._blocks(size, first)

    def _vectors(self, raw: bytes) -> NDArray[Any]:
        rows = np.frombuffer(raw, _row(self.dim, self.number))
        if (other := rows["dim"] != self.dim).any():
            at = int(np.argmax(other))
            raise BenchError(
                f"expected {self.dim} numbers in each row, got {rows['dim'][at]} "
                f"in row {self._read + at}"
            )
        self._read += len(rows)
        return np.ascontiguousarray(rows["numbers"])


class BvecsSource(FvecsSource):
    """A file of vectors of bytes, 0 to 255 each; they are numbers, not packed bits."""

    format = "bvecs"
    has_bytes = True
    number = np.dtype("<u1")


class FvecsSink(Sink):
    """A file of float32 vectors, their ids in an npy file beside it."""

    has_sidecar = True
    dtypes = ("float32",)

    def _begin(self, dim: int) -> None:
        self._row = _row(dim, self.dtype)
        self._file = self._stack.enter_context(self.part.open("wb"))

    def _append(self, vectors: Vectors) -> None:
        rows = np.empty(len(vectors), self._row)
        rows["dim"], rows["numbers"] = vectors.shape[1], vectors
        self._file.write(rows.data)


def _row(dim: int, number: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([("dim", "<i4"), ("numbers", number, (dim,))])
