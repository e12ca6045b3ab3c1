"""Ids of vectors: whole numbers or text, one a row, none twice."""

from collections.abc import Callable, Iterable
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
AT_ONCE = 2**13
"""Rows whose ids are read at a time."""
_MOST_BYTES, _MOST_TIMES = 2**27, 32
"""Ids may take so many bytes, or so many times those of their file, whichever is more."""
_INSIDE = 15
"""Bytes of a text that an element of ``StringDType`` holds itself."""
_EXACT = 2**53
"""Whole numbers below it are what they are in float64."""


class _NotTextError(BenchError):
    """Bytes that are no text."""


def as_ids(values: Any, *, hexadecimal: bool = False) -> Ids:
    """Whole numbers or text ``[n]`` as :data:`Ids`, not yet looked at for doubles.

    Whole numbers may be stored as floating-point numbers, text as bytes of UTF-8; of other bytes
    the digits are taken, if ``hexadecimal``.

    Raises:
        BenchError: If they are anything else, do not fit 64 bits, or one is too long.
    """
    if isinstance(values, list) and values and isinstance(values[0], bytes):
        values = text_of_bytes(values, hexadecimal=hexadecimal)  # numpy takes zeros off their ends
    array = np.asarray(values)
    if array.ndim != 1:
        raise BenchError(f"ids: expected one a row, [n], got {cut(list(array.shape))}")
    if array.dtype.kind == "f":
        array = _whole(array)
    if array.dtype.kind == "S":
        array = text_of_bytes(array.tolist(), hexadecimal=hexadecimal)
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


def text_of_bytes(values: list[bytes], *, hexadecimal: bool) -> Ids:
    """Bytes as the text that they are, or as their hexadecimal digits, ``[n]``.

    Raises:
        BenchError: If they are to be text and are none.
    """
    if hexadecimal:
        return np.array([value.hex() for value in values], StringDType())
    try:
        texts = [value.decode() for value in values]
    except UnicodeDecodeError as error:
        raise _NotTextError("ids: expected text in UTF-8, got other bytes") from error
    if not all(map(str.isprintable, texts)):  # digests of few bytes may be UTF-8 by accident
        raise _NotTextError("ids: expected text, got control characters")
    return np.array(texts, StringDType())


def gathered(parts: Callable[[], Iterable[Any]], file_bytes: int) -> Ids:
    """The ids of a file in one array, from its parts in order; small files cannot claim much.

    Bytes are text if all of the file are, else hexadecimal digits.

    Args:
        parts: Starts reading parts as :func:`as_ids` takes them.
        file_bytes: Of what they are read from.

    Raises:
        BenchError: As :func:`as_ids`; if they take more memory than ids of such a file may.
    """
    most = max(_MOST_BYTES, _MOST_TIMES * file_bytes)
    try:
        return _joined(_limited(parts(), most, hexadecimal=False))
    except _NotTextError:
        return _joined(_limited(parts(), most, hexadecimal=True))


def _limited(parts: Iterable[Any], most: int, *, hexadecimal: bool) -> list[Ids]:
    """Parts of ids; BenchError if they take more than so many bytes."""
    size, kept = 0, list[Ids]()
    for values in parts:
        part = as_ids(values, hexadecimal=hexadecimal)
        size += n_bytes(part)
        if size > most:
            raise BenchError(f"ids: expected at most {most} bytes of them, got more")
        kept.append(part)
    return kept


def _joined(kept: list[Ids]) -> Ids:
    if not kept:
        return np.empty(0, np.int64)
    if len({part.dtype.kind for part in kept}) > 1:
        raise BenchError("ids: expected whole numbers or text, got both")
    out, start = np.empty(sum(map(len, kept)), kept[0].dtype), 0
    kept.reverse()
    while kept:  # each goes when it is copied: two copies of all ids would be too many
        part = kept.pop()
        out[start : start + len(part)] = part
        start += len(part)
    return out


def n_bytes(ids: Ids) -> int:
    """Bytes that ids take in memory."""
    if ids.dtype.kind == "i":
        return ids.nbytes
    lengths = np.strings.str_len(ids)  # in letters, of at most four bytes
    return ids.nbytes + int(lengths[lengths > _INSIDE].sum())


def require_unique(ids: Ids) -> None:
    """Raise a BenchError that names an id which comes twice, and its first two rows."""
    order = np.argsort(ids, kind="stable")
    first, second = -1, len(ids)  # of the double whose second row comes first
    for start in range(0, len(ids) - 1, AT_ONCE):  # slices: a sorted copy would be a second one
        rows = order[start : start + AT_ONCE + 1]
        ordered = ids[rows]
        for at in np.flatnonzero(ordered[1:] == ordered[:-1]):
            if rows[at + 1] < second:
                first, second = int(rows[at]), int(rows[at + 1])
    if first >= 0:
        raise BenchError(
            f"ids: expected each once, got {shown(ids[first])} in rows {first} and {second}"
        )


def _whole(array: NDArray[Any]) -> NDArray[np.int64]:
    """Floating-point numbers as the whole ones that they are; a BenchError if one is not."""
    wide = array.astype(np.float64)
    wrong = ~((np.abs(wide) < _EXACT) & (wide == np.floor(wide)))
    if wrong.any():
        raise BenchError(f"ids: expected whole numbers or text, got {wide[np.argmax(wrong)]:g}")
    return wide.astype(np.int64)
