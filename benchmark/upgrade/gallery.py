"""The stored gallery as strategies see it: streamed block by block, in either model's space."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from benchmark.contract.conversion import Conversion
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.upgrade.cluster import Cluster
from benchmark.upgrade.new_vectors import NewVectors
from benchmark.upgrade.rows import BLOCK, Rows, gather, require_directions

T = TypeVar("T")


@dataclass(frozen=True)
class Block:
    """Some rows of the gallery, ascending, with their vectors by both models.

    Attributes:
        rows: Of the gallery, int64 ``[k]``.
        old: As they are stored, ``[k, d_old]``.
        make_new: Gives those by the new model, or what stands in for them, ``[k, d_new]``.
        make_some: Gives some of these, by their places, without the others; None: it cannot.
    """

    rows: Ints
    old: Floats
    make_new: Callable[[], Floats]
    make_some: Callable[[Ints], Floats] | None = None
    _made: dict[str, Floats] = field(default_factory=dict)

    def some(self, places: Ints) -> "Block":
        """Some of its items."""
        if len(places) == len(self.rows):
            return self
        make = partial(self._some_new, places)
        return Block(self.rows[places], self.old[places], make)

    def _some_new(self, places: Ints) -> Floats:
        if self.make_some is None or "" in self._made:
            return self.new[places]
        return self.make_some(places)

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
        stored: Vectors of the old model.
        new: Those of the new one.
        rows: How many items there are.
        embedded: Those with a new vector, ascending, ``[s]``.
        cluster: Reads parts of the gallery on several machines; None: this process reads it.
    """

    def __init__(
        self, stored: Rows, new: NewVectors, distance: str, cluster: Cluster | None = None
    ) -> None:
        """Look at all vectors once."""
        self.stored, self.rows, self.new, self.cluster = stored, stored.rows, new, cluster
        self.distance, self.embedded = distance, new.rows
        if cluster is not None:
            new.shared()
        new.check(distance)
        Whole(self).each(_check)

    @property
    def complete(self) -> bool:
        """Whether every item has a new vector."""
        return len(self.embedded) == self.rows

    def sample(self, places: Ints) -> tuple[Floats, Floats]:
        """Old and new vectors of some of the embedded rows, by ascending place."""
        return gather(self.stored, self.embedded[places]), self.new.take(places)

    def blocks(
        self, stand_in: StandIn | None = None, first: int = 0, last: int | None = None
    ) -> Iterator[Block]:
        """A pass over items; ``stand_in`` gives the new vectors of those without."""
        last = self.rows if last is None else last
        start = first
        a, end = map(int, np.searchsorted(self.embedded, [first, last]))
        reader = self.new.reader(a, end)
        for old in self.stored.vectors(BLOCK, first, last):
            rows = np.arange(start, start + len(old))
            b = int(np.searchsorted(self.embedded, start + len(old)))
            known = reader(a, b)
            given = rows, old, self.embedded[a:b], known, stand_in
            yield Block(rows, old, partial(self._new, *given), partial(self._some_new, *given))
            start, a = start + len(old), b

    def _some_new(
        self, rows: Ints, old: Floats, embedded: Ints, known: Floats, stand_in: StandIn | None,
        places: Ints,
    ) -> Floats:  # fmt: skip
        wanted = rows[places]
        its, there = np.intersect1d(embedded, wanted, return_indices=True)[:2]
        return self._new(wanted, old[places], its, known[there], stand_in)

    def _new(
        self, rows: Ints, old: Floats, embedded: Ints, known: Floats, stand_in: StandIn | None
    ) -> Floats:
        if len(known) == len(rows):
            return known
        if stand_in is None:
            raise ValueError("stand_in: expected one, as not every item has a new vector")
        new = stand_in(rows, old)
        new[np.searchsorted(rows, embedded)] = unit(known, stand_in.conversion.distance)
        return new


@dataclass(frozen=True)
class Whole:
    """Passes over a gallery, or over a part of its rows."""

    gallery: Gallery
    stand_in: StandIn | None = None
    first: int = 0
    last: int | None = None

    def __call__(self) -> Iterator[Block]:
        """A pass."""
        return self.gallery.blocks(self.stand_in, self.first, self.last)

    def each(self, work: Callable[[Blocks], T]) -> list[T]:
        """Call ``work`` on parts that make up the whole, on the cluster if there is one."""
        cluster = self.gallery.cluster
        if cluster is None:
            return [work(self)]
        alone = Whole(_alone(self.gallery), self.stand_in)
        return cluster.map(partial(_part, work, alone), cluster.parts(self.gallery.rows))


def _part(work: Callable[[Blocks], T], whole: Whole, ends: tuple[int, int]) -> T:
    return work(replace(whole, first=ends[0], last=ends[1]))


def _alone(gallery: Gallery) -> Gallery:
    """The same without its cluster, as workers read it."""
    made = Gallery.__new__(Gallery)
    made.__dict__.update(gallery.__dict__, cluster=None)
    return made


def _check(part: Blocks) -> None:
    """BenchError if a stored vector has no direction."""
    if not isinstance(part, Whole):
        raise TypeError(f"part: expected a Whole, got {type(part).__name__}")
    gallery, start = part.gallery, part.first
    for old in gallery.stored.vectors(BLOCK, part.first, part.last):
        require_directions(gallery.stored, old, gallery.distance, first=start)
        start += len(old)


@dataclass(frozen=True)
class Sample:
    """Embedded items that are held in memory.

    Attributes:
        rows: Of the gallery, ascending, ``[c]``.
        old: Old vectors of these, ``[c, d_old]``, and
        new: new ones, ``[c, d_new]``.
        fitted: Which of them maps are fitted on, ``[c]``.
        held: Which the smaller gallery has, ``[c]``.
    """

    rows: Ints
    old: Floats
    new: Floats
    fitted: Mask
    held: Mask

    @property
    def known(self) -> Block:
        """All of them."""
        return Block(self.rows, self.old, partial(np.asarray, self.new))

    def blocks(self, stand_in: StandIn | None = None, true: Mask | None = None) -> Iterator[Block]:
        """A pass over the held-out items.

        With ``stand_in`` only those of ``true``, bool ``[c]``, keep their new vectors.
        """
        places = np.flatnonzero(self.held)
        for a in range(0, len(places), BLOCK):
            here = places[a : a + BLOCK]
            rows, old, new = self.rows[here], self.old[here], self.new[here]
            if stand_in is not None and true is not None:
                kept = true[here, None]
                new = np.where(kept, unit(new, stand_in.conversion.distance), stand_in(rows, old))
            yield Block(rows, old, partial(np.asarray, new))
