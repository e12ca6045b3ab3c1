"""Small files whose ids unpack to more than a machine has."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save_file

ROWS = 1_000_000
LONG = "x" * 1000
_DIM = 4


def _vectors(dtype: str = "float16") -> np.ndarray:
    return np.ones((ROWS, _DIM), dtype)


def _fixed(rows: int = ROWS) -> pa.Array:
    flat = pa.array(np.ones(rows * _DIM, np.float32))
    return pa.FixedSizeListArray.from_arrays(flat, _DIM)


def _dictionary(path: Path, words: list[str], rows: int = ROWS) -> None:
    codes = pa.array(np.arange(rows, dtype=np.int32) % len(words))
    column = pa.DictionaryArray.from_arrays(codes, pa.array(words))
    pq.write_table(pa.table({"id": column, "vector": _fixed(rows)}), path, compression="zstd")


def one_text(path: Path) -> None:
    """A million rows of one long id, by a dictionary."""
    _dictionary(path, [LONG])


def some_texts(path: Path) -> None:
    """As it, of a thousand long ids."""
    _dictionary(path, [f"{i:04}{LONG[4:]}" for i in range(1000)])


def different_texts(path: Path) -> None:
    """A million different ids, which have nearly all in common."""
    words = [f"{LONG[8:]}{i:08}" for i in range(ROWS)]
    pq.write_table(pa.table({"id": words, "vector": _fixed()}), path, compression="zstd",
                   use_dictionary=False)  # fmt: skip


def texts_of_an_archive(path: Path) -> None:
    """A million texts of 1,000 letters, four bytes each, packed."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<U1000", "fortran_order": False, "shape": (ROWS,)}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        with archive.open("vectors.npy", "w") as file:
            np.lib.format.write_array(file, _vectors())
        with archive.open("ids.npy", "w", force_zip64=True) as file:
            file.write(header.getvalue())
            block = np.full(10_000, LONG, "<U1000").tobytes()
            for _ in range(ROWS // 10_000):
                file.write(block)


def bytes_of_an_archive(path: Path) -> None:
    """As it, of bytes."""
    np.savez_compressed(path, vectors=_vectors(), ids=np.full(ROWS, LONG.encode(), "S1000"))


def fixed_texts_of_hdf5(path: Path) -> None:
    """A million texts of a fixed length, packed."""
    with h5py.File(path, "w") as file:
        file.create_dataset("vectors", data=_vectors(), compression="gzip")
        ids = file.create_dataset("ids", (ROWS,), "S1000", chunks=(10_000,), compression="gzip")
        for start in range(0, ROWS, 100_000):
            ids[start : start + 100_000] = np.full(100_000, LONG.encode(), "S1000")


def long_texts_of_hdf5(path: Path) -> None:
    """Texts of any length, of which one is very long; h5py makes a copy for each row."""
    with h5py.File(path, "w") as file:
        file.create_dataset("vectors", data=_vectors(), compression="gzip")
        ids = file.create_dataset("ids", (ROWS,), h5py.string_dtype(), chunks=(1000,))
        ids[:] = np.arange(ROWS).astype(str).astype(object)
        ids[ROWS - 1] = "x" * 20_000_000


def sparse_npy(path: Path) -> None:
    """Ids beside vectors that are a hole in a file of 4 GB."""
    np.save(path, _vectors())
    with path.with_name(path.name + ".ids.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<U1000", "fortran_order": False, "shape": (ROWS,)}
        )
        file.truncate(file.tell() + 4000 * ROWS)


def many_numbers(path: Path) -> None:
    """A tensor of numbers, each of them the same."""
    save_file({"v": _vectors(), "ids": np.zeros(ROWS, np.int64)}, path)


FILES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "one-text": ("a.parquet", one_text), "some-texts": ("a.parquet", some_texts),
    "different-texts": ("a.parquet", different_texts), "npz-texts": ("a.npz", texts_of_an_archive),
    "npz-bytes": ("a.npz", bytes_of_an_archive), "hdf5-fixed": ("a.h5", fixed_texts_of_hdf5),
    "hdf5-long": ("a.h5", long_texts_of_hdf5), "npy-sparse": ("a.npy", sparse_npy),
    "numbers": ("a.safetensors", many_numbers),
}  # fmt: skip
"""Name -> the file's name and what writes it."""
