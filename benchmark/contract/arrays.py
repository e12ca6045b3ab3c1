"""Vectors and ids as users pass them, and modules applied to arrays."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.config import registry
from benchmark.config.entry_points import one_line
from benchmark.errors import BenchError, FailedError
from benchmark.models.module import Portable, load_module
from benchmark.ranking.engine import LONGEST, SHORTEST

BLOCK = 512
"""Rows that a module is called with at a time."""

Vectors = NDArray[np.float32]


def apply_part(folder: Path, name: str, *arrays: Any) -> Any:
    """:func:`apply` for a stored part of an update; ``None`` if it has no part of that name."""
    path = folder / f"{name}.safetensors"
    return apply(load_module(path), *arrays) if path.exists() else None


def apply(module: Portable, *arrays: Any) -> Any:
    """Call a module on arrays ``[n, ...]``, in blocks of one size; ``None`` is passed on.

    The output of an item depends neither on its neighbours nor on its place. It is float32 rows
    ``[n, ...]``, or a tuple of them; ``None`` where the module gives none.

    Raises:
        BenchError: If there is no row.
        FailedError: If the module refuses its input or raises an error of its own, or its output is
            something else than a row of real numbers for each row.
    """
    module.eval()
    n = next(len(a) for a in arrays if a is not None)
    if n == 0:
        raise BenchError("expected at least one vector, got none")
    try:
        with torch.inference_mode():
            outputs = [
                module(*(None if a is None else _block(a[start : start + BLOCK]) for a in arrays))
                for start in range(0, n, BLOCK)
            ]
    except (BenchError, MemoryError, OSError):
        raise
    except ValueError as error:
        raise FailedError(str(error)) from error
    except Exception as error:
        files = {str(file.path) for file in registry.method_files().values()}
        raise FailedError(one_line(error, files)) from error
    if isinstance(outputs[0], tuple):
        return tuple(_join(parts, n) for parts in zip(*outputs, strict=True))
    return _join(outputs, n)


def _block(rows: Any) -> Tensor:
    """One block, filled up with zeros: a smaller product sums in another order."""
    block = np.zeros((BLOCK, *rows.shape[1:]), rows.dtype)
    block[: len(rows)] = rows
    return torch.from_numpy(block)


def _join(blocks: Any, n: int) -> Vectors | None:
    """The rows of all blocks, without those that fill the last one up."""
    if blocks[0] is None:
        return None
    for block in blocks:
        if fault := _fault(block):
            raise FailedError(f"wrong output: {fault}")
    return torch.cat(list(blocks))[:n].float().numpy()


def _fault(block: Any) -> str:
    """In words, the difference between a module's output and real numbers for each row."""
    if not isinstance(block, Tensor):
        return f"{type(block).__name__}, expected a Tensor"
    if block.device.type != "cpu":
        return f"a tensor on {block.device}, expected one on the CPU"
    if block.layout != torch.strided or block.is_complex():
        return f"{block.layout} of {block.dtype}, expected a dense tensor of real numbers"
    found = len(block) if block.ndim else 1
    return f"{found} rows for {BLOCK} items" if found != BLOCK else ""


def as_vectors(name: str, values: Any, dim: int | None = None) -> Vectors:
    """An array or tensor of numbers as float32 ``[n, dim]``.

    A BenchError, which begins with ``name``, if the shape or a value is another.
    """
    try:
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite
            values = values.float() if isinstance(values, Tensor) else values
            given = np.asarray(to_numpy(values))
            if given.dtype.kind in "bc":
                raise TypeError(given.dtype)
            vectors = given.astype(np.float32, copy=False)
    except (TypeError, ValueError) as error:
        raise BenchError(f"{name}: expected numbers [n, {dim or 'dim'}], got others") from error
    if vectors.ndim != 2 or 0 in vectors.shape or vectors.shape[1] != (dim or vectors.shape[1]):
        raise BenchError(f"{name}: expected [n, {dim or 'dim'}], got {list(vectors.shape)}")
    require_finite(name, vectors)
    return vectors


def as_ids(name: str, values: Any) -> list[Any]:
    """Ids of items, as they were passed; a BenchError if they are not one an item."""
    ids = to_numpy(values)
    try:
        shape = np.asarray(ids).shape
    except ValueError as error:  # ragged
        raise BenchError(f"{name}: expected one id an item, got lists of them") from error
    if len(shape) != 1:
        raise BenchError(f"{name}: expected one id an item, [n], got {list(shape)}")
    return list(ids)


def require_finite(name: str, rows: Vectors, first: int = 0) -> None:
    """Raise a BenchError that names the row of NaN or infinity; ``first`` is that of ``rows``."""
    if not np.isfinite(rows).all():
        row = first + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise BenchError(f"{name}: expected finite numbers, got NaN or infinity in row {row}")


def require_direction(name: str, rows: Vectors, distance: str) -> None:
    """Raise a BenchError that names the first row that cannot be compared."""
    if found := incomparable(rows, distance):
        row, said = found
        raise BenchError(f"{name}: {said} in row {row}")


def incomparable(rows: Vectors, distance: str) -> tuple[int, str] | None:
    """The first of ``[n, dim]`` that cannot be compared, and why; None where all can.

    All need numbers whose squares float32 holds, and a cosine a direction.
    """
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    good = (squares >= SHORTEST**2) & (squares <= LONGEST**2)
    if distance != "cosine":
        good |= squares == 0
    if good.all():
        return None
    row = int(np.argmin(good))
    if squares[row] == 0:
        return row, "expected a direction, as cosine compares, got zeros"
    lengths = f"{SHORTEST:g} to {LONGEST:g} for {distance}"
    return row, f"expected lengths of {lengths}, got {math.sqrt(squares[row]):.3g}"


def to_numpy(values: Any) -> Any:
    """A tensor as a numpy array; anything else as it is."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values
