"""Ids of vectors: whole numbers or text, one a row, none twice; found, looked up and matched."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from benchmark.errors import BenchError, nearest
from benchmark.ranking.arrays import Ints
from benchmark.upgrade.formats.checks import cut, likely_ids, listed, shown

if TYPE_CHECKING:
    import pandas as pd

Ids = NDArray[Any]
"""``[n]`` int64, or text as numpy's ``StringDType``: 16 bytes a row, more beyond 15 letters."""
LONGEST = 1024
"""Letters of an id."""
AT_ONCE = 2**13
"""Rows whose ids are read at a time."""
ROWS = "-"
"""In place of a column's name: rows are known by their number, whatever the file has."""
_MOST_BYTES, _MOST_TIMES = 2**27, 32
"""Ids may take so many bytes, or so many times those of their file, whichever is more."""
_INSIDE = 15  # bytes of a text that an element of ``StringDType`` holds itself
_EXACT = 2**53  # whole numbers below it are what they are in float64


class _NotTextError(BenchError):
    """Bytes that are no text."""


def as_ids(values: Any, *, hexadecimal: bool = False, first: int = 0) -> Ids:
    """Convert whole numbers or text ``[n]`` to :data:`Ids`, not yet looked at for doubles.

    Whole numbers may be stored as floating-point numbers, text as bytes of UTF-8; of other bytes
    the digits are taken, if ``hexadecimal``. Errors count rows from the ``first``.

    Raises:
        BenchError: If they are anything else, do not fit 64 bits, or one is empty or too long.
    """
    if isinstance(values, list) and values and isinstance(values[0], bytes):
        values = _text(values, hexadecimal=hexadecimal)  # numpy takes zeros off their ends
    array = np.asarray(values)
    if array.ndim != 1:
        raise BenchError(f"ids: expected one a row, [n], got {cut(list(array.shape))}")
    if array.dtype.kind == "f":
        array = _whole(array)
    if array.dtype.kind == "S":
        array = _text(array.tolist(), hexadecimal=hexadecimal)
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and array.max(initial=0) > np.iinfo(np.int64).max:
            raise BenchError(f"ids: expected whole numbers below 2^63, got {array.max()}")
        return array.astype(np.int64, copy=False)
    if array.dtype.kind not in "UT":
        raise BenchError(f"ids: expected whole numbers or text, got {cut(array.dtype)}")
    lengths = np.strings.str_len(array)
    if (longest := int(lengths.max(initial=0))) > LONGEST:
        raise BenchError(f"ids: expected at most {LONGEST} letters, got {longest}")
    if not lengths.all():
        row = first + int(np.argmin(lengths))
        raise BenchError(f"ids: expected an id in each row, got empty text in row {row}")
    array = array.astype(StringDType(), copy=False)
    for row, text in enumerate(array.tolist(), first):
        if "\0" in text:  # which neither numpy's files nor HDF5's hold
            raise BenchError(f"ids: expected text without a zero byte, got one in row {row}")
    return array


def _text(values: list[bytes], *, hexadecimal: bool) -> Ids:
    """Decode bytes, or write their hexadecimal digits, ``[n]``."""
    if hexadecimal:
        return np.array([value.hex() for value in values], StringDType())
    try:
        texts = [value.decode() for value in values]
    except UnicodeDecodeError as error:
        raise _NotTextError("ids: expected text in UTF-8, got other bytes") from error
    if not all(map(str.isprintable, texts)):  # digests of few bytes may be UTF-8 by accident
        raise _NotTextError("ids: expected text, got control characters")
    return np.array(texts, StringDType())


def _whole(array: NDArray[Any]) -> NDArray[np.int64]:
    """Convert floating-point numbers that are whole; a BenchError if one is not."""
    wide = array.astype(np.float64)
    wrong = ~((np.abs(wide) < _EXACT) & (wide == np.floor(wide)))
    if wrong.any():
        raise BenchError(f"ids: expected whole numbers or text, got {wide[np.argmax(wrong)]:g}")
    return wide.astype(np.int64)


def gathered(parts: Callable[[], Iterable[Any]], file_bytes: int) -> Ids:
    """Gather the ids of a file from its parts in order; small files cannot claim much.

    Bytes are text if all of the file are, else hexadecimal digits. ``parts`` starts reading what
    :func:`as_ids` takes.

    Raises:
        BenchError: As :func:`as_ids`; if they take more memory than ids of such a file may.
    """
    most = max(_MOST_BYTES, _MOST_TIMES * file_bytes)
    try:
        return _joined(parts(), most, hexadecimal=False)
    except _NotTextError:
        return _joined(parts(), most, hexadecimal=True)


def _joined(parts: Iterable[Any], most: int, *, hexadecimal: bool) -> Ids:
    size, kept = 0, list[Ids]()
    for values in parts:
        part = as_ids(values, hexadecimal=hexadecimal, first=sum(map(len, kept)))
        size += _n_bytes(part)
        if size > most:
            raise BenchError(f"ids: expected at most {most} bytes of them, got more")
        kept.append(part)
    if len({part.dtype.kind for part in kept}) > 1:
        raise BenchError("ids: expected whole numbers or text, got both")
    out = np.empty(sum(map(len, kept)), kept[0].dtype if kept else np.int64)
    start, kept = 0, kept[::-1]
    while kept:  # each goes when it is copied: two copies of all ids would be too many
        part = kept.pop()
        out[start : start + len(part)] = part
        start += len(part)
    return out


def _n_bytes(ids: Ids) -> int:
    """Bytes that ids take in memory."""
    if ids.dtype.kind == "i":
        return ids.nbytes
    lengths = np.strings.str_len(ids)  # in letters, of at most four bytes
    return ids.nbytes + int(lengths[lengths > _INSIDE].sum())


def require_unique(ids: Ids) -> None:
    """Raise a BenchError that names an id which comes twice, and its first two rows."""
    again = index_of(ids).duplicated()
    if again.any():
        second = int(np.argmax(again))
        first = int(np.argmax(ids == ids[second]))
        raise BenchError(
            f"ids: expected each once, got {shown(ids[second])} in rows {first} and {second}"
        )


def index_of(ids: Ids) -> "pd.Index[Any]":
    """Make a table of ids that finds their places."""
    import pandas as pd

    return pd.Index(ids if ids.dtype.kind == "i" else ids.astype(object))


def alike(left: Ids, right: Ids) -> tuple[Ids, Ids]:
    """Make both whole numbers, or both text: ``7`` is ``"7"``."""
    if left.dtype.kind == right.dtype.kind:
        return left, right
    return left.astype(StringDType()), right.astype(StringDType())


def places(wanted: Ids, known: Ids) -> Ints:
    """Find the place of each wanted id among known ones, none of which comes twice; -1 for none."""
    wanted, known = alike(wanted, known)
    return np.asarray(index_of(known).get_indexer(index_of(wanted)), np.int64)


def rows_of(names: Sequence[str], ids: Ids) -> Ints:
    """Find the row of each name among ids, of which none comes twice; -1 where it is none."""
    if ids.dtype.kind != "i":
        return places(np.array(names, StringDType()), ids)
    # A gallery has many ids: names are made numbers, not ids text.
    numbers = {i: number for i, name in enumerate(names) if (number := _number(name)) is not None}
    rows = np.full(len(names), -1, np.int64)
    rows[[*numbers]] = places(np.array([*numbers.values()], np.int64), ids)
    return rows


def _number(name: str) -> int | None:
    """Read a whole number that is written as ids are, if it is one."""
    if not re.fullmatch(r"0|-?[1-9][0-9]{0,18}", name):
        return None
    number = int(name)
    return number if -(2**63) <= number < 2**63 else None


def pick(
    wanted: str, usual: str | None, others: Sequence[str], read: Callable[[str], Ids]
) -> tuple[Ids | None, str]:
    """Choose the column of ids: give these, and its name where that has to be told.

    Args:
        wanted: The name that a user gives, :data:`ROWS`, or nothing.
        usual: The name by the format's convention, if it is there.
        others: Names of what else has one whole number or text a row.
        read: Reads ids; a BenchError if they are none, or one comes twice.

    Raises:
        BenchError: If there is no such name, or what it names holds no ids; naming them all, if
            several might be meant.
    """
    if wanted == ROWS:
        return None, ""
    known = [*([usual] if usual else []), *others]
    if wanted and wanted not in known:
        hint = nearest(cut(wanted), map(cut, known[:20])) or "; there is none"
        raise BenchError(f"expected a column of ids, got the name '{cut(wanted)}'{hint}")
    if wanted or usual:
        return read(wanted or usual or ""), ""
    likely = [name for name in others if likely_ids(name)]
    found: dict[str, Ids] = {}
    refused: list[BenchError] = []
    for name in likely or others:
        try:
            found[name] = read(name)
        except BenchError as error:
            refused.append(error)
        if len(found) > 1:
            raise BenchError(
                f"ids: expected one column of them, got {listed(likely or others)}: --id-column "
                f"names one, or '{ROWS}' for row numbers"
            )
    if found:
        ((name, ids),) = found.items()
        return ids, name
    if likely:
        raise BenchError(
            f"{refused[0]}; --id-column names another column, or '{ROWS}' for row numbers"
        )
    return None, ""
