"""The stored gallery as strategies see it: streamed block by block, in either model's space."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from benchmark.contract.conversion import Conversion
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.upgrade.formats.rows import BLOCK, Rows, gather, require_directions
from benchmark.upgrade.read.cluster import Cluster
from benchmark.upgrade.read.new_vectors import NewVectors

T = TypeVar("T")


@dataclass(frozen=True)
class Block:
    """Some rows of the gallery, ascending, with their vectors by both models.

    Attributes:
        rows: Of the gallery, int64 ``[k]``.
        old: As they are stored, ``[k, d_old]``.
        places: Of those that have a vector by the new model, ascending, ``[e]``.
        given: These, ``[e, d_new]``.
    """

    rows: Ints
    old: Floats
    places: Ints
    given: Floats
    _made: dict[str, Floats] = field(default_factory=dict)

    @classmethod
    def whole(cls, rows: Ints, old: Floats, new: Floats) -> "Block":
        """Items that all have new vectors, ``[k, d_new]``."""
        return cls(rows, old, np.arange(len(rows)), new)

    def some(self, places: Ints) -> "Block":
        """Some of its items."""
        if len(places) == len(self.rows):
            return self
        its, there = np.intersect1d(places, self.places, return_indices=True)[1:]
        return Block(self.rows[places], self.old[places], its, self.given[there])

    def with_new(self) -> "Block":
        """Its items that have a new vector."""
        return self.some(self.places)

    @property
    def new(self) -> Floats:
        """Vectors by the new model, ``[k, d_new]``; a ValueError where some have none."""
        if len(self.places) < len(self.rows):
            raise ValueError("new: expected new vectors of all items of the block")
        return self.given

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

    def blocks(self, first: int = 0, last: int | None = None) -> Iterator[Block]:
        """A pass over items."""
        last = self.rows if last is None else last
        start = first
        a, end = map(int, np.searchsorted(self.embedded, [first, last]))
        reader = self.new.reader(a, end)
        for old in self.stored.vectors(BLOCK, first, last):
            rows = np.arange(start, start + len(old))
            b = int(np.searchsorted(self.embedded, start + len(old)))
            yield Block(rows, old, self.embedded[a:b] - start, reader(a, b))
            start, a = start + len(old), b


@dataclass(frozen=True)
class Whole:
    """Passes over a gallery, or over a part of its rows."""

    gallery: Gallery
    first: int = 0
    last: int | None = None

    def __call__(self) -> Iterator[Block]:
        """A pass."""
        return self.gallery.blocks(self.first, self.last)

    def each(self, work: Callable[[Blocks], T]) -> list[T]:
        """Call ``work`` on parts that make up the whole, on the cluster if there is one."""
        cluster = self.gallery.cluster
        if cluster is None:
            return [work(self)]
        alone = replace(self, gallery=_alone(self.gallery))
        return cluster.map(partial(_part, work, alone), cluster.parts(self.gallery.rows))


class WithNew(Whole):
    """Passes over the items that have a new vector."""

    def __call__(self) -> Iterator[Block]:
        """A pass."""
        for block in super().__call__():
            if len(block.places):
                yield block.with_new()


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
        return Block.whole(self.rows, self.old, self.new)

    def blocks(self) -> Iterator[Block]:
        """A pass over the held-out items."""
        places = np.flatnonzero(self.held)
        for a in range(0, len(places), BLOCK):
            here = places[a : a + BLOCK]
            yield Block.whole(self.rows[here], self.old[here], self.new[here])
