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
from benchmark.upgrade.formats.checks import (
    MOST_NAMES,
    choose,
    cut,
    id_arrays,
    ids_of,
    require_file,
)
from benchmark.upgrade.formats.npy import rows_in_parts
from benchmark.upgrade.formats.sink import Sink
from benchmark.upgrade.formats.source import StreamedSource, Vectors

_MOST_HEADER = 2**24
_BF16 = "BF16"
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I8": "i1", "U8": "u1", "BOOL": "?", "I64": "<i8",
    "I32": "<i4", "U64": "<u8", "U32": "<u4", "I16": "<i2", "U16": "<u2",
}  # fmt: skip
_NAMES = {np.dtype("<f4"): "F32", np.dtype("<f2"): "F16"}


class SafetensorsSource(StreamedSource):
    """A tensor ``[n, dim]`` of a safetensors file; ids in ``ids`` or ``NAME_ids``, or beside.

    bfloat16 is taken too, and is told as float32, which holds all of it.
    """

    format = "safetensors"
    has_columns = True
    has_sidecar = True

    def _open(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        size = require_file(self.path)
        with self.path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length <= min(size - 8, _MOST_HEADER):
                most = min(max(size - 8, 0), _MOST_HEADER)
                raise BenchError(f"expected a header of at most {most} bytes, got {length}")
            header = file.read(length)
        with safe_open(self.path, framework="np"):
            pass  # the library looks at names, types and places of all tensors
        self._tensors = from_json(header)
        self._tensors.pop("__metadata__", None)
        if len(self._tensors) > MOST_NAMES:
            raise BenchError(f"expected at most {MOST_NAMES} tensors, got {len(self._tensors)}")
        self._first = 8 + length
        self.part = choose(self.part, {k: tuple(v["shape"]) for k, v in self._tensors.items()})
        about = self._tensors[self.part]
        self._is_bf16 = about["dtype"] == _BF16
        if self._is_bf16:
            return tuple(about["shape"]), np.dtype(np.float32)
        if about["dtype"] not in _DTYPES:
            raise BenchError(f"expected F16, BF16, F32 or I8 vectors, got {cut(about['dtype'])}")
        return tuple(about["shape"]), np.dtype(_DTYPES[about["dtype"]])

    @property
    def row_bytes(self) -> int:
        """Bytes of a row as stored."""
        return self.dim * (2 if self._is_bf16 else self.dtype.itemsize)

    def _id_places(self) -> tuple[str | None, list[str]]:
        usual, _ = super()._id_places()
        arrays = {k: (tuple(v["shape"]), _dtype(v["dtype"])) for k, v in self._tensors.items()}
        return ids_of(self.part, self._tensors) or usual, id_arrays(arrays, self.rows)

    def _stored_ids(self, place: str) -> Iterator[Any]:
        if place not in self._tensors:
            yield from super()._stored_ids(place)
            return
        about = self._tensors[place]
        kind = _dtype(about["dtype"])
        if about["shape"] != [self.rows] or kind is None or kind.kind not in "iuf":
            got = f"{cut(about['shape'])} {cut(about['dtype'])}"
            raise BenchError(f"{cut(place)}: expected whole numbers [{self.rows}], got {got}")
        with self._at(place) as file:
            yield from rows_in_parts(file, kind, self.rows)

    def _stream(self) -> IO[bytes]:
        return self._at(self.part)

    def _at(self, name: str) -> IO[bytes]:
        file = self.path.open("rb")
        file.seek(self._first + self._tensors[name]["data_offsets"][0])
        return file

    def _vectors(self, raw: bytes) -> NDArray[Any]:
        if not self._is_bf16:
            return super()._vectors(raw)
        # A bfloat16 is the upper half of a float32.
        halves = np.frombuffer(raw, "<u2").astype(np.uint32) << 16
        return halves.view(np.float32).reshape(-1, self.dim)


def _dtype(name: str) -> np.dtype[Any] | None:
    return np.dtype(_DTYPES[name]) if name in _DTYPES else None


class SafetensorsSink(Sink):
    """A tensor ``vectors``; ids that are whole numbers in ``ids``, text in an npy file beside it.

    Written by hand, as the library's writer takes whole tensors.
    """

    has_sidecar = True

    @property
    def beside(self) -> Path | None:
        """The file of ids that are text; tensors hold none."""
        return None if self.ids is not None and self.ids.dtype.kind == "i" else super().beside

    def _begin(self, dim: int) -> None:
        self._file = self._stack.enter_context(self.part.open("wb"))
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
        self._file.write(len(text).to_bytes(8, "little") + text)
        if inside is not None:
            self._file.write(np.ascontiguousarray(inside, "<i8").data)

    def _append(self, vectors: Vectors) -> None:
        self._file.write(vectors.data)
