"""What all formats ask of files of others, and the words in which they refuse them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.config.files import file_size
from benchmark.errors import BenchError, nearest

MOST_BYTES = 2**50
MOST_DIM = 2**20
MOST_NAMES = 4096
"""Arrays of a file, columns of a table, files of a folder."""
DTYPES = frozenset(map(np.dtype, ("float16", "float32", "float64", "int8")))
_BINARY = frozenset(map(np.dtype, ("uint8", "bool")))
_LIKE = re.compile(
    r"ids?_*$|(^|[^a-z])(keys?|pk|index|(file_?)?names?|paths?|ur[il]s?|axis1)([^a-z]|$)"
)
"""Names that ids go by, in lower case; ``axis1`` is pandas' in HDF5."""
_SHOWN = 60
"""Letters of a name that a message shows."""


def shown(value: object) -> str:
    """An id for a message: text in quotes, cut if it is long."""
    return repr(cut(value)) if isinstance(value, str) else str(value)


def cut(name: object) -> str:
    """A name for a message, its beginning if it is long."""
    text = str(name)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def listed(names: Iterable[str], most: int = 8) -> str:
    """Some names for a message; ``none`` if there are none."""
    some = list(map(cut, names))
    more = f" and {len(some) - most} more" if len(some) > most else ""
    return ", ".join(some[:most]) + more or "none"


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever a library raises on a file of others, as one line."""
    try:
        yield
    except BenchError:
        raise
    except Exception as error:
        words = str(getattr(error, "strerror", None) or error).split()
        text = f"{' '.join(words) or type(error).__name__:.300}"
        raise BenchError(f"expected {what}, got what cannot be read: {text}") from error


def require_file(path: Path) -> int:
    """Bytes of a regular file; a BenchError, without its name, for anything else."""
    try:
        return file_size(path, MOST_BYTES)
    except BenchError as error:
        raise BenchError(str(error.args[0]).removeprefix(f"{path}: ")) from error


def require_vectors(shape: tuple[int, ...], dtype: np.dtype[Any], has_bytes: bool) -> None:
    """BenchError unless an array may hold vectors, as shape and type say.

    Where bytes are not the format's own numbers (``has_bytes``), they are packed bits.
    """
    if dtype in _BINARY and not has_bytes:
        raise BenchError(f"expected float16, float32 or int8, got binary vectors ({dtype})")
    if dtype not in _BINARY and dtype.newbyteorder("=") not in DTYPES:
        raise BenchError(f"expected vectors of float16, float32 or int8, got {cut(dtype)}")
    if len(shape) != 2 or not (shape[0] >= 1 and 1 <= shape[1] <= MOST_DIM):
        raise BenchError(
            f"expected vectors [n, dim], at least one and dim at most {MOST_DIM}, "
            f"got {cut(list(shape))}"
        )


def choose(wanted: str, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """The array of a file with several: that of a name, else the only one ``[n, dim]``.

    Raises:
        BenchError: Listing what there is, if none or several would do.
    """
    if wanted in shapes:
        return wanted
    if wanted:
        close = nearest(cut(wanted), map(cut, list(shapes)[:8]))
        raise BenchError(f"expected an array of the file, got the name '{cut(wanted)}'{close}")
    flat = [name for name, shape in shapes.items() if len(shape) == 2]
    if len(flat) == 1:
        return flat[0]
    which = "one of several arrays" if flat else "an array [n, dim]"
    raise BenchError(f"expected {which}, named as FILE:NAME; got {listed(flat or shapes)}")


def ids_of(name: str, names: Iterable[str]) -> str | None:
    """The array of the ids of array ``name``: ``NAME_ids``, ``ids`` or ``id``, if one is there."""
    known = set(names)
    return next((each for each in (f"{name}_ids", "ids", "id") if each in known), None)


def id_arrays(arrays: Mapping[str, tuple[tuple[int, ...], Any]], rows: int) -> list[str]:
    """Arrays with one whole number or text a row, of those of a file by shape and type.

    ``NAME_ids`` are those of another array. Whole numbers that are stored as floating-point ones
    count where their name is one that ids go by.
    """
    others = {f"{name}_ids" for name in arrays}
    return [
        name
        for name, (shape, dtype) in arrays.items()
        if shape == (rows,)
        and name not in others
        and dtype is not None
        and (dtype.kind in "iuUST" or (dtype.kind == "f" and likely_ids(name)))
    ]


def likely_ids(name: str) -> bool:
    """Whether a column's name is one that ids go by."""
    return _LIKE.search(name.lower()) is not None
