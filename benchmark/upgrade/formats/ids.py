"""Ids of vectors: whole numbers or text, one a row, none twice."""

from typing import Any

import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import cut, shown

Ids = NDArray[Any]
"""``[n]`` int64, or text as numpy's ``StringDType``: 16 bytes a row, more beyond 15 letters."""
LONGEST = 1024
"""Letters of an id."""


def as_ids(values: Any) -> Ids:
    """Whole numbers or text ``[n]`` as :data:`Ids`, not yet looked at for doubles.

    Raises:
        BenchError: If they are anything else, do not fit 64 bits, or one is too long.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise BenchError(f"ids: expected one a row, [n], got {cut(list(array.shape))}")
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and array.max(initial=0) > np.iinfo(np.int64).max:
            raise BenchError(f"ids: expected whole numbers below 2^63, got {array.max()}")
        return array.astype(np.int64, copy=False)
    if array.dtype.kind not in "UT":
        raise BenchError(f"ids: expected whole numbers or text, got {cut(array.dtype)}")
    longest = int(np.strings.str_len(array).max(initial=0))
    if longest > LONGEST:
        raise BenchError(f"ids: expected at most {LONGEST} letters, got {longest}")
    return array.astype(StringDType(), copy=False)


def require_unique(ids: Ids) -> None:
    """Raise a BenchError that names an id which comes twice, and its first two rows."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    doubled = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(doubled):
        at = doubled[np.argmin(order[doubled + 1])]  # the one whose second row comes first
        first, second = order[at], order[at + 1]
        raise BenchError(
            f"ids: expected each once, got {shown(ids[first])} in rows {first} and {second}"
        )
