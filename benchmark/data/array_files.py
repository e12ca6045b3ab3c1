"""npy files of vectors, read and written row by row: larger ones than memory holds."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.files import file_size, plain_io_errors
from benchmark.errors import BenchError, located

Vectors = NDArray[np.float32]
_MOST_BYTES = 2**50
_MOST_DIM = 2**20


def open_rows(name: str, path: str | Path) -> np.memmap[Any, np.dtype[Any]]:
    """Map an npy file of numbers ``[n, dim]``, whose rows :func:`row_blocks` reads.

    BenchError with ``name`` if it is anything else or its rows are not one after another.
    """
    with located(name):
        file_size(Path(path), _MOST_BYTES)
    try:
        rows = np.load(Path(path), mmap_mode="r", allow_pickle=False)
    except Exception as error:  # numpy evaluates a header of literals, which fails in many ways
        text = f"{' '.join(str(error).split()) or type(error).__name__:.300}"
        raise BenchError(f"{name}: cannot read {path} as npy: {text}") from error
    if not isinstance(rows, np.memmap) or rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise BenchError(f"{name}: expected numbers [n, dim] in {path}")
    if rows.shape[1] > _MOST_DIM:
        raise BenchError(f"{name}: expected at most {_MOST_DIM} numbers a row in {path}")
    if 0 in rows.shape:
        raise BenchError(f"{name}: expected at least one vector, got {list(rows.shape)}")
    if not rows.flags.c_contiguous:
        raise BenchError(f"{name}: expected rows one after another (C order) in {path}")
    return rows


def row_blocks(rows: np.memmap[Any, np.dtype[Any]], size: int) -> Iterator[Vectors]:
    """The rows of :func:`open_rows` as float32, ``size`` at a time.

    Read, not mapped: mapped pages count as the memory of the process.
    """
    (n, dim), path = rows.shape, Path(str(rows.filename))
    with path.open("rb") as file:
        file.seek(rows.offset)
        for start in range(0, n, size):
            count = min(size, n - start) * dim
            block = np.fromfile(file, rows.dtype, count)
            if len(block) < count:
                raise BenchError(f"{path}: became shorter while it was read")
            with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite
                yield block.astype(np.float32, copy=False).reshape(-1, dim)


@contextmanager
def writing(paths: Sequence[Path], n: int) -> Iterator[list[Callable[[Vectors], None]]]:
    """Write npy files of ``n`` rows block by block; all appear at the end, or none.

    Yields for each path a function that appends rows, ``[k, dim]``; BenchError if a file cannot be
    written, or the disk is full.
    """
    parts = [path.with_name(f".{path.name}.{os.getpid()}.part") for path in paths]
    for path in paths:
        if not path.parent.is_dir():
            raise BenchError(f"{path}: its folder does not exist")
    try:
        with plain_io_errors(paths[0].parent):
            with ExitStack() as stack:
                files = [stack.enter_context(part.open("wb")) for part in parts]
                yield [_appending(file, n) for file in files]
            for part, path in zip(parts, paths, strict=True):
                part.replace(path)
    except OSError as error:
        raise BenchError(f"{error.filename or paths[0]}: {error.strerror or error}") from error
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _appending(file: IO[bytes], n: int) -> Callable[[Vectors], None]:
    def write(rows: Vectors) -> None:
        if file.tell() == 0:
            header = {"descr": "<f4", "fortran_order": False, "shape": (n, *rows.shape[1:])}
            np.lib.format.write_array_header_1_0(file, header)
        file.write(np.ascontiguousarray(rows, "<f4").data)

    return write
