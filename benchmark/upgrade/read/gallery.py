"""The stored gallery as strategies see it: streamed block by block, in either model's space.

On a Ray cluster each worker reads its own rows of the files. What workers count is whole numbers,
and what they find are exact scores, so results equal those of one process bit for bit.
"""

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

import numpy as np

from benchmark.contract.conversion import Conversion
from benchmark.errors import BenchError
from benchmark.metrics.similarity import unit
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.upgrade.formats.joining import IN_MEMORY, Rearranged
from benchmark.upgrade.formats.rows import BLOCK, Rows, require_directions

T_co = TypeVar("T_co", covariant=True)
_LEAST = 4096  # rows of a worker's part


@dataclass(frozen=True)
class GalleryBlock:
    """Some rows of the gallery, ascending, with their vectors by both models."""

    rows: Ints  # of the gallery, int64 [k]
    old: Floats  # as they are stored, [k, d_old]
    places: Ints  # of those that have a vector by the new model, ascending, [e]
    given: Floats  # these, [e, d_new]
    _converted: dict[int, Floats] = field(default_factory=dict)

    @classmethod
    def whole(cls, rows: Ints, old: Floats, new: Floats) -> "GalleryBlock":
        """Items that all have new vectors, ``[k, d_new]``."""
        return cls(rows, old, np.arange(len(rows)), new)

    def some(self, places: Ints) -> "GalleryBlock":
        """Some of its items."""
        if len(places) == len(self.rows):
            return self
        its, there = np.intersect1d(places, self.places, return_indices=True)[1:]
        return GalleryBlock(self.rows[places], self.old[places], its, self.given[there])

    @cached_property
    def with_new(self) -> "GalleryBlock":
        """Its items that have a new vector."""
        return self.some(self.places)

    @property
    def new(self) -> Floats:
        """Vectors by the new model, ``[k, d_new]``; a ValueError where some have none."""
        if len(self.places) < len(self.rows):
            raise ValueError("new: expected new vectors of all items of the block")
        return self.given

    def converted(self, conversion: Conversion) -> Floats:
        """Old vectors after a conversion, which is carried out once."""
        key = id(conversion)
        if key not in self._converted:
            self._converted[key] = conversion.convert(self.old)
        return self._converted[key]


Blocks = Callable[[], Iterator[GalleryBlock]]
"""Starts a pass over a gallery."""
Taking = Generator[None, GalleryBlock | None, T_co]
"""Takes one block after the other, and None at the end; returns what it found."""


class PassJob(Protocol[T_co]):
    """Work on the blocks of a gallery, of which several share a pass."""

    def begin(self) -> Taking[Any]:
        """Start on a part of the gallery."""

    def result(self, parts: Sequence[Any]) -> T_co:
        """Join what was found in all parts."""


def one_pass(blocks: Blocks, jobs: Sequence[PassJob[Any]]) -> list[Any]:
    """Do jobs in one pass over a gallery, and give their results in order."""
    if not jobs:
        return []
    work = partial(_worked, jobs)
    parts = blocks.each(work) if isinstance(blocks, Whole) else [work(blocks)]
    return [job.result(found) for job, found in zip(jobs, zip(*parts, strict=True), strict=True)]


def _worked(jobs: Sequence[PassJob[Any]], blocks: Blocks) -> list[Any]:
    begun = [job.begin() for job in jobs]
    for each in begun:
        next(each)
    for block in blocks():
        for each in begun:
            each.send(block)
    return [_ended(each) for each in begun]


def _ended(begun: Taking[Any]) -> Any:
    try:
        begun.send(None)
    except StopIteration as end:
        return end.value
    raise ValueError("begun: expected a job that ends at None")


def places_of(wanted: Ints, rows: Ints) -> tuple[Ints, Mask]:
    """Places of wanted numbers among some ascending rows, and which of them are there, ``[n]``."""
    at = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
    return at, rows[at] == wanted


def about_mean(vectors: Floats) -> Floats:
    """Directions from the mean of vectors, ``[n, dim]``."""
    return unit(vectors - vectors.mean(0), "cosine")


class Cluster:
    """Workers of a Ray cluster, with one CPU each; files lie at the same path on every machine."""

    def __init__(self) -> None:
        """Connect to the cluster that RAY_ADDRESS names, or start one on this machine.

        Raises:
            BenchError: If Ray is not installed.
        """
        from benchmark.harness.ray import connected  # the harness loads torch

        self.workers = max(1, int(connected().cluster_resources().get("CPU", 1)))

    def parts(self, rows: int) -> list[tuple[int, int]]:
        """First and last row of about equal parts, one a worker."""
        n = min(self.workers, max(1, rows // _LEAST))
        return list(itertools.pairwise(rows * k // n for k in range(n + 1)))

    def map(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """The results of ``work`` on each part, in their order; it is sent to each machine once."""
        from benchmark.harness.ray import in_order

        return list(in_order(_call, work, parts))


def _call(work: Callable[[Any], Any], part: Any) -> Any:
    return work(part)


@dataclass(frozen=True)
class Gallery:
    """A gallery of which some rows have new vectors."""

    stored: Rows
    new: Rearranged
    embedded: Ints  # rows with a new vector, ascending, [s]
    distance: str  # ``cosine``, ``dot`` or ``l2``
    cluster: Cluster | None = None  # reads parts on several machines; None: this process reads

    @property
    def rows(self) -> int:
        """Number of items."""
        return self.stored.rows

    @property
    def complete(self) -> bool:
        """True where every item has a new vector."""
        return len(self.embedded) == self.rows

    @property
    def threads(self) -> int | None:
        """CPU threads of a search: one on the workers of a cluster, else all."""
        return None if self.cluster is None else 1

    def survey(self, places: Ints) -> tuple[Floats, Floats]:
        """Look at all vectors once, and take both of some places of ``embedded``, ascending.

        Returns:
            Old and new vectors, ``[k, d_old]`` and ``[k, d_new]``.

        Raises:
            BenchError: If a vector has no direction or cannot be read; if workers of a cluster
                would need a copy of the new vectors in another order.
        """
        if self.cluster is not None and not (self.new.is_held or self.new.in_step):
            raise BenchError(
                f"{self.new.source.name}: expected the gallery's order for the engine ray, as they "
                f"are more than {IN_MEMORY // 2**20} MiB; got another one"
            )
        self.new.check(self.distance)
        return self.stored_rows(self.embedded[places]), self.new.take(places)

    def stored_rows(self, rows: Ints) -> Floats:
        """Look at all stored vectors once, and take those of some rows, ascending, ``[k, d_old]``.

        Raises:
            BenchError: If a vector has no direction or cannot be read.
        """
        return np.concatenate(Whole(self).each(partial(_surveyed, rows)))

    def blocks(self, first: int = 0, last: int | None = None) -> Iterator[GalleryBlock]:
        """A pass over items."""
        last = self.rows if last is None else last
        start = first
        a, end = map(int, np.searchsorted(self.embedded, [first, last]))
        reader = self.new.reader(a, end)
        for old in self.stored.vectors(BLOCK, first, last):
            rows = np.arange(start, start + len(old))
            b = int(np.searchsorted(self.embedded, start + len(old)))
            yield GalleryBlock(rows, old, self.embedded[a:b] - start, reader(a, b))
            start, a = start + len(old), b


@dataclass(frozen=True)
class Whole:
    """Passes over a gallery, or over a part of its rows."""

    gallery: Gallery
    first: int = 0
    last: int | None = None

    def __call__(self) -> Iterator[GalleryBlock]:
        """A pass."""
        return self.gallery.blocks(self.first, self.last)

    def each(self, work: Callable[["Whole"], Any]) -> list[Any]:
        """Call ``work`` on parts that make up the whole, on the cluster if there is one."""
        cluster = self.gallery.cluster
        if cluster is None:
            return [work(self)]
        alone = Whole(replace(self.gallery, cluster=None))  # as workers read it
        return cluster.map(partial(_part, work, alone), cluster.parts(self.gallery.rows))


def _part(work: Callable[[Whole], Any], whole: Whole, ends: tuple[int, int]) -> Any:
    return work(replace(whole, first=ends[0], last=ends[1]))


def _surveyed(wanted: Ints, part: Whole) -> Floats:
    """Stored vectors of wanted rows, ascending; a BenchError if one has no direction."""
    gallery, start, found = part.gallery, part.first, []
    for old in gallery.stored.vectors(BLOCK, part.first, part.last):
        require_directions(gallery.stored, old, gallery.distance, first=start)
        a, b = np.searchsorted(wanted, [start, start + len(old)])
        found.append(old[wanted[a:b] - start])
        start += len(old)
    return np.concatenate(found)


@dataclass(frozen=True)
class EmbeddedSample:
    """Embedded items that are held in memory."""

    rows: Ints  # of the gallery, ascending, [c]
    old: Floats  # [c, d_old]
    new: Floats  # [c, d_new]
    fitted: Mask  # those that maps are fitted on, [c]
    held: Mask  # those that the smaller gallery has, [c]

    @property
    def known(self) -> GalleryBlock:
        """All of them."""
        return GalleryBlock.whole(self.rows, self.old, self.new)

    def blocks(self) -> Iterator[GalleryBlock]:
        """A pass over the held-out items."""
        places = np.flatnonzero(self.held)
        for a in range(0, len(places), BLOCK):
            here = places[a : a + BLOCK]
            yield GalleryBlock.whole(self.rows[here], self.old[here], self.new[here])
