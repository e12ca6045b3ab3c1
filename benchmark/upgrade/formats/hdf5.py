"""Vectors as datasets of HDF5 files, those of ann-benchmarks among them."""

import math
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import MOST_NAMES, cut, metric_of, require_file
from benchmark.upgrade.formats.ids import AT_ONCE, LONGEST
from benchmark.upgrade.formats.sink import Sink
from benchmark.upgrade.formats.source import ArraysSource, Shape

_MOST_CHUNK = 2**28  # bytes of a chunk, which is read as a whole
_FEWEST = 64  # texts that are read at a time, at least


class Hdf5Source(ArraysSource):
    """A dataset ``[n, dim]``, and another one of ids.

    Nothing that the file names outside of itself is read: no links to other files, no external
    storage, no virtual datasets.
    """

    format = "HDF5"

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        require_file(self.path)
        with h5py.File(self.path, "r") as file:
            self.arrays = {name: _about(each) for name, each in _datasets(file).items()}
            self._choose()
            vectors = _checked(file[self.part])
            _require_written(vectors)
            self.metric = metric_of(file.attrs.get("distance", ""))  # of ann-benchmarks
            self._step = vectors.chunks[0] if vectors.chunks else 1
            return vectors.shape, vectors.dtype

    def _stored_ids(self, place: str) -> Iterator[Any]:
        self._require_ids(place)
        with h5py.File(self.path, "r") as file:
            ids, size = _checked(file[place]), AT_ONCE
            text = h5py.check_string_dtype(ids.dtype)
            if text is not None and text.length is None:
                # Each of many rows may be one and the same text, as long as the whole file.
                size = min(AT_ONCE, max(_FEWEST, _MOST_CHUNK // self.path.stat().st_size))
            elif ids.dtype.itemsize > 4 * LONGEST:
                raise BenchError(f"ids: expected at most {LONGEST} letters")
            for start in range(0, self.rows, size):
                part = ids[start : start + size]
                if part.dtype.kind == "O":  # text of any length, as bytes
                    if max(map(len, part)) > 4 * LONGEST:
                        raise BenchError(f"ids: expected at most {LONGEST} letters")
                    part = part.tolist()
                yield part

    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        # Whole chunks at a time: each would be decompressed again for every part of it.
        step = -(-size // self._step) * self._step
        with h5py.File(self.path, "r") as file:
            vectors = file[self.part]
            for start in range(first - first % self._step, self.rows, step):
                block = vectors[max(start, first) : start + step]
                for at in range(0, len(block), size):
                    yield block[at : at + size]


class Hdf5Sink(Sink):
    """Datasets ``vectors``, and ``ids`` where there are some."""

    def _begin(self, dim: int) -> None:
        file = self._stack.enter_context(h5py.File(self.part, "w"))
        self._vectors = file.create_dataset("vectors", (self.rows, dim), self.dtype)
        if self.ids is None:
            return
        if self.ids.dtype.kind == "i":
            file.create_dataset("ids", data=self.ids)
            return
        text = file.create_dataset("ids", (self.rows,), h5py.string_dtype())
        for start in range(0, self.rows, 2**16):
            text[start : start + 2**16] = self.ids[start : start + 2**16].astype(object)

    def _append(self, vectors: NDArray[Any]) -> None:
        self._vectors[self.written : self.written + len(vectors)] = vectors


def _about(dataset: Any) -> tuple[Shape, np.dtype[Any]]:
    """Shape and type of a dataset, of text as numpy has it."""
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    return dataset.shape or (), np.dtype("T") if is_text else dataset.dtype


def _datasets(file: Any) -> dict[str, Any]:
    """Datasets that a file holds itself, by name; hard links alone are followed."""
    found: dict[str, Any] = {}

    def look(name: str, item: Any) -> None:
        found[name] = item
        if len(found) > MOST_NAMES:
            raise BenchError(f"expected at most {MOST_NAMES} names")

    file.visititems(look)
    return {name: item for name, item in found.items() if isinstance(item, h5py.Dataset)}


def _checked(dataset: Any) -> Any:
    if dataset.external or dataset.is_virtual:
        raise BenchError(f"{cut(dataset.name)}: its numbers are in other files, which are not read")
    return dataset


def _require_written(dataset: Any) -> None:
    """Raise a BenchError if a chunk is too large to be read, or parts were never written."""
    size = dataset.dtype.itemsize
    if dataset.chunks is None:
        expected, got = math.prod(dataset.shape) * size, dataset.id.get_storage_size()
        what = "bytes"
    else:
        if math.prod(dataset.chunks) * size > _MOST_CHUNK:
            raise BenchError(
                f"expected chunks of at most {_MOST_CHUNK} bytes, got {cut(dataset.chunks)}"
            )
        sides = zip(dataset.shape, dataset.chunks, strict=True)
        expected, got = math.prod(-(-n // k) for n, k in sides), dataset.id.get_num_chunks()
        what = "chunks"
    if got < expected:
        raise BenchError(f"expected {expected} {what} of numbers, got {got}: not all is written")
