"""The stored gallery as strategies see it: streamed block by block, in either model's space."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmark.contract.arrays import as_vectors, require_direction
from benchmark.contract.conversion import Conversion
from benchmark.errors import BenchError
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.upgrade.formats.ids import Ids, as_ids, require_unique

BLOCK = 1 << 16
"""Rows of a block at most; of long vectors a source gives fewer."""


class Rows(Protocol):
    """Vectors that are read from front to back: a file's ``Source``, or :class:`ArrayRows`."""

    name: str
    rows: int
    dim: int

    @property
    def ids(self) -> Ids | None:
        """Ids of all rows; None where there are none."""

    def batches(self, size: int = ...) -> Iterator[tuple[Ids | None, Floats]]:
        """Ids and vectors in order, ``[k, dim]`` float32."""

    def row(self, number: int) -> str:
        """A row's name in messages."""


class ArrayRows:
    """An array of vectors, memory-mapped or not, as a file's source; a BenchError refuses it."""

    def __init__(self, name: str, vectors: Any, ids: Any = None) -> None:
        """Take vectors ``[n, dim]`` and their ids ``[n]``; numbers are looked at when read."""
        array = vectors if isinstance(vectors, np.ndarray) else as_vectors(name, vectors)
        if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "fi":
            got = f"{array.dtype} {list(array.shape)}"
            raise BenchError(f"{name}: expected numbers [n, dim], got {got}")
        self.name, self.array = name, array
        self.rows, self.dim = array.shape
        self.ids = None if ids is None else as_ids(ids)
        if self.ids is not None:
            if len(self.ids) != self.rows:
                raise BenchError(f"{name}: expected {self.rows} ids, got {len(self.ids)}")
            require_unique(self.ids)

    def batches(self, size: int = BLOCK) -> Iterator[tuple[Ids | None, Floats]]:
        """Ids and vectors in order."""
        for a in range(0, self.rows, size):
            ids = None if self.ids is None else self.ids[a : a + size]
            yield ids, as_vectors(self.name, self.array[a : a + size])

    def row(self, number: int) -> str:
        """A row's number."""
        return f"row {number}"


@dataclass(frozen=True)
class Block:
    """Some rows of the gallery, ascending, with their vectors by both models.

    Attributes:
        rows: Of the gallery, int64 ``[k]``.
        old: As they are stored, ``[k, d_old]``.
        make_new: Gives those by the new model, or what stands in for them, ``[k, d_new]``.
    """

    rows: Ints
    old: Floats
    make_new: Callable[[], Floats]
    _made: dict[str, Floats] = field(default_factory=dict)

    @property
    def new(self) -> Floats:
        """Vectors by the new model, made once."""
        return self.made("", self.make_new)

    def converted(self, name: str, conversion: Conversion) -> Floats:
        """Old vectors after a conversion, made once for its name."""
        return self.made(name, lambda: conversion.convert(self.old))

    def made(self, name: str, make: Callable[[], Floats]) -> Floats:
        """What ``make`` gives, kept under a name."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


Blocks = Callable[[], Iterator[Block]]
"""Starts a pass over a gallery."""


@dataclass(frozen=True)
class StandIn:
    """What stands for new vectors that nobody has computed: a converted vector and a residual.

    Each item gets what the map missed on one of the held-out items, drawn by its row: scores then
    scatter about the map's as true ones do. Where the map knows nothing, this is another item's new
    vector, and counts are those of the sample, scaled up. The map is one of least squares, whose
    output is not normalised: it is short where it knows little.
    """

    conversion: Conversion
    residuals: Floats  # new minus converted vector of held-out items, ``[k, d_new]``

    @classmethod
    def fitted(cls, conversion: Conversion, old: Floats, new: Floats) -> "StandIn":
        """Take the residuals of held-out items, ``[k, d_old]`` and ``[k, d_new]``."""
        return cls(conversion, unit(new, conversion.distance) - conversion.convert(old))

    def __call__(self, rows: Ints, old: Floats) -> Floats:
        """Vectors ``[k, d_new]`` for items of the gallery, the same in every pass."""
        drawn = (rows.astype(np.uint64) + 1) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)
        donors = (drawn % np.uint64(len(self.residuals))).astype(np.int64)
        return np.asarray(self.conversion.convert(old) + self.residuals[donors])


def unit(vectors: Floats, distance: str) -> Floats:
    """Directions of vectors where a cosine compares; else they stay as they are."""
    if distance != "cosine":
        return vectors
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


class Gallery:
    """A gallery of which some rows have new vectors.

    Attributes:
        rows: How many items there are.
        embedded: Those with a new vector, ascending, ``[s]``.
        old: Old vectors of these, ``[s, d_old]``, and
        new: new ones, ``[s, d_new]``.
    """

    def __init__(self, stored: Rows, embedded: Ints, new: Floats, distance: str) -> None:
        """Look at all stored vectors once, and keep those of embedded rows."""
        self.stored, self.rows = stored, stored.rows
        self.embedded, self.new = embedded, new
        self.old: Floats = np.empty((len(embedded), stored.dim), np.float32)
        for start, old in self._old_blocks():
            require_direction(stored.name, old, distance, start)
            a, b = np.searchsorted(embedded, [start, start + len(old)])
            self.old[a:b] = old[embedded[a:b] - start]

    @property
    def complete(self) -> bool:
        """Whether every item has a new vector."""
        return len(self.embedded) == self.rows

    def whole(self, stand_in: StandIn | None = None) -> Iterator[Block]:
        """A pass over all items; ``stand_in`` gives the new vectors of those without."""
        for start, old in self._old_blocks():
            rows = np.arange(start, start + len(old))
            a, b = np.searchsorted(self.embedded, [start, start + len(old)])
            yield Block(rows, old, partial(self._new, rows, old, a, b, stand_in))

    def some(
        self, held: Mask, stand_in: StandIn | None = None, true: Mask | None = None
    ) -> Iterator[Block]:
        """A pass over some of the embedded items, bool ``[s]``.

        With ``stand_in`` only those of ``true``, bool ``[s]``, keep their new vectors.
        """
        places = np.flatnonzero(held)
        for a in range(0, len(places), BLOCK):
            here = places[a : a + BLOCK]
            rows, old, new = self.embedded[here], self.old[here], self.new[here]
            if stand_in is not None and true is not None:
                kept = true[here, None]
                new = np.where(kept, unit(new, stand_in.conversion.distance), stand_in(rows, old))
            yield Block(rows, old, partial(np.asarray, new))

    def _new(self, rows: Ints, old: Floats, a: int, b: int, stand_in: StandIn | None) -> Floats:
        if b - a == len(rows):
            return self.new[a:b]
        if stand_in is None:
            raise ValueError("stand_in: expected one, as not every item has a new vector")
        new = stand_in(rows, old)
        new[self.embedded[a:b] - rows[0]] = unit(self.new[a:b], stand_in.conversion.distance)
        return new

    def _old_blocks(self) -> Iterator[tuple[int, Floats]]:
        start = 0
        for _, old in self.stored.batches(BLOCK):
            yield start, old
            start += len(old)


def gather(source: Rows, wanted: Ints) -> NDArray[np.float32]:
    """Vectors of some rows of a source, in their order, ``[k, dim]``."""
    out, order, start = np.empty((len(wanted), source.dim), np.float32), np.argsort(wanted), 0
    ordered = wanted[order]
    for _, vectors in source.batches(BLOCK):
        a, b = np.searchsorted(ordered, [start, start + len(vectors)])
        out[order[a:b]] = vectors[ordered[a:b] - start]
        start += len(vectors)
    return out
