"""Vectors that are read from front to back, of a file or an array alike."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmark.contract.arrays import as_vectors, incomparable, require_finite
from benchmark.errors import BenchError, located
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.formats.ids import as_ids, require_unique
from benchmark.upgrade.formats.source import Source

BLOCK = 1 << 16
"""Rows of a block at most; of long vectors a source gives fewer."""


class ArrayRows:
    """An array of vectors, memory-mapped or not, as a file's source; a BenchError refuses it."""

    told: list[str] = []  # noqa: RUF012
    metric = ""
    number_size = 0

    def __init__(self, name: str, vectors: Any, ids: Any = None) -> None:
        """Take vectors ``[n, dim]`` and their ids ``[n]``; numbers are looked at when read."""
        array = vectors if isinstance(vectors, np.ndarray) else as_vectors(name, vectors)
        if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "fi":
            packed = ", as packed bits are" * (array.dtype == np.uint8)
            got = f"{array.dtype} {list(array.shape)}{packed}"
            raise BenchError(f"{name}: expected numbers [n, dim], got {got}")
        self.name, self.array, self.dtype = name, array, array.dtype
        self.rows, self.dim = array.shape
        self.ids = None
        if ids is None:
            return
        with located(name):
            self.ids = as_ids(ids)
            if len(self.ids) != self.rows:
                raise BenchError(f"expected {self.rows} ids, got {len(self.ids)}")
            require_unique(self.ids)

    def vectors(
        self, size: int = BLOCK, first: int = 0, last: int | None = None, *, finite: bool = True
    ) -> Iterator[Floats]:
        """Vectors of some rows in order."""
        last = self.rows if last is None else last
        for a in range(first, last, size):
            with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite
                some = np.asarray(self.array[a : min(a + size, last)], np.float32)
            if finite:
                require_finite(self.name, some, a)
            yield some

    def row(self, number: int) -> str:
        """A row's number."""
        return f"row {number}"


Rows = Source | ArrayRows
"""Vectors that are read from front to back, with ids or without."""


def stored_bytes(source: Rows) -> int:
    """Bytes of a number of a source."""
    return source.number_size or source.dtype.itemsize


def number_bytes(source: Rows) -> int:
    """Bytes of a number as an index holds what a source has; 4 at most, as none holds float64."""
    return min(4, stored_bytes(source))


def new_number_bytes(source: Rows) -> int:
    """Bytes of a number of what takes the place of stored vectors: 2 where theirs have 2, else 4.

    Of one-byte numbers, too, as maps give none; the file of a sample says nothing of it.
    """
    return 2 if stored_bytes(source) == 2 else 4


def require_directions(
    source: Rows, vectors: Floats, distance: str, numbers: Ints | None = None, first: int = 0
) -> None:
    """Raise a BenchError that names the first row that cannot be compared.

    ``vectors`` are rows of the source, ``[k, dim]``: those of some ``numbers``, ``[k]``, else
    ``first`` and the next ones.
    """
    if found := incomparable(vectors, distance):
        place, said = found
        row = source.row(first + place if numbers is None else int(numbers[place]))
        raise BenchError(f"{source.name}: vector: {said} in {row}")


def gather_directions(source: Rows, wanted: Ints, distance: str) -> Floats:
    """Read some rows as :func:`gather`; a BenchError if one of them cannot be compared."""
    vectors = gather(source, wanted)
    require_directions(source, vectors, distance, wanted)
    return vectors


def gather(source: Rows, wanted: Ints, *, finite: bool = True) -> Floats:
    """Read some rows of a source, in the order wanted, ``[k, dim]``, in one pass."""
    out, order = np.empty((len(wanted), source.dim), np.float32), np.argsort(wanted)
    ordered = wanted[order]
    if not len(wanted):
        return out
    start, last = int(ordered[0]), int(ordered[-1]) + 1
    for vectors in source.vectors(BLOCK, start, last, finite=finite):
        a, b = np.searchsorted(ordered, [start, start + len(vectors)])
        out[order[a:b]] = vectors[ordered[a:b] - start]
        start += len(vectors)
    return out
