"""Vectors as fvecs and bvecs files: each row is its length (int32), then its numbers.

Source: http://corpus-texmex.irisa.fr, the files of SIFT1M and its like.
"""

from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import MOST_DIM, require_file
from benchmark.upgrade.formats.sink import FileSink
from benchmark.upgrade.formats.source import PackedSource, Shape


class FvecsSource(PackedSource):
    """A file of float32 vectors."""

    format = "fvecs"
    has_sidecar = True
    number: np.dtype[Any] = np.dtype("<f4")

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        size = require_file(self.path)
        with self.path.open("rb") as file:
            dim = int.from_bytes(file.read(4), "little", signed=True)
        if not 1 <= dim <= MOST_DIM:
            raise BenchError(f"expected rows of 1 to {MOST_DIM} numbers, got {dim} in row 0")
        rows, rest = divmod(size, _row(dim, self.number).itemsize)
        if rest:
            raise BenchError(f"expected whole rows of {dim} numbers, {rest} bytes are left over")
        return (rows, dim), self.number

    @property
    def packed(self) -> np.dtype[Any]:
        """The length of a row, then its numbers."""
        return _row(self.dim, self.number)

    def _numbers(self, stored: NDArray[Any], first: int) -> NDArray[Any]:
        if (other := stored["dim"] != self.dim).any():
            at = int(np.argmax(other))
            raise BenchError(
                f"expected {self.dim} numbers in each row, got {stored['dim'][at]} "
                f"in row {first + at}"
            )
        return np.ascontiguousarray(stored["numbers"])


class BvecsSource(FvecsSource):
    """A file of vectors of bytes, 0 to 255 each; they are numbers, not packed bits."""

    format = "bvecs"
    has_bytes = True
    number = np.dtype("<u1")


class FvecsSink(FileSink):
    """A file of float32 vectors, their ids in an npy file beside it."""

    has_sidecar = True
    dtypes = ("float32",)

    def _opened(self, dim: int) -> IO[bytes]:
        self._row = _row(dim, self.dtype)
        return self._stack.enter_context(self.part.open("wb"))

    def _append(self, vectors: NDArray[Any]) -> None:
        rows = np.empty(len(vectors), self._row)
        rows["dim"], rows["numbers"] = vectors.shape[1], vectors
        self._file.write(rows.data)


def _row(dim: int, number: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([("dim", "<i4"), ("numbers", number, (dim,))])
