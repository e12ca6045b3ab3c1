"""Two sources of vectors of the same items, row by row: joined by ids, in any order."""

import itertools
import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import shown
from benchmark.upgrade.formats.ids import Ids
from benchmark.upgrade.formats.source import BATCH, Source, Vectors


@dataclass(frozen=True)
class Join:
    """Which row of one source is which of another.

    Attributes:
        left: Rows of the first source that have a partner, in its order, ``[n]``.
        right: The partner of each, a row of the second source, ``[n]``.
        names: Of the two sources.
        rows: Of the two sources.
        by_id: Whether ids decided; else rows pair as they stand.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    names: tuple[str, str]
    rows: tuple[int, int]
    by_id: bool

    @property
    def missing(self) -> tuple[int, int]:
        """Rows of the first and of the second source without a partner."""
        return self.rows[0] - len(self.left), self.rows[1] - len(self.right)

    @property
    def in_step(self) -> bool:
        """Whether both have the same items in the same order."""
        return not any(self.missing) and bool((self.right == np.arange(len(self.right))).all())

    def __str__(self) -> str:
        """What was paired, and how many rows of which side were not."""
        how = "by id" if self.by_id else "row by row, as there are no ids"
        alone = (f"{n:,} only in {name}" for n, name in zip(self.missing, self.names, strict=True))
        return f"{len(self.left):,} rows paired {how}; {', '.join(alone)}"


def join(left: Source, right: Source) -> Join:
    """Pair the rows of two sources: by ids where both have them, as they stand where neither has.

    Where one side's ids are whole numbers and the other's text, ``7`` is ``"7"``.

    Raises:
        BenchError: If only one has ids, an id comes twice, no id is in both, or there are none
            and the numbers of rows differ.
    """
    names, rows = (left.name, right.name), (left.rows, right.rows)
    if left.ids is None and right.ids is None:
        if left.rows != right.rows:
            raise BenchError(
                f"{right.name}: expected {left.rows} rows as {left.name}, got {right.rows}; "
                "with ids on both sides rows may be missing"
            )
        every = np.arange(left.rows)
        return Join(every, every, names, rows, by_id=False)
    if left.ids is None or right.ids is None:
        with_ids, without = (right, left) if left.ids is None else (left, right)
        raise BenchError(f"{without.name}: expected ids, as {with_ids.name} has some")
    mine, its = codes(*alike(left.ids, right.ids))
    order = np.argsort(its, kind="stable")
    at = np.minimum(np.searchsorted(its[order], mine), len(order) - 1)
    partner = order[at]
    found = np.flatnonzero(its[partner] == mine)
    if not len(found):
        raise BenchError(
            f"{right.name}: ids: expected some of {left.name}, {shown(left.ids[0])} and the like, "
            f"got none of them but {shown(right.ids[0])} and the like"
        )
    return Join(found, partner[found], names, rows, by_id=True)


def alike(left: Ids, right: Ids) -> tuple[Ids, Ids]:
    """Both as whole numbers or both as text."""
    if left.dtype.kind == right.dtype.kind:
        return left, right
    return left.astype(StringDType()), right.astype(StringDType())


def codes(left: Ids, right: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whole numbers that are equal, and ordered, as the ids of both sides are.

    NumPy's ``searchsorted`` misses text of more than 15 letters (2.4.6), and its quicksort of text
    may end the process; a stable sort, which first places ask for, does neither.
    """
    if left.dtype.kind == "i":
        return left, right
    both = np.concatenate([left, right])
    _, _, inverse = np.unique(both, return_index=True, return_inverse=True)
    return inverse[: len(left)].astype(np.int64), inverse[len(left) :].astype(np.int64)


def rows_of(names: list[str], ids: Ids) -> NDArray[np.int64]:
    """The row of each name among ids of which none comes twice; -1 where it is none of them."""
    rows = np.full(len(names), -1, np.int64)
    if ids.dtype.kind == "i":
        numbers = [_number(name) for name in names]
        places = np.array([i for i, number in enumerate(numbers) if number is not None], np.int64)
        wanted: Ids = np.array([number for number in numbers if number is not None], np.int64)
    else:
        places, wanted = np.arange(len(names)), np.array(names, StringDType())
    if not len(wanted):
        return rows
    # Names are sorted rather than ids, of which a gallery has many.
    wanted, known = codes(wanted, ids)
    order = np.argsort(wanted, kind="stable")
    ordered = wanted[order]
    at = np.minimum(np.searchsorted(ordered, known), len(ordered) - 1)
    found = np.flatnonzero(ordered[at] == known)
    rows[places[order[at[found]]]] = found
    return rows


def _number(name: str) -> int | None:
    """The whole number that a name writes as ids do, if it is one."""
    if not re.fullmatch(r"0|-?[1-9][0-9]{0,18}", name):
        return None
    number = int(name)
    return number if -(2**63) <= number < 2**63 else None


def pairs(
    left: Source, right: Source, joined: Join, size: int = BATCH, folder: Path | None = None
) -> Iterator[tuple[Ids | None, Vectors, Vectors]]:
    """Ids and vectors of both sources for the rows of a join, in the first one's order.

    Where the second is in another order it is copied once to a file in ``folder`` (by default the
    system's for temporary files), float32, as files are read from front to back: memory holds a
    batch of both, whatever the number of rows.
    """
    if joined.in_step:
        yield from _in_step(left, right, size)
        return
    with Copy(right, folder) as copy:
        start = 0
        for ids, vectors in left.batches(size):
            first, last = np.searchsorted(joined.left, [start, start + len(vectors)])
            kept = joined.left[first:last] - start
            start += len(vectors)
            if len(kept):
                partners = copy.take(joined.right[first:last])
                yield None if ids is None else ids[kept], vectors[kept], partners


def _in_step(
    left: Source, right: Source, size: int
) -> Iterator[tuple[Ids | None, Vectors, Vectors]]:
    others, rest = right.batches(size), np.empty((0, right.dim), np.float32)
    for ids, vectors in left.batches(size):
        # Batches of long vectors are shorter than others.
        while len(rest) < len(vectors):
            rest = np.concatenate([rest, next(others)[1]])
        yield ids, vectors, rest[: len(vectors)]
        rest = rest[len(vectors) :]


_AT_ONCE = 4096
"""Rows of a copy that are read at once: the order wanted needs them a second time."""


class Copy(AbstractContextManager["Copy"]):
    """The vectors of a source in a file whose rows are read in any order."""

    def __init__(self, source: Source, folder: Path | None) -> None:
        self.dim, self.name = source.dim, source.name
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        try:
            for _, vectors in source.batches():
                self.file.write(np.ascontiguousarray(vectors).data)
            self.file.flush()
        except BaseException:
            self.file.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Vectors of some rows, ``[k, dim]``, read in the file's order, neighbours at once.

        Raises:
            BenchError: If the file ends before a row.
        """
        order = np.argsort(rows, kind="stable")
        out = np.empty((len(rows), self.dim), np.float32)
        ends = np.flatnonzero(np.diff(rows[order]) != 1) + 1
        for first, last in itertools.pairwise([0, *ends.tolist(), len(rows)]):
            for start in range(first, last, _AT_ONCE):
                here = order[start : min(start + _AT_ONCE, last)]
                found = np.empty((len(here), self.dim), np.float32)
                self._read(int(rows[here[0]]), found)
                out[here] = found
        return out

    def _read(self, row: int, into: Vectors) -> None:
        """Rows that follow each other in the file."""
        self.file.seek(row * 4 * self.dim)
        read = self.file.readinto(into.data.cast("B"))  # type: ignore[attr-defined]
        if read != into.nbytes:
            raise BenchError(
                f"temporary copy of {self.name}: expected {into.nbytes} bytes of row {row} on, got "
                f"{read}"
            )
