"""Two sources of vectors of the same items, row by row: joined by ids, in any order."""

import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.errors import BenchError, located
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.formats.checks import reading, shown
from benchmark.upgrade.formats.ids import Ids, places
from benchmark.upgrade.formats.rows import BLOCK, Rows, gather, require_directions

IN_MEMORY = 2**29
"""Bytes of rearranged vectors that are held in memory; more of them are read again each time."""
_COMPOSED = 1000
"""Ids that are looked for with accents encoded otherwise, where none is found."""
Reader = Callable[[int, int], Floats]
"""Gives the vectors of places ``a`` ... ``b - 1``; each call goes on where the last one ended."""


@dataclass(frozen=True)
class Join:
    """Rows of one source that belong to rows of another."""

    left: Ints  # rows of the first source that have a partner, in its order, [n]
    right: Ints  # the partner of each, a row of the second source, [n]
    names: tuple[str, str]
    rows: tuple[int, int]  # of the two sources, all of them
    by_id: bool  # else rows pair as they stand

    @property
    def missing(self) -> tuple[int, int]:
        """Rows of the first and of the second source without a partner."""
        return self.rows[0] - len(self.left), self.rows[1] - len(self.right)

    @property
    def in_step(self) -> bool:
        """True where both have the same items in the same order."""
        return not any(self.missing) and bool((self.right == np.arange(len(self.right))).all())

    def __str__(self) -> str:
        """The rows that were paired, and how many of which side were not."""
        how = "by id" if self.by_id else "row by row, as there are no ids"
        alone = (f"{n:,} only in {name}" for n, name in zip(self.missing, self.names, strict=True))
        return f"{len(self.left):,} rows paired {how}; {', '.join(alone)}"


def join(left: Rows, right: Rows) -> Join:
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
    partner = places(left.ids, right.ids)
    found = np.flatnonzero(partner >= 0)
    if not len(found):
        raise BenchError(
            f"{right.name}: ids: expected some of {left.name}, {shown(left.ids[0])} and the like, "
            f"got none of them but {shown(right.ids[0])} and the like"
            f"{_accents(left.ids, right.ids)}"
        )
    return Join(found, partner[found], names, rows, by_id=True)


def _accents(left: Ids, right: Ids) -> str:
    """A remark where ids are the same but for how accents are encoded; else empty."""

    def composed(ids: Ids) -> Iterator[str]:
        return (unicodedata.normalize("NFC", str(each)) for each in ids)

    some = {*composed(left[:_COMPOSED])}
    same = any(each in some for each in composed(right))
    return ", which have the same letters, encoded otherwise (Unicode NFC or NFD)" * same


def join_all(left: Rows, right: Rows, wanted: str) -> Join:
    """As :func:`join`; a BenchError with what is wanted if a row of the first has no partner."""
    joined = join(left, right)
    if joined.missing[0]:
        alone = int(np.setdiff1d(np.arange(left.rows), joined.left)[0])
        first = left.row(alone)
        raise BenchError(f"{right.name}: expected {wanted}; {joined}, the first at {first}")
    return joined


class Rearranged:
    """Rows of a source in another order, read in passes from front to back.

    Few of them are held in memory. Of many, those in the source's order are read along with it;
    else the source is copied once to a file, float32, whose rows are read in any order.
    """

    def __init__(
        self, source: Rows, order: Ints, in_memory: int | None = None, folder: Path | None = None
    ) -> None:
        """Read nothing yet; ``order`` is the source's row of each place, ``[s]``.

        The copy is made in ``folder``, else in the system's for such files.
        """
        self.source, self.order, self.dim, self._folder = source, order, source.dim, folder
        most = IN_MEMORY if in_memory is None else in_memory
        self.is_held = 4 * len(order) * self.dim <= most

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def in_step(self) -> bool:
        """True where the source has its rows in this order."""
        return bool((np.diff(self.order) > 0).all())

    @cached_property
    def held(self) -> Floats:
        """All of them, ``[s, dim]``."""
        return gather(self.source, self.order)

    def check(self, distance: str) -> None:
        """Read all of the source; a BenchError if a vector that is used has no direction."""
        used = np.argsort(self.order)
        ordered, start = self.order[used], 0
        out = np.empty((len(self.order) if self.is_held else 0, self.dim), np.float32)
        for vectors in self.source.vectors(BLOCK):
            a, b = np.searchsorted(ordered, [start, start + len(vectors)])
            some = vectors if b - a == len(vectors) else vectors[ordered[a:b] - start]
            require_directions(self.source, some, distance, ordered[a:b])
            if self.is_held:
                out[used[a:b]] = some
            start += len(vectors)
        if self.is_held:
            self.held = out

    def take(self, wanted: Ints) -> Floats:
        """Vectors of some places, ``[k, dim]``, in at most one pass over the source."""
        return self.held[wanted] if self.is_held else gather(self.source, self.order[wanted])

    def reader(self, first: int, last: int) -> Reader:
        """Start reading the places ``first`` ... ``last - 1``."""
        if self.is_held:
            return lambda a, b: self.held[a:b]
        return self._along(first, last) if self.in_step else self._from_copy

    def _along(self, first: int, last: int) -> Reader:
        start = int(self.order[first]) if first < last else 0
        end = int(self.order[last - 1]) + 1 if first < last else 0
        blocks = self.source.vectors(BLOCK, start, end)
        block: Floats = np.empty((0, self.dim), np.float32)

        def take(a: int, b: int) -> Floats:
            nonlocal start, block
            wanted, done = self.order[a:b], 0
            out = np.empty((len(wanted), self.dim), np.float32)
            while done < len(wanted):
                k = int(np.searchsorted(wanted, start + len(block)))
                out[done:k] = block[wanted[done:k] - start]
                done = k
                if done < len(wanted):
                    start, block = start + len(block), next(blocks)
            return out

        return take

    def _from_copy(self, a: int, b: int) -> Floats:
        rows = self.order[a:b]
        by_row, out = np.argsort(rows), np.empty((len(rows), self.dim), np.float32)
        shape = self.source.rows, self.dim
        with located(f"temporary copy of {self.source.name}"), reading("all of its rows"):
            # Mapped anew each time: what was mapped before no longer counts as memory.
            mapped = np.memmap(self._copy, np.float32, "r", shape=shape)
            out[by_row] = mapped[rows[by_row]]
        return out

    @cached_property
    def _copy(self) -> Any:
        file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
        for vectors in self.source.vectors():
            file.write(np.ascontiguousarray(vectors).data)
        file.flush()
        return file


def pairs(
    left: Rows, right: Rows, joined: Join, size: int = BLOCK, folder: Path | None = None
) -> Iterator[tuple[Floats, Floats]]:
    """Vectors of both sources for the rows of a join, in the first one's order.

    Memory holds a batch of both, whatever the number of rows; see :class:`Rearranged`.
    """
    partners = Rearranged(right, joined.right, 0, folder)
    take, start = partners.reader(0, len(partners)), 0
    for vectors in left.vectors(size):
        a, b = np.searchsorted(joined.left, [start, start + len(vectors)])
        kept = joined.left[a:b] - start
        start += len(vectors)
        if len(kept):
            yield vectors[kept], take(int(a), int(b))
