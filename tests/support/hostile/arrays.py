"""Hostile npy files of vectors."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections.abc import Iterator

import numpy as np

from support.hostile import TOKEN, Sample, Sparse, in_place
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


def _saved(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def vectors() -> Iterator[Sample]:
    """Hostile files where vectors are taken."""
    for name, raw in _files():
        yield Sample("vectors", name, {VECTORS: raw})
    yield from in_place("vectors", VECTORS)
    begins = npy(_header(shape=f"({2**31}, {DIM})"))
    yield Sample("vectors", "sparse-32-gib", {VECTORS: Sparse(2**35 + len(begins), begins)})
    begins = npy(_header(shape="(1, 1000000000)"))
    yield Sample(
        "vectors", "sparse-row-of-4-gb", {VECTORS: Sparse(4 * 10**9 + len(begins), begins)}
    )


def _files() -> Iterator[tuple[str, bytes]]:
    data = bytes(8 * DIM)
    yield "sound", npy(_header(), data)
    for name, shape in (
        ("huge", "(1099511627776, 1099511627776)"), ("negative", "(-2, 4)"), ("empty", "(0, 4)"),
        ("no-dimension", "()"), ("one-dimension", "(8,)"), ("three", "(1, 2, 4)"),
        ("2-to-63", "(9223372036854775807, 4)"), ("2-to-64", "(18446744073709551616,)"),
        ("text", "'ab'"), ("float", "(2.0, 4)"), ("list", "[2, 4]"), ("none", "None"),
        ("bool", "(True, 4)"), ("rows-beyond", "(1000000, 4)"), ("wide", "(2, 1000000)"),
        ("65-dimensions", "(" + "1, " * 65 + ")"), ("width-zero", "(4, 0)"),
    ):  # fmt: skip
        yield f"shape-{name}", npy(_header(shape=shape), data)
    for name, descr in (
        ("object", "'|O'"), ("void", "'|V100000000'"), ("text", "'<U1000'"), ("bytes", "'|S0'"),
        ("complex", "'<c8'"), ("date", "'<M8[s]'"), ("half", "'<f2'"), ("long-double", "'<f16'"),
        ("big-endian", "'>f4'"), ("structured", "[('a', '<f4')]"),
        ("nested", "[('a', [('b', '|O')])]"),
        ("deep", "[('a', " * 40 + "'<f4'" + ")]" * 40), ("nonsense", "'planted'"), ("empty", "''"),
        ("number", "7"), ("none", "None"), ("subarray", "('<f4', (1000000, 1000000))"),
        ("escape", "'\\x1b[2J'"), ("comma", "'f4,f4'"), ("bool", "'|b1'"), ("int", "'<i8'"),
    ):  # fmt: skip
        yield f"type-{name}", npy(_header(descr=descr), data)
    for name, header in (
        ("call", f"__import__('os').system('touch {TOKEN}')"), ("name", "planted"),
        ("lambda", "(lambda: 0)()"), ("list", "[]"), ("nothing", ""), ("open", "{'descr': "),
        ("more-keys", _header()[:-3] + "'planted': 1}"), ("fewer-keys", "{'descr': '<f4'}"),
        ("unhashable", "{[]: 1}"), ("comprehension", "{x: 1 for x in range(10**9)}"),
        ("deep", "(" * 5000 + ")" * 5000), ("deep-200", "(" * 200 + "1" + ")" * 200),
        ("product", "9**9**9"), ("digits", "1" * 9000), ("order-text", _header(order="'yes'")),
        ("order-none", _header(order="None")), ("fortran", _header(order="True")),
        ("null", "\x00" * 100), ("escape", "\x1b[2J"),
        ("python-2", "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 4L)}"),
    ):  # fmt: skip
        yield f"header-{name}", npy(header, data)
    yield "header-length-beyond", npy(_header(), data, size=65_000)
    yield "header-of-4-gib", npy(_header(), data, b"\x02\x00", 2**32 - 1)
    yield "header-of-5-mib", npy(_header() + " " * (5 * 2**20), data, b"\x02\x00")
    yield "version-3", npy(_header(), data, b"\x03\x00")
    yield "version-9", npy(_header(), data, b"\x09\x09")
    yield "no-magic", b"NUMPY" + data
    yield "magic-alone", b"\x93NUMPY"
    yield "cut", npy(_header(), data)[:-5]
    yield "more-behind", npy(_header(), data + bytes(100))
    yield "pickled-objects", _saved(np.array([[Opens()] * DIM] * 2, object))
    yield "pickle", pickle.dumps(Opens())
    out = io.BytesIO()
    np.savez(out, a=np.ones((2, DIM), np.float32))
    yield "npz", out.getvalue()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("a.npy", (2020, 1, 1, 0, 0, 0)), bytes(50 * 2**20))
    yield "zip-bomb", out.getvalue()
    yield "text", b"0.1 0.2 0.3 0.4\n" * 2
    rows = np.ones((2, DIM), np.float32)
    for name, number in (("nan", np.nan), ("inf", np.inf), ("largest", 3.4e38)):
        yield f"rows-{name}", _saved(np.where(np.eye(2, DIM) > 0, np.float32(number), rows))
    yield "rows-too-large-for-float32", _saved(rows.astype(np.float64) * 1e300)
    yield "rows-of-zeros", _saved(rows * 0)
    yield "another-width", _saved(np.ones((2, DIM + 1), np.float32))
    yield "100000-rows", _saved(np.ones((100_000, DIM), np.float32))
