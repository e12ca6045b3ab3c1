"""The npy layout: headers with a limit, and arrays of ids beside vectors."""

import io
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import cut, require_file
from benchmark.upgrade.formats.ids import AT_ONCE, LONGEST, Ids, gathered

_MOST_HEADER = 2**16
_PART = 2**22  # bytes of ids that are read at a time, at most
_SIDECAR = ".ids.npy"


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Read shape, type and first byte of the array of a stream; nothing is unpickled.

    Raises:
        BenchError: If it is no npy array, holds Python objects, or is not in C order.
        ValueError: From numpy, and more, for headers that are not as they should be.
    """
    # A part of the file: numpy reads as many bytes as a header says it has.
    begin = io.BytesIO(stream.read(_MOST_HEADER))
    version = np.lib.format.read_magic(begin)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0
    }  # fmt: skip
    if version not in readers:
        raise BenchError(f"expected npy version 1 or 2, got {version}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about how Python 2 wrote headers
        shape, fortran, dtype = readers[version](begin)
    if dtype.hasobject:
        raise BenchError("expected numbers, got pickled Python objects, which are not read")
    if fortran and len(shape) > 1:
        raise BenchError("expected rows one after another (C order), got columns (Fortran order)")
    return tuple(shape), dtype, begin.tell()


def write_header(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Write the header of an array in C order."""
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def sidecar(path: Path) -> Path:
    """The file of the ids of the vectors in ``path``, where a format has no place for them."""
    return path.with_name(path.name + _SIDECAR)


def read_flat(path: Path, what: str = "ids") -> NDArray[Any]:
    """Read an npy file of ids or the like, ``[n]``; errors as those of :func:`flat_parts`."""
    return gathered(partial(flat_parts, path, what), require_file(path))


def flat_parts(path: Path, what: str = "ids") -> Iterator[NDArray[Any]]:
    """Read an npy file of ids, ``[n]``, in parts; ``what`` names them in messages.

    Raises:
        BenchError: If it is anything else; or what numpy raises then.
    """
    size = require_file(path)
    with path.open("rb") as file:
        shape, dtype, first = read_header(file)
        if len(shape) != 1 or dtype.kind not in "iufUS" or dtype.itemsize > 4 * LONGEST:
            raise BenchError(
                f"expected {what} [n] as whole numbers or text of at most {LONGEST} letters, "
                f"got {cut(list(shape))} {cut(dtype)}"
            )
        if shape[0] < 0 or first + shape[0] * dtype.itemsize > size:
            raise BenchError(f"expected {shape[0]} {what}, the file ends before")
        file.seek(first)
        yield from rows_in_parts(file, dtype, shape[0])


def rows_in_parts(file: IO[bytes], dtype: np.dtype[Any], rows: int) -> Iterator[NDArray[Any]]:
    """Read so many numbers or texts of a stream, in parts."""
    size = max(1, min(AT_ONCE, _PART // max(1, dtype.itemsize)))
    for start in range(0, rows, size):
        n = min(size, rows - start)
        yield np.frombuffer(file.read(n * dtype.itemsize), dtype, n)


def write_flat(file: IO[bytes], ids: Ids) -> None:
    """Write ids as an npy file, text in letters of four bytes as numpy has them."""
    longest = 0 if ids.dtype.kind == "i" else int(np.strings.str_len(ids).max(initial=1))
    stored = np.dtype(f"<U{max(longest, 1)}") if longest else np.dtype("<i8")
    write_header(file, (len(ids),), stored)
    for start in range(0, len(ids), AT_ONCE):
        file.write(ids[start : start + AT_ONCE].astype(stored).tobytes())
