"""Files of vectors as other programs write them: by the formats' libraries, or byte by byte."""

from __future__ import annotations

import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from benchmark.errors import BenchError
from benchmark.upgrade.formats import open_vectors

READ = (".npy", ".npz", ".parquet", ".pq", ".hdf5", ".h5", ".fvecs", ".safetensors")
WRITTEN = (".npy", ".npz", ".parquet", ".pq", ".hdf5", ".h5", ".fvecs", ".safetensors")
FILES = Path(__file__).parents[1] / "upgrade" / "files"
"""Written by other programs: twelve vectors, ``ROWS``, most of them by the names ``TEXT``."""
ROWS = (np.arange(48).reshape(12, 4) / 8).astype(np.float32)
TEXT = [f"doc-{i:02}-of-a-long-name" for i in range(12)]


def everything(path: Any) -> tuple[int | None, int]:
    """Read ids and vectors; the numbers of both."""
    source = open_vectors(path)
    n_ids = None if source.ids is None else len(source.ids)
    return n_ids, sum(map(len, source.vectors()))


@contextmanager
def in_time() -> Iterator[None]:
    """Ten seconds at most."""

    def alarm(*_: Any) -> None:
        raise TimeoutError("longer than ten seconds")

    before = signal.signal(signal.SIGALRM, alarm)
    signal.alarm(10)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def refused(said: str) -> Iterator[None]:
    """A block that is refused in one line, in time."""
    with pytest.raises(BenchError, match=said) as caught, in_time():
        yield
    line = str(caught.value)
    assert "\n" not in line and line.isprintable() and len(line) < 1000


def refuses(path: Any, said: str = "expected") -> None:
    """Reading ids or vectors ends in one line."""
    with refused(said):
        everything(path)


def write(path: Path, vectors: np.ndarray, ids: Any = None) -> None:
    """Write a file in the format of its ending, ids as that format has them."""
    {
        ".npy": _npy, ".npz": _npz, ".parquet": parquet, ".pq": parquet, ".hdf5": _hdf5,
        ".h5": _hdf5, ".fvecs": _fvecs, ".bvecs": bvecs, ".safetensors": _safetensors,
    }[path.suffix](path, vectors, ids)  # fmt: skip


def beside(path: Path, ids: Any) -> None:
    """Write the ids of vectors whose format has no place for them."""
    if ids is not None:
        np.save(path.with_name(path.name + ".ids.npy"), np.array(ids))


def _npy(path: Path, vectors: np.ndarray, ids: Any) -> None:
    np.save(path, vectors)
    beside(path, ids)


def _npz(path: Path, vectors: np.ndarray, ids: Any) -> None:
    np.savez_compressed(path, vectors=vectors, **({} if ids is None else {"ids": np.array(ids)}))


def parquet(path: Path, vectors: np.ndarray, ids: Any = None, fixed: bool = True, **options: Any):
    """A file whose lists are of a fixed size, or of any, in row groups of some hundred."""
    flat = pa.array(vectors.reshape(-1))
    if fixed:
        column = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    else:
        starts = np.arange(0, vectors.size + 1, vectors.shape[1], dtype=np.int32)
        column = pa.ListArray.from_arrays(starts, flat)
    columns = {} if ids is None else {"id": ids}
    pq.write_table(pa.table({**columns, "vector": column}), path, row_group_size=300, **options)


def _hdf5(path: Path, vectors: np.ndarray, ids: Any) -> None:
    with h5py.File(path, "w") as file:
        file["train"] = vectors
        if ids is not None:
            file["train_ids"] = list(ids) if isinstance(ids[0], str) else np.array(ids)


def _fvecs(path: Path, vectors: np.ndarray, ids: Any) -> None:
    lengths = np.full((len(vectors), 1), vectors.shape[1], "<i4")
    np.hstack([lengths, np.ascontiguousarray(vectors, "<f4").view("<i4")]).tofile(path)
    beside(path, ids)


def bvecs(path: Path, vectors: np.ndarray, ids: Any = None) -> None:
    """A file of bytes."""
    path.write_bytes(b"".join(struct.pack("<i", len(row)) + bytes(row.tolist()) for row in vectors))
    beside(path, ids)


def _safetensors(path: Path, vectors: np.ndarray, ids: Any) -> None:
    arrays = {"embeddings": vectors}
    if ids is not None and not isinstance(ids[0], str):
        arrays["ids"] = np.array(ids)
    else:
        beside(path, ids)
    save_file(arrays, path)
