"""Checks that all formats make of files of others, and the words in which they refuse them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmark.config.files import file_size
from benchmark.errors import BenchError, nearest

T = TypeVar("T")
MOST_BYTES = 2**50
MOST_DIM = 2**20
MOST_NAMES = 4096
"""Arrays of a file, columns of a table, files of a folder."""
DTYPES = frozenset(map(np.dtype, ("float16", "float32", "float64", "int8")))
_TYPES = "float16, float32, float64 or int8"
_BINARY = frozenset(map(np.dtype, ("uint8", "bool")))
_LIKE = re.compile(
    r"ids?_*$|(^|[^a-z])(keys?|pk|index|(file_?)?names?|paths?|ur[il]s?|axis1)([^a-z]|$)"
)
"""Names that ids go by, in lower case; ``axis1`` is pandas' in HDF5."""
_METRICS = {
    "cosine": {"cosine", "angular", "cos", "cosine_similarity"},
    "dot": {"dot", "ip", "inner_product", "dotproduct", "dot_product", "max_inner_product"},
    "l2": {"l2", "euclidean", "euclid", "l2_norm", "l2-squared"},
}
_WIDE = 3  # columns such as d0, d1, d2, which are taken for the numbers of a vector
_SHOWN = 60  # letters of a name that a message shows


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


def several(n: int, one: str, many: str = "") -> str:
    """A number with its noun; ``many`` is that with an s where it is not given.

    Example:
        >>> several(1, "line is", "lines are"), several(2000, "slice")
        ('1 line is', '2,000 slices')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def another_column(names: Iterable[str], ways: str) -> str:
    """The end of a message on names without a column of vectors: what to do.

    ``ways`` says how another one is named, which helps no one whose numbers have a column each.
    """
    stems = Counter(name.rstrip("0123456789") for name in names if name[-1:].isdigit())
    if max(stems.values(), default=0) < _WIDE:
        return ways
    return "a vector's numbers have to be in one column, as a list, or in one array, as .npy"


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn whatever a library raises on a file of others into one line."""
    try:
        yield
    except BenchError:
        raise
    except BaseException as error:
        # Libraries in Rust panic on what they do not expect, by no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        words = str(getattr(error, "strerror", None) or error).split()
        text = f"{' '.join(words) or type(error).__name__:.300}"
        raise BenchError(f"expected {what}, got what cannot be read: {text}") from error


@contextmanager
def nameless(path: Path) -> Iterator[None]:
    """Take the name of a file off errors that begin with it, where a caller puts it there."""
    try:
        yield
    except BenchError as error:
        raise BenchError(str(error.args[0]).removeprefix(f"{path}: ")) from error


def metric_of(word: object) -> str:
    """A file's word for how its vectors compare, as ``cosine``, ``dot`` or ``l2``; else nothing.

    Example:
        >>> metric_of(b"angular"), metric_of("IP"), metric_of("Euclid"), metric_of("hamming")
        ('cosine', 'dot', 'l2', '')
    """
    word = word.decode(errors="replace") if isinstance(word, bytes) else word
    text = str(word).lower().removeprefix("vector_").removesuffix("_ops")
    for metric, words in _METRICS.items():
        if text in words:
            return metric
    return ""


def require_file(path: Path) -> int:
    """Bytes of a regular file; a BenchError, without its name, for anything else."""
    with nameless(path):
        return file_size(path, MOST_BYTES)


def require_vectors(shape: tuple[int, ...], dtype: np.dtype[Any], has_bytes: bool) -> None:
    """Raise a BenchError unless an array may hold vectors, by its shape and type.

    Where bytes are not the format's own numbers (``has_bytes``), they are packed bits.
    """
    if dtype in _BINARY and not has_bytes:
        got = f"binary vectors ({dtype})"
        if dtype == np.uint8:
            got = "uint8, which is packed bits or quantised: save float32 or int8"
        raise BenchError(f"expected {_TYPES}, got {got}")
    if dtype not in _BINARY and dtype.newbyteorder("=") not in DTYPES:
        raise BenchError(f"expected vectors of {_TYPES}, got {cut(dtype)}")
    if len(shape) != 2 or not (shape[0] >= 1 and 1 <= shape[1] <= MOST_DIM):
        raise BenchError(
            f"expected vectors [n, dim], at least one and dim at most {MOST_DIM}, "
            f"got {cut(list(shape))}"
        )


def choose(wanted: str, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Choose the array of a file with several: by a name, else the only one ``[n, dim]``.

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


def the_one(kind: str, found: Sequence[T], names: Iterable[str], way: str) -> T:
    """The only one found of a kind; a BenchError with all names there are, and the way to name one.

    ``names`` are those of all that the file has.
    """
    if len(found) != 1:
        raise BenchError(f"expected one {kind}, got {listed(names)}; {way} names one")
    return found[0]


def likely_ids(name: str) -> bool:
    """Compare a column's name with those that ids go by."""
    return _LIKE.search(name.lower()) is not None
