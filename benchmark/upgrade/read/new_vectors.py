"""Vectors by the new model of some rows of a gallery, which need not fit into memory."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import cast

import numpy as np

from benchmark.errors import BenchError
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.formats.joining import Copy
from benchmark.upgrade.formats.rows import BLOCK, Rows, gather, require_directions
from benchmark.upgrade.formats.source import Source

IN_MEMORY = 2**29
"""Bytes of new vectors that are held in memory; more of them are read along with the gallery."""
Reader = Callable[[int, int], Floats]
"""Gives the new vectors of places ``a`` ... ``b - 1``; each call goes on where the last one ended.
"""


class NewVectors:
    """Vectors by the new model.

    Attributes:
        source: Where they are.
        rows: Of the gallery that have one, ascending, ``[s]``; a place is an index of this.
        order: The source's row of each place, ``[s]``.
        dim: Numbers of a vector.
    """

    def __init__(self, source: Rows, rows: Ints, order: Ints) -> None:
        """Take a source, and which of its rows belongs to which row of a gallery."""
        self.source, self.rows, self.order, self.dim = source, rows, order, source.dim

    def __len__(self) -> int:
        return len(self.rows)

    def check(self, distance: str) -> None:
        """BenchError if a vector that is used has no direction, or none can be read."""
        used = np.zeros(self.source.rows, bool)
        used[self.order] = True
        start = 0
        for vectors in self.source.vectors(BLOCK):
            here = np.flatnonzero(used[start : start + len(vectors)])
            some = vectors if len(here) == len(vectors) else vectors[here]
            require_directions(self.source, some, distance, start + here)
            start += len(vectors)

    def take(self, places: Ints) -> Floats:
        """New vectors of some places, ``[k, dim]``, in one pass over the source."""
        if "_held" in self.__dict__:
            return self._held[places]
        return gather(self.source, self.order[places])

    def reader(self, first: int, last: int) -> Reader:
        """Start reading the places ``first`` ... ``last - 1``."""
        if 4 * len(self) * self.dim <= IN_MEMORY:
            return lambda a, b: self._held[a:b]
        if self.in_step:
            return self._along(first, last)
        return lambda a, b: self._copy.take(self.order[a:b])

    @cached_property
    def in_step(self) -> bool:
        """Whether the source has its rows in the gallery's order."""
        return bool((np.diff(self.order) > 0).all())

    def shared(self) -> None:
        """Make ready to be sent to other machines.

        Raises:
            BenchError: If they would need a copy of the vectors in another order.
        """
        if 4 * len(self) * self.dim <= IN_MEMORY:
            _ = self._held
        elif not self.in_step:
            raise BenchError(
                f"{self.source.name}: expected the gallery's order for the engine ray, as they are "
                f"more than {IN_MEMORY // 2**20} MiB; got another one"
            )

    @cached_property
    def _held(self) -> Floats:
        return gather(self.source, self.order)

    @cached_property
    def _copy(self) -> Copy:
        return Copy(cast(Source, self.source), None)

    def _along(self, first: int, last: int) -> Reader:
        if first == last:
            return lambda a, b: np.empty((b - a, self.dim), np.float32)
        at = int(self.order[first])
        vectors = self.source.vectors(BLOCK, at, int(self.order[last - 1]) + 1)
        return _Along(vectors, at, self.order, self.dim)


class _Along:
    """Picks rows from passing blocks."""

    def __init__(self, blocks: Iterator[Floats], start: int, order: Ints, dim: int) -> None:
        self.blocks, self.start, self.order = blocks, start, order
        self.block: Floats = np.empty((0, dim), np.float32)

    def __call__(self, a: int, b: int) -> Floats:
        wanted = self.order[a:b]
        out, done = np.empty((len(wanted), self.block.shape[1]), np.float32), 0
        while done < len(wanted):
            stop = self.start + len(self.block)
            k = int(np.searchsorted(wanted, stop))
            out[done:k] = self.block[wanted[done:k] - self.start]
            done = k
            if done < len(wanted):
                self.start, self.block = stop, next(self.blocks)
        return out
