"""Checks of arguments, once: vectors, labels and scores as plain arrays.

Arguments are NumPy arrays, anything NumPy can read, or torch tensors (recognised by their methods:
nothing here imports torch); bfloat16 is torch's, ``ml_dtypes``' or bits for :func:`from_bfloat16`.
Each check raises a ValueError that names the argument, what was expected and what came.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Values = NDArray[np.float64]
_STEP = 1 << 20  # values looked at together


def from_bfloat16(bits: NDArray[np.uint16]) -> Floats:
    """Bfloat16 values given as their 16 bits, uint16 of any shape, as float32, exactly.

    Example:
        >>> from_bfloat16(np.array([0x3F80, 0xC000], dtype=np.uint16))
        array([ 1., -2.], dtype=float32)
    """
    if bits.dtype != np.uint16:
        raise ValueError(f"bits: expected uint16, got {bits.dtype}")
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _read(value: Any) -> tuple[NDArray[Any], bool]:
    """A NumPy array, bfloat16 as its bits, and whether it is bfloat16."""
    half = str(getattr(value, "dtype", "")) == "torch.bfloat16"
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
        if half:
            value = value.contiguous().view(dtype=value.new_empty(0).short().dtype)
        value = value.numpy()
    array = np.asarray(value)
    half = half or array.dtype.name == "bfloat16"
    return array.view(np.uint16) if half else array, half


def plain(value: Any) -> NDArray[Any]:
    """``value`` as a NumPy array; a torch tensor is brought to the CPU, bfloat16 to float32."""
    array, half = _read(value)
    return from_bfloat16(array) if half else array


def widened(x: NDArray[Any]) -> Floats:
    """float32 rows of what :func:`compact` returned; float32 itself is not copied."""
    return from_bfloat16(x) if x.dtype == np.uint16 else x.astype(np.float32, copy=False)


def compact(name: str, value: Any, *, dim: int | None = None) -> NDArray[Any]:
    """Unread vectors ``[n, d]`` as C-ordered float32; float16 stays, bfloat16 comes as uint16."""
    array, half = _read(value)
    if array.ndim != 2 or not (half or array.dtype.kind == "f"):
        raise ValueError(f"{name}: expected 2-D floats [n, d], got {array.ndim}-D {array.dtype}")
    if array.shape[1] < 1 or (dim is not None and array.shape[1] != dim):
        raise ValueError(f"{name}: expected dimension {dim or '>= 1'}, got {array.shape[1]}")
    if half or array.dtype == np.float16:
        return array
    with np.errstate(over="ignore", under="ignore"):
        single = np.ascontiguousarray(array, dtype=np.float32)
    if array.dtype != np.float32:
        for wrong, words in (
            (np.isinf(single).any(axis=1) & np.isfinite(array).all(axis=1), "can hold"),
            (array.any(axis=1) & ~single.any(axis=1), "tells from 0"),
        ):
            if wrong.any():
                row = int(np.argmax(wrong))
                got = f"{float(np.abs(array[row]).max()):.3g} in row {row}"
                raise ValueError(f"{name}: expected values that float32 {words}, got {got}")
    return single


def vectors(name: str, value: Any, *, dim: int | None = None) -> Floats:
    """Finite vectors ``[n, d]`` of any float type as C-ordered float32, which is not copied."""
    out = np.ascontiguousarray(widened(compact(name, value, dim=dim)))
    finite(name, out)
    return out


def finite(name: str, array: NDArray[Any]) -> None:
    """Refuse NaN and infinity, naming the row, without a temporary of the array's size."""
    flat = array.reshape(-1)
    for start in range(0, flat.size, _STEP):
        good = np.isfinite(flat[start : start + _STEP])
        if not good.all():
            where = np.unravel_index(start + int(np.argmin(good)), array.shape)
            got = f"{array[where]} in row {int(where[0])}"
            raise ValueError(f"{name}: expected finite values, got {got}")


def one_per_row(name: str, value: Any, n: int) -> NDArray[Any]:
    """One integer, bool or string per row, ``[n]``."""
    array = plain(value)
    if array.dtype == object and all(isinstance(each, str) for each in array.flat):
        array = array.astype(np.str_)  # a column of pandas
    if array.shape != (n,):
        raise ValueError(f"{name}: expected shape ({n},), got {array.shape}")
    if n and array.dtype.kind not in "iubUS":
        raise ValueError(f"{name}: expected integers or strings, got {array.dtype}")
    return array


def codes(name: str, labels: tuple[Any, Any], shape: tuple[int, int]) -> tuple[Ints, Ints]:
    """Labels of queries ``[n]`` and gallery ``[m]`` as integers in the order of the labels."""
    a, b = (
        one_per_row(f"{side}_{name}", value, n)
        for side, value, n in zip(("query", "gallery"), labels, shape, strict=True)
    )
    if len(a) and len(b) and (a.dtype.kind in "US") != (b.dtype.kind in "US"):
        raise ValueError(f"gallery_{name}: expected {a.dtype} as query_{name} has, got {b.dtype}")
    if np.can_cast(np.result_type(a, b), np.int64):
        # They serve as they are, mostly without a copy; the kernels are compiled for plain arrays.
        return np.require(a, np.int64, ["C", "W"]), np.require(b, np.int64, ["C", "W"])
    if np.result_type(a, b).kind == "f":  # which float64 would round
        a, b = a.astype(object), b.astype(object)
    _, inverse = np.unique(np.concatenate([a, b]), return_inverse=True)
    return inverse[: len(a)].astype(np.int64), inverse[len(a) :].astype(np.int64)


def both(name: str, labels: tuple[Any, Any], shape: tuple[int, int]) -> tuple[Ints, Ints]:
    """As :func:`codes`, and two empty arrays where neither side is given."""
    missing = [side for side, x in zip(("query", "gallery"), labels, strict=True) if x is None]
    if len(missing) == 1:
        raise ValueError(f"{missing[0]}_{name}: expected both sides or neither, got None")
    return (np.empty(0, np.int64), np.empty(0, np.int64)) if missing else codes(name, labels, shape)


def scores(name: str, value: Any) -> NDArray[Any]:
    """Scores as a 1-D float32 or float64 array."""
    array = plain(value)
    if array.ndim != 1 or array.dtype.kind != "f":
        raise ValueError(f"{name}: expected 1-D floats, got {array.ndim}-D {array.dtype}")
    array = array.astype(np.float64 if array.dtype == np.float64 else np.float32, copy=False)
    finite(name, array)
    return array


def permutation(order: Any, n: int) -> Ints:
    """An order of ``n`` rows."""
    rows = plain(order)
    if rows.shape != (n,) or rows.dtype.kind not in "iu":
        raise ValueError(f"order: expected {n} integers, got {rows.dtype} {rows.shape}")
    if not np.array_equal(np.sort(rows), np.arange(n)):
        raise ValueError(f"order: expected each of 0 ... {n - 1} once")
    return rows.astype(np.int64)
