"""Vectors as tensors of safetensors files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import MOST_NAMES, cut, require_file
from benchmark.upgrade.formats.ids import AT_ONCE
from benchmark.upgrade.formats.sink import FileSink
from benchmark.upgrade.formats.source import ArraysSource, Shape

_DTYPES = {
    "F64": "f8", "F32": "f4", "F16": "f2", "I8": "i1", "U8": "u1", "BOOL": "?", "I64": "i8",
    "I32": "i4", "U64": "u8", "U32": "u4", "I16": "i2", "U16": "u2",
}  # fmt: skip
_NAMES = {np.dtype("<f4"): "F32", np.dtype("<f2"): "F16"}


class SafetensorsSource(ArraysSource):
    """A tensor ``[n, dim]`` of a safetensors file; ids in ``ids`` or ``NAME_ids``, or beside.

    bfloat16 is taken too, and is told as float32, which holds all of it.
    """

    format = "safetensors"
    has_sidecar = True

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        require_file(self.path)
        with safe_open(self.path, framework="pt") as file:
            names = file.keys()
            if len(names) > MOST_NAMES:
                raise BenchError(f"expected at most {MOST_NAMES} tensors, got {len(names)}")
            about = {name: file.get_slice(name) for name in names}
            kinds = {name: each.get_dtype() for name, each in about.items()}
            self.arrays = {
                name: (tuple(each.get_shape()), _dtype(kinds[name])) for name, each in about.items()
            }
        self._choose()
        shape, dtype = self.arrays[self.part]
        if kinds[self.part] == "BF16":
            self.number_size = 2
            return shape, np.dtype(np.float32)
        if dtype is None:
            raise BenchError(f"expected F16, BF16, F32 or I8 vectors, got {cut(kinds[self.part])}")
        return shape, dtype

    def _rows(self, name: str, size: int, first: int) -> Iterator[NDArray[Any]]:
        for a in range(first, self.rows, size):
            # Opened anew each time: what was mapped before no longer counts as memory.
            with safe_open(self.path, framework="pt") as file:
                part = file.get_slice(name)[a : a + size]
            yield (part.float() if str(part.dtype) == "torch.bfloat16" else part).numpy()

    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        return self._rows(self.part, size, first)

    def _stored_ids(self, place: str) -> Iterator[Any]:
        if place not in self.arrays:
            yield from super()._stored_ids(place)
            return
        self._require_ids(place)
        yield from self._rows(place, AT_ONCE, 0)


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
