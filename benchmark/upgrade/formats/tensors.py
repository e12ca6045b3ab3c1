"""Vectors as tensors of safetensors files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json
from safetensors import safe_open

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import MOST_NAMES, cut, require_file
from benchmark.upgrade.formats.flat import rows_in_parts
from benchmark.upgrade.formats.sink import FileSink
from benchmark.upgrade.formats.source import ArraysSource, PackedSource, Shape

_MOST_HEADER = 2**24
_BF16 = "BF16"
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I8": "i1", "U8": "u1", "BOOL": "?", "I64": "<i8",
    "I32": "<i4", "U64": "<u8", "U32": "<u4", "I16": "<i2", "U16": "<u2",
}  # fmt: skip
_NAMES = {np.dtype("<f4"): "F32", np.dtype("<f2"): "F16"}


class SafetensorsSource(PackedSource, ArraysSource):
    """A tensor ``[n, dim]`` of a safetensors file; ids in ``ids`` or ``NAME_ids``, or beside.

    bfloat16 is taken too, and is told as float32, which holds all of it.
    """

    format = "safetensors"
    has_sidecar = True

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        tensors = self._header()
        self.arrays = {
            name: (tuple(each["shape"]), _dtype(each["dtype"])) for name, each in tensors.items()
        }
        self._choose()
        (shape, dtype), kind = self.arrays[self.part], tensors[self.part]["dtype"]
        self.start, self._is_bf16 = self._places[self.part], kind == _BF16
        if self._is_bf16:
            return shape, np.dtype(np.float32)
        if dtype is None:
            raise BenchError(f"expected F16, BF16, F32 or I8 vectors, got {cut(kind)}")
        return shape, dtype

    @property
    def packed(self) -> np.dtype[Any]:
        """A row as it is stored."""
        return np.dtype(("<u2", (self.dim,))) if self._is_bf16 else super().packed

    def _header(self) -> dict[str, Any]:
        """Read names, shapes, types and places of the tensors."""
        size = require_file(self.path)
        with self.path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length <= min(size - 8, _MOST_HEADER):
                most = min(max(size - 8, 0), _MOST_HEADER)
                raise BenchError(f"expected a header of at most {most} bytes, got {length}")
            header = file.read(length)
        with safe_open(self.path, framework="np"):
            pass  # the library looks at names, types and places of all tensors
        tensors: dict[str, Any] = from_json(header)
        tensors.pop("__metadata__", None)
        if len(tensors) > MOST_NAMES:
            raise BenchError(f"expected at most {MOST_NAMES} tensors, got {len(tensors)}")
        self._places = {k: 8 + length + v["data_offsets"][0] for k, v in tensors.items()}
        return tensors

    def _stored_ids(self, place: str) -> Iterator[Any]:
        if place not in self.arrays:
            yield from super()._stored_ids(place)
            return
        kind = self._require_ids(place)
        with self.path.open("rb") as file:
            file.seek(self._places[place])
            yield from rows_in_parts(file, kind, self.rows)

    def _numbers(self, stored: NDArray[Any], first: int) -> NDArray[Any]:  # noqa: ARG002
        if not self._is_bf16:
            return stored
        # A bfloat16 is the upper half of a float32.
        return (stored.astype(np.uint32) << 16).view(np.float32)


def _dtype(name: str) -> np.dtype[Any] | None:
    return np.dtype(_DTYPES[name]) if name in _DTYPES else None


class SafetensorsSink(FileSink):
    """A tensor ``vectors``; ids that are whole numbers in ``ids``, text in an npy file beside it.

    Written by hand, as the library's writer takes whole tensors.
    """

    has_sidecar = True

    @property
    def beside(self) -> Path | None:
        """The file of ids that are text; tensors hold none."""
        return None if self.ids is not None and self.ids.dtype.kind == "i" else super().beside

    def _opened(self, dim: int) -> IO[bytes]:
        file = self._stack.enter_context(self.part.open("wb"))
        inside = self.ids if self.beside is None else None
        first = 0 if inside is None else 8 * self.rows
        end = first + self.rows * dim * self.dtype.itemsize
        header: dict[str, Any] = {}
        if inside is not None:
            header["ids"] = {"dtype": "I64", "shape": [self.rows], "data_offsets": [0, first]}
        header["vectors"] = {
            "dtype": _NAMES[self.dtype], "shape": [self.rows, dim], "data_offsets": [first, end],
        }  # fmt: skip
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)  # the library aligns the data so
        file.write(len(text).to_bytes(8, "little") + text)
        if inside is not None:
            file.write(np.ascontiguousarray(inside, "<i8").data)
        return file
