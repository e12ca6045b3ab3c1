"""Approximate indexes, as deployments search them, and as they are after a map.

A graph (HNSW) links near items, lists (IVF) keep items by the nearest of some centres. Both are
faiss's; the defaults are those of databases.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.errors import BenchError, unknown
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.intervals import mean_spread
from benchmark.metrics.similarity import unit
from benchmark.ranking.arrays import Floats, Ints, Values
from benchmark.ranking.engine import n_threads
from benchmark.upgrade.read.request import Index

_SAMPLE = 64  # vectors a centre that centres are learned from; faiss takes at most 256
_TOLERANCE = 0.01  # recall that a kept index may lose


@dataclass(frozen=True)
class Settings:
    """Parameters by which an index is built and searched."""

    kind: Index = "hnsw"
    links: int = 16  # of an item in a graph; Qdrant's m
    built_with: int = 100  # candidates of an item that is added; Qdrant's ef_construct
    searched_with: int = 100  # candidates of a query, at least its results; as Qdrant has it
    lists: int = 0  # 0: rows / 1000, from a million on their root, as pgvector's README advises
    probes: int = 0  # lists that are searched; 0: the root of their number, as it advises
    threads: int | None = 1  # with more of them a graph differs from run to run

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise unknown("index", self.kind, _KINDS)

    def require(self) -> None:
        """Raise a BenchError if the package that indexes need is not installed."""
        with _faiss(self.threads):
            pass

    def lists_of(self, rows: int) -> int:
        """The number of lists that so many vectors are kept in."""
        advised = rows // 1000 if rows < 1_000_000 else math.isqrt(rows)
        return min(rows, self.lists or max(1, advised))

    def probes_of(self, lists: int) -> int:
        """The number of so many lists that are searched."""
        return min(lists, self.probes or math.ceil(math.sqrt(lists)))


class ApproximateIndex(ABC):
    """An index of vectors ``[n, dim]``, which it holds in memory as float32."""

    def __init__(
        self, items: Floats, distance: str, settings: Settings,
        links: "ApproximateIndex | None" = None,
    ) -> None:  # fmt: skip
        """Build it, or take the ``links`` of another index over other vectors of the same rows.

        Raises:
            BenchError: If faiss is not installed.
            ValueError: If the other index has another number of rows.
        """
        if links is not None and links._index.ntotal != len(items):
            raise ValueError(f"items: expected {links._index.ntotal} vectors, got {len(items)}")
        self.settings, self.distance = settings, distance
        started = time.perf_counter()
        with _faiss(settings.threads) as faiss:
            vectors = _prepared(items, distance)
            self._index: Any = (
                self._built(faiss, vectors) if links is None
                else self._rewritten(faiss, vectors, links._index)
            )  # fmt: skip
        self.seconds = time.perf_counter() - started  # that building took

    def search(self, queries: Floats, k: int) -> Ints:
        """Rows of the nearest items it finds for queries ``[n, dim]``, ``[n, k]``.

        The nearest is first; -1 where it finds fewer.
        """
        with _faiss(self.settings.threads) as faiss:
            prepared, parameters = _prepared(queries, self.distance), self._parameters(faiss, k)
            rows: Ints = self._index.search(prepared, k, params=parameters)[1]
        return rows

    def rewritten(self, items: Floats) -> "ApproximateIndex":
        """Put the same links or lists over other vectors of the same rows, ``[n, dim]``.

        Centres of lists become the means of their vectors. This index keeps its own vectors.
        """
        return type(self)(items, self.distance, self.settings, self)

    @abstractmethod
    def _built(self, faiss: Any, vectors: Floats) -> Any:
        """The package's index of prepared vectors."""

    @abstractmethod
    def _rewritten(self, faiss: Any, vectors: Floats, old: Any) -> Any:
        """The package's index of other prepared vectors than those of an old one."""

    @abstractmethod
    def _parameters(self, faiss: Any, k: int) -> Any:
        """Parameters of a search for ``k`` items."""

    def _metric(self, faiss: Any) -> Any:
        return faiss.METRIC_L2 if self.distance == "l2" else faiss.METRIC_INNER_PRODUCT


class Graph(ApproximateIndex):
    """Hierarchical navigable small worlds (Malkov and Yashunin, 2018)."""

    def _built(self, faiss: Any, vectors: Floats) -> Any:
        index = faiss.IndexHNSWFlat(vectors.shape[1], self.settings.links, self._metric(faiss))
        index.hnsw.efConstruction = self.settings.built_with
        index.add(vectors)
        return index

    def _rewritten(self, faiss: Any, vectors: Floats, old: Any) -> Any:
        index = faiss.IndexHNSWFlat(vectors.shape[1], self.settings.links, self._metric(faiss))
        index.hnsw = old.hnsw
        index.storage.add(vectors)
        index.ntotal = index.storage.ntotal
        return index

    def _parameters(self, faiss: Any, k: int) -> Any:
        return faiss.SearchParametersHNSW(efSearch=max(self.settings.searched_with, k))


class Lists(ApproximateIndex):
    """An inverted file over the centres of k-means (Jégou et al., 2011), vectors as they are."""

    def _built(self, faiss: Any, vectors: Floats) -> Any:
        rows = len(vectors)
        n = self.settings.lists_of(rows)
        index = self._empty(faiss, vectors.shape[1], n)
        drawn = np.random.default_rng(0).choice(rows, min(rows, _SAMPLE * n), replace=False)
        index.train(vectors[np.sort(drawn)])
        index.add(vectors)
        return index

    def _rewritten(self, faiss: Any, vectors: Floats, old: Any) -> Any:
        n, owner = old.nlist, np.empty(len(vectors), np.int64)
        for number in range(n):
            if size := old.invlists.list_size(number):
                owner[faiss.rev_swig_ptr(old.invlists.get_ids(number), size)] = number
        centres = np.zeros((n, vectors.shape[1]))
        np.add.at(centres, owner, vectors)
        centres /= np.maximum(np.bincount(owner, minlength=n), 1)[:, None]
        index = self._empty(faiss, vectors.shape[1], n)
        index.quantizer.add(_prepared(centres.astype(np.float32), self.distance))
        index.is_trained = True
        pointers = faiss.swig_ptr(vectors), None, faiss.swig_ptr(owner)
        index.add_core(len(vectors), *pointers)
        return index

    def _empty(self, faiss: Any, dim: int, n: int) -> Any:
        centres = faiss.IndexFlat(dim, self._metric(faiss))
        index = faiss.IndexIVFFlat(centres, dim, n, self._metric(faiss))
        index.cp.spherical = self.distance == "cosine"
        index.cp.min_points_per_centroid = 1  # fewer are no reason to warn
        return index

    def _parameters(self, faiss: Any, _: int) -> Any:
        return faiss.SearchParametersIVF(nprobe=self.settings.probes_of(self._index.nlist))


_KINDS: dict[str, type[ApproximateIndex]] = {"hnsw": Graph, "ivf": Lists}


def build(
    items: Floats, distance: str = "cosine", settings: Settings = Settings()
) -> ApproximateIndex:
    """Build an index of vectors ``[n, dim]``, of the kind that its settings name."""
    return _KINDS[settings.kind](items, distance, settings)


def gain_of_building(anew: Values, kept: Values) -> tuple[Estimate, bool]:
    """The recall that building anew gives back, and whether it may be more than a hundredth.

    Arguments are found shares of each query, ``[n]``.
    """
    spread = mean_spread(anew - kept)
    gain = Estimate.of(spread.value, spread.interval(share=False))
    return gain, gain.high is None or gain.high > _TOLERANCE


@contextmanager
def _faiss(threads: int | None) -> Iterator[Any]:
    """Give the package faiss, using so many CPU threads; a BenchError if it is not installed."""
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise BenchError(
            "an index needs the package faiss: pip install 'compatbench[faiss]'"
        ) from error
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n_threads(threads))
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(before)


def _prepared(vectors: Floats, distance: str) -> Floats:
    """Vectors as faiss takes them, of length 1 for cosines."""
    return np.ascontiguousarray(unit(vectors, distance), np.float32)
