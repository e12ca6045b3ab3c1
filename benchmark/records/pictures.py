"""Small pictures of evaluated items, which pages show beside the results of a query.

A file has those of one evaluation set: safetensors (no pickle) with the arrays ``rows`` ``[n]``,
``ends`` ``[n]`` and ``webp`` ``[bytes]``, the pictures one behind the other.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.files import read_bytes, write_whole
from benchmark.errors import BenchError

if TYPE_CHECKING:
    from benchmark.records.record import Record

FOLDER = Path("results/pictures")
SIDE = 64
"""Pixels of the longer side of a picture, at most."""
_NAME = re.compile(r"[a-z0-9_-]{1,60}-[0-9a-f]{12}-[a-z0-9_]{1,60}")
_LIMIT = 64 * 2**20
_MOST = 200_000  # pictures of a file
_LONGEST = 64 * 1024  # bytes of a picture

Pictures = Mapping[int, bytes]
"""Row of an item in its evaluation set -> its WebP."""


def pictures_name(record: "Record") -> str | None:
    """Name of the file with the pictures of a record's items; None without a known dataset.

    Example: ``glyphs-d32d8cfc6236-test``.
    """
    rules, data = record.parameters, record.dataset
    if rules is None or data is None:
        return None
    part = rules.protocol.evaluation.part or rules.track.evaluation
    name = f"{data.name}-{data.fingerprint[:12]}-{part}"
    return name if _NAME.fullmatch(name) else None


def write_pictures(path: Path, pictures: Pictures) -> None:
    """Write a file of pictures, whole or not at all."""
    from safetensors.numpy import save

    rows = sorted(pictures)
    sizes = [len(pictures[row]) for row in rows]
    arrays: dict[str, NDArray[Any]] = {
        "rows": np.array(rows, np.uint32), "ends": np.cumsum(sizes, dtype=np.uint64),
        "webp": np.frombuffer(b"".join(pictures[row] for row in rows), np.uint8),
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, save(arrays))


def read_pictures(path: Path) -> dict[int, bytes]:
    """Read and check a file of pictures.

    Raises:
        BenchError: If it is too large, damaged or inconsistent.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(read_bytes(path, _LIMIT))
    except (SafetensorError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise BenchError(f"{path}: not a file of pictures: {reason:.200}") from error
    rows, ends, webp = (_array(path, arrays, *each) for each in _ARRAYS.items())
    limits = np.concatenate([[0], ends.astype(np.int64)])
    sizes = np.diff(limits)
    if len(rows) != len(ends) or len(rows) > _MOST or limits[-1] != len(webp):
        raise BenchError(f"{path}: expected as many rows as ends, and bytes up to the last end")
    if len(rows) and (sizes.min() < 12 or sizes.max() > _LONGEST):
        raise BenchError(f"{path}: a picture of {sizes.min()} to {sizes.max()} bytes")
    content = webp.tobytes()
    found = {}
    for row, start, end in zip(rows.tolist(), limits[:-1], limits[1:], strict=True):
        found[row] = content[start:end]
        if found[row][:4] != b"RIFF" or found[row][8:12] != b"WEBP":
            raise BenchError(f"{path}: picture of item {row}: expected WebP")
    return found


_ARRAYS = {"rows": np.uint32, "ends": np.uint64, "webp": np.uint8}


def _array(path: Path, arrays: Mapping[str, NDArray[Any]], name: str, dtype: type) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None or array.dtype != dtype or array.ndim != 1:
        got = "none" if array is None else f"{array.dtype} {list(array.shape)}"
        raise BenchError(f"{path}: {name}: expected {np.dtype(dtype)} [n], got {got}")
    return array
