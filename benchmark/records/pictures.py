"""Queries of a board that pages show, the same ones for every method, and pictures of items.

A file has those of one evaluation set: safetensors (no pickle) with the arrays ``rows`` ``[n]``,
``ends`` ``[n]`` and ``webp`` ``[bytes]``, the pictures one behind the other.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.files import read_bytes, write_whole
from benchmark.errors import BenchError
from benchmark.records.details import Nearest

if TYPE_CHECKING:
    from benchmark.records.record import Record

FOLDER = Path("results/pictures")
SIDE = 64
"""Pixels of the longer side of a picture, at most."""
_NAME = re.compile(r"[a-z0-9_-]{1,60}-[0-9a-f]{12}-[a-z0-9_]{1,60}")
_LIMIT = 64 * 2**20
_MOST = 200_000  # pictures of a file
_LONGEST = 64 * 1024  # bytes of a picture

Pictures = Mapping[int, bytes]
"""Row of an item in its evaluation set -> its WebP."""
_ARRAYS = {"rows": np.uint32, "ends": np.uint64, "webp": np.uint8}
EACH = 4
"""Queries of each kind, as far as there are so many."""
KINDS = {"fixed": "Fixed by the update", "broken": "Broken by the update", "typical": "Typical"}


def pictures_name(record: "Record") -> str | None:
    """Name of the file with the pictures of a record's items; None without a known dataset.

    Example: ``glyphs-d32d8cfc6236-test``.
    """
    rules, data = record.parameters, record.dataset
    if rules is None or data is None:
        return None
    part = rules.protocol.evaluation.part or rules.track.evaluation
    name = f"{data.name}-{data.fingerprint[:12]}-{part}"
    return name if _NAME.fullmatch(name) else None


def write_pictures(path: Path, pictures: Pictures) -> None:
    """Write a file of pictures, whole or not at all."""
    from safetensors.numpy import save

    rows = sorted(pictures)
    sizes = [len(pictures[row]) for row in rows]
    arrays: dict[str, NDArray[Any]] = {
        "rows": np.array(rows, np.uint32), "ends": np.cumsum(sizes, dtype=np.uint64),
        "webp": np.frombuffer(b"".join(pictures[row] for row in rows), np.uint8),
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, save(arrays))


def read_pictures(path: Path) -> dict[int, bytes]:
    """Read a file of pictures; BenchError if it is too large, damaged or inconsistent."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(read_bytes(path, _LIMIT))
    except (SafetensorError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise BenchError(f"{path}: not a file of pictures: {reason:.200}") from error
    rows, ends, webp = (_array(path, arrays, *each) for each in _ARRAYS.items())
    limits = np.concatenate([[0], ends.astype(np.int64)])
    sizes = np.diff(limits)
    if len(rows) != len(ends) or len(rows) > _MOST or limits[-1] != len(webp):
        raise BenchError(f"{path}: expected as many rows as ends, and bytes up to the last end")
    if len(rows) and (sizes.min() < 12 or sizes.max() > _LONGEST):
        raise BenchError(f"{path}: a picture of {sizes.min()} to {sizes.max()} bytes")
    content = webp.tobytes()
    found = {}
    for row, start, end in zip(rows.tolist(), limits[:-1], limits[1:], strict=True):
        found[row] = content[start:end]
        if found[row][:4] != b"RIFF" or found[row][8:12] != b"WEBP":
            raise BenchError(f"{path}: picture of item {row}: expected WebP")
    return found


def _array(path: Path, arrays: Mapping[str, NDArray[Any]], name: str, dtype: type) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None or array.dtype != dtype or array.ndim != 1:
        got = "none" if array is None else f"{array.dtype} {list(array.shape)}"
        raise BenchError(f"{path}: {name}: expected {np.dtype(dtype)} [n], got {got}")
    return array


@dataclass(frozen=True)
class LookedAt:
    """A query, and the nearest items before and after the update."""

    kind: str  # a key of KINDS
    query: int  # row of the evaluation set
    before: tuple[tuple[int, bool], ...]  # item and whether it is of the query's class
    after: tuple[tuple[int, bool], ...]


def choose_queries(bounds: Nearest) -> list[tuple[str, int]]:
    """Kind and place among ``bounds.queries`` of the twelve queries that a board's pages show.

    They are chosen by the models alone, without a method: fixed ones have a wrong item first in
    old/old and a right one in new/new, the first and the last case of ``independent``; broken ones
    the other way; typical are the first of the rest, right and wrong ones in the share that the
    rest has of them, and stand in where there are fewer of the others.
    """
    if len(bounds.cases) < 2:
        return []
    before, after = bounds.right[0, :, 0], bounds.right[-1, :, 0]
    chosen = {
        "fixed": np.flatnonzero(~before & after)[:EACH],
        "broken": np.flatnonzero(before & ~after)[:EACH],
    }
    wanted = len(KINDS) * EACH - sum(map(len, chosen.values()))
    chosen["typical"] = _typical(before == after, after, wanted)
    return [(kind, int(place)) for kind in KINDS for place in chosen[kind]]


def kept_nearest(own: Nearest, bounds: Nearest) -> Nearest:
    """Neighbours of the chosen queries alone, from which the very same ones are chosen."""
    places = np.sort(np.array([place for _, place in choose_queries(bounds)], np.int64))
    return Nearest(own.cases, own.queries[places], own.items[:, places], own.right[:, places])


def _typical(
    unmoved: NDArray[np.bool_], right: NDArray[np.bool_], wanted: int
) -> NDArray[np.int64]:
    hits, misses = np.flatnonzero(unmoved & right), np.flatnonzero(unmoved & ~right)
    n = len(hits) + len(misses)
    share = round(min(wanted, n) * len(hits) / n) if n else 0
    return np.sort(np.concatenate([hits[:share], misses[: wanted - share]]))


def look_at(own: Nearest, bounds: Nearest) -> list[LookedAt]:
    """The chosen queries with a method's nearest items by cross-test, or else new/new, if any."""
    if len(own.cases) < 2 or own.queries.tolist() != bounds.queries.tolist():
        return []
    after = 1  # old/old, the cross-test, new/new: without a cross-test new/new is the second
    return [
        LookedAt(kind, int(own.queries[place]), _items(own, 0, place), _items(own, after, place))
        for kind, place in choose_queries(bounds)
    ]


def _items(nearest: Nearest, case: int, place: int) -> tuple[tuple[int, bool], ...]:
    items, right = nearest.items[case, place], nearest.right[case, place]
    return tuple(zip(items.tolist(), right.tolist(), strict=True))
