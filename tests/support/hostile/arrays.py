"""Hostile npy files of vectors."""

from __future__ import annotations

import ast
import io
import pickle
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from support.hostile import TOKEN, Sample, Sparse, in_place
from support.hostile.engine import Form, other_bytes, other_values
from support.hostile.modules import DIM, Opens

VECTORS = "vectors.npy"


def npy(
    header: str, data: bytes = b"", version: bytes = b"\x01\x00", size: int | None = None
) -> bytes:
    """An npy file with a header of one's own."""
    text = header.encode("latin-1", "replace")
    layout = "<H" if version == b"\x01\x00" else "<I"
    most = 2 ** (8 * struct.calcsize(layout))
    return b"\x93NUMPY" + version + struct.pack(layout, (size or len(text)) % most) + text + data


def _header(descr: str = "'<f4'", order: str = "False", shape: str = f"(2, {DIM})") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def _loads(raw: bytes) -> Any:
    value = ast.literal_eval(raw[10 : 10 + int.from_bytes(raw[8:10], "little")].decode())
    return value | {"shape": list(value["shape"])}


def _dumps(value: Any) -> bytes:
    shape = value.get("shape") if isinstance(value, dict) else None
    if isinstance(shape, list):
        value = value | {"shape": tuple(shape)}
    return npy(repr(value) + "\n", struct.pack("<f", 1.0) * (2 * DIM))


NPY = Form(_loads, _dumps)


def sound() -> bytes:
    """Two rows of zeros."""
    return npy(_header(), struct.pack("<f", 1.0) * (2 * DIM))


def _saved(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def vectors() -> Iterator[Sample]:
    """Hostile files where vectors are taken."""
    for name, raw in (*other_values(sound(), NPY, 40), *other_bytes(sound(), most=20), *_files()):
        yield Sample("vectors", name, {VECTORS: raw})
    yield from in_place("vectors", VECTORS)
    for name, shape, size in (("32-gib", (2**31, DIM), 2**35), ("row-of-4-gb", (1, 10**9), 4e9)):
        begins = npy(_header(shape=str(shape)))
        sparse = Sparse(int(size) + len(begins), begins)
        yield Sample("vectors", f"sparse-{name}", {VECTORS: sparse})


def _files() -> Iterator[tuple[str, bytes]]:
    data = bytes(8 * DIM)
    for name, shape in (
        ("huge", "(1099511627776, 1099511627776)"), ("2-to-63", "(9223372036854775807, 4)"),
        ("wide", "(2, 1000000)"), ("65-dimensions", "(" + "1, " * 65 + ")"), ("empty", "(0, 4)"),
    ):  # fmt: skip
        yield f"shape-{name}", npy(_header(shape=shape), data)
    for name, descr in (
        ("object", "'|O'"), ("void", "'|V100000000'"), ("text", "'<U1000'"), ("complex", "'<c8'"),
        ("date", "'<M8[s]'"), ("half", "'<f2'"), ("long-double", "'<f16'"), ("big-endian", "'>f4'"),
        ("nested", "[('a', [('b', '|O')])]"), ("subarray", "('<f4', (1000000, 1000000))"),
        ("deep", "[('a', " * 40 + "'<f4'" + ")]" * 40), ("comma", "'f4,f4'"), ("int", "'<i8'"),
    ):  # fmt: skip
        yield f"type-{name}", npy(_header(descr=descr), data)
    for name, header in (
        ("call", f"__import__('os').system('touch {TOKEN}')"), ("lambda", "(lambda: 0)()"),
        ("comprehension", "{x: 1 for x in range(10**9)}"), ("unhashable", "{[]: 1}"),
        ("deep", "(" * 5000 + ")" * 5000), ("product", "9**9**9"), ("digits", "1" * 9000),
        ("fortran", _header(order="True")),
        ("python-2", "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 4L)}"),
    ):  # fmt: skip
        yield f"header-{name}", npy(header, data)
    yield "header-of-4-gib", npy(_header(), data, b"\x02\x00", 2**32 - 1)
    yield "header-of-5-mib", npy(_header() + " " * (5 * 2**20), data, b"\x02\x00")
    yield "pickled-objects", _saved(np.array([[Opens()] * DIM] * 2, object))
    yield "pickle", pickle.dumps(Opens())
    out = io.BytesIO()
    np.savez_compressed(out, a=np.zeros((2**22, DIM), np.float32))
    yield "npz", out.getvalue()
    rows = np.ones((2, DIM), np.float32)
    for name, number in (("nan", np.nan), ("inf", np.inf), ("largest", 3.4e38)):
        yield f"rows-{name}", _saved(np.where(np.eye(2, DIM) > 0, np.float32(number), rows))
    yield "rows-too-large-for-float32", _saved(rows.astype(np.float64) * 1e300)
    yield "rows-of-zeros", _saved(rows * 0)
    yield "another-width", _saved(np.ones((2, DIM + 1), np.float32))
    yield "100000-rows", _saved(np.ones((100_000, DIM), np.float32))
