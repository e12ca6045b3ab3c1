"""Vectors in index files of faiss: flat ones as they are, others read back with what they lost.

A flat index, also one with ids of its own (``IndexIDMap``), is read from the file's bytes, row by
row. What scalar or product quantisers and inverted lists hold is read back by the library, which
takes the whole file into memory.

Source: ``faiss/impl/index_write.cpp``, the layout since version 1.5.
"""

import contextlib
import struct
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import cut, require_file
from benchmark.upgrade.formats.ids import AT_ONCE
from benchmark.upgrade.formats.source import PackedSource, Shape

_FLAT = {b"IxFI", b"IxF2", b"IxFl"}
_WITH_IDS = {b"IxMp", b"IxM2"}
_OTHERS = {
    b"IxSQ": "a scalar quantiser", b"IxPq": "a product quantiser", b"IwFl": "inverted lists",
    b"IwSq": "inverted lists of a scalar quantiser", b"IwPQ": "inverted lists of a product "
    "quantiser", b"IHNf": "a graph", b"IxPT": "a transform",
}  # fmt: skip
"""Beginnings of the files of other indexes that are read back, and what they are."""
_LOSSY = {b"IxSQ", b"IxPq", b"IwSq", b"IwPQ", b"IxPT"}
_METRICS = {0: "dot", 1: "l2"}
_HEADER = struct.Struct("<iqqqBi")  # dim, rows, two fillers, is trained, metric
_COUNT = struct.Struct("<Q")


class FaissSource(PackedSource):
    """Vectors of an index file, with ids where it has some."""

    format = "faiss"
    _kind = b""  # of an index that the library reads back
    _ids_at = 0
    _index: Any = None
    _ids: Any = None

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        size = require_file(self.path)
        with self.path.open("rb") as file:
            kind = file.read(4)
            with_ids = kind in _WITH_IDS
            if with_ids:
                outer = _header(file)
                kind = file.read(4)
            if kind in _FLAT:
                dim, rows, metric = _header(file)
                (n,) = _COUNT.unpack(_bytes(file, _COUNT.size))
                self.start = file.tell()
                end = self.start + 4 * n
                if n != rows * dim or end > size:
                    raise BenchError(
                        f"expected {rows} vectors of {dim} numbers, got {(size - self.start) // 4}"
                    )
                if with_ids:
                    file.seek(end)
                    (n,) = _COUNT.unpack(_bytes(file, _COUNT.size))
                    self._ids_at = file.tell()
                    if n != rows or self._ids_at + 8 * n > size or outer[1] != rows:
                        raise BenchError(f"expected {rows} ids, got {n}")
                self.metric = _METRICS.get(metric, "")
                return (rows, dim), np.dtype("<f4")
        if kind not in _OTHERS:
            raise BenchError(
                f"expected a flat, SQ, PQ, IVF or HNSW index, got the mark '{cut(kind)}'"
            )
        self._kind = kind
        return self._read_back()

    def _read_back(self) -> tuple[Shape, np.dtype[Any]]:
        """Let the library read a file whose vectors are not stored as they were."""
        try:
            import faiss
        except ModuleNotFoundError as error:
            raise BenchError(
                f"{_OTHERS[self._kind]} needs the package faiss: pip install 'compatbench[faiss]'"
            ) from error
        with _no_more_than(faiss, require_file(self.path)):
            # Tables that make a search fast are larger than the file.
            flags = faiss.IO_FLAG_READ_ONLY | faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE
            index: Any = faiss.read_index(str(self.path), flags)
        inner: Any = faiss.downcast_index(index)
        if hasattr(inner, "id_map"):
            self._ids = faiss.vector_to_array(inner.id_map)
            inner = faiss.downcast_index(inner.index)
        if hasattr(inner, "make_direct_map"):
            own_ids = BenchError(
                f"{_OTHERS[self._kind]} with ids of their own, or without those that were "
                "removed: expected ids in an IndexIDMap around it"
            )
            try:
                inner.make_direct_map()
            except RuntimeError as error:
                raise own_ids from error
            if (faiss.vector_to_array(inner.direct_map.array) < 0).any():  # an id comes twice
                raise own_ids
        self._index, self._kept = inner, index  # the outer one owns the inner
        self.metric = _METRICS.get(index.metric_type, "")
        return (int(index.ntotal), int(index.d)), np.dtype("<f4")

    @property
    def told(self) -> list[str]:
        """A line about vectors that are not what they were."""
        if self._kind not in _LOSSY:
            return super().told
        return [
            f"{self.name}: vectors are read back from {_OTHERS[self._kind]}, not as they were; "
            "beside fresh vectors by the old model `bench upgrade doctor` says what was lost",
            *super().told,
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Read the index anew in another process."""
        return super().__getstate__() | {"_index": None, "_kept": None}

    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        if not self._kind:
            yield from super()._blocks(size, first)
            return
        if self._index is None:
            self._read_back()
        for a in range(first, self.rows, size):
            yield self._index.reconstruct_n(a, min(size, self.rows - a))

    def _id_places(self) -> tuple[str | None, list[str]]:
        return ("ids" if self._ids_at or self._ids is not None else None), []

    def _stored_ids(self, place: str) -> Iterator[Any]:  # noqa: ARG002
        if not self._ids_at:
            yield self._ids
            return
        for a in range(0, self.rows, AT_ONCE):
            n = min(AT_ONCE, self.rows - a)
            yield np.fromfile(self.path, "<i8", n, offset=self._ids_at + 8 * a)


@contextlib.contextmanager
def _no_more_than(faiss: Any, size: int) -> Iterator[None]:
    """Let no array of a file claim more bytes than the file has, where the library can say so."""
    if not hasattr(faiss, "set_deserialization_vector_byte_limit"):
        yield
        return
    before = faiss.get_deserialization_vector_byte_limit()
    faiss.set_deserialization_vector_byte_limit(size)
    try:
        yield
    finally:
        faiss.set_deserialization_vector_byte_limit(before)


def _header(file: IO[bytes]) -> tuple[int, int, int]:
    """Dimension, number of rows and metric of an index."""
    dim, rows, _, _, _, metric = _HEADER.unpack(_bytes(file, _HEADER.size))
    if metric > 1:
        file.read(4)  # its argument
    if rows < 1 or dim < 1:
        raise BenchError(f"expected vectors, got {rows} of {dim} numbers")
    return dim, rows, metric


def _bytes(file: IO[bytes], n: int) -> bytes:
    found = file.read(n)
    if len(found) < n:
        raise BenchError("expected a whole index, the file is cut off")
    return found
