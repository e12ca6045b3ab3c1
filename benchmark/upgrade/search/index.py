"""Approximate indexes, as deployments search them: what they find, and whether they outlive a map.

A graph (HNSW) links near items, lists (IVF) keep items by the nearest of some centres. Both are
faiss's; the defaults are those of databases.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError, unknown
from benchmark.metrics.intervals import mean_spread
from benchmark.ranking.arrays import Floats, Ints
from benchmark.ranking.engine import n_threads

Kind = Literal["hnsw", "ivf"]
Blocks = Callable[[], Iterable[Floats]]
"""Starts a pass over a gallery's vectors in order, ``[b, d]`` each."""

_SAMPLE = 64
"""Vectors a centre that centres are learned from; faiss takes at most 256."""
_TOLERANCE = 0.01
"""Recall that a kept index may lose."""


@dataclass(frozen=True)
class Settings:
    """Parameters by which an index is built and searched."""

    kind: Kind = "hnsw"
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


class ApproximateIndex(ABC):
    """An index of vectors ``[rows, dim]``.

    Attributes:
        settings: As it was built with.
        distance: ``cosine`` or ``l2``.
        rows: How many vectors it has.
        seconds: That it took to build.
    """

    def __init__(self, settings: Settings, distance: str, rows: int) -> None:
        """An index without vectors; :func:`build` gives one with them."""
        self.settings, self.distance, self.rows, self.seconds = settings, distance, rows, 0.0
        self._index: Any = None

    def search(self, queries: Floats, k: int) -> tuple[Ints, Floats]:
        """Rows and scores of the nearest items it finds for queries ``[n, dim]``, ``[n, k]`` each.

        The nearest is first; -1 and NaN where it finds fewer. Scores are the products' own.
        """
        with _faiss(self.settings.threads) as faiss:
            prepared = _prepared(queries, self.distance)
            scores, rows = self._index.search(prepared, k, params=self._parameters(faiss, k))
        scores = -scores if self.distance == "l2" else scores
        return rows, np.where(rows < 0, np.float32(np.nan), scores)

    def rewritten(self, blocks: Blocks, dim: int) -> "ApproximateIndex":
        """The same links or lists over other vectors of the same rows: what needs no building.

        Centres of lists become the means of their vectors. This index keeps its own vectors.
        """
        made = type(self)(self.settings, self.distance, self.rows)
        with _faiss(self.settings.threads) as faiss:
            prepared = lambda: _prepared_blocks(blocks, self.distance)  # noqa: E731
            made._index = self._rewritten(faiss, prepared, dim)
        made._require_rows()
        return made

    def _require_rows(self) -> None:
        if self._index.ntotal != self.rows:
            raise ValueError(f"blocks: expected {self.rows} vectors, got {self._index.ntotal}")

    @abstractmethod
    def _built(self, faiss: Any, blocks: Blocks, dim: int) -> Any:
        """The package's index of prepared vectors."""

    @abstractmethod
    def _rewritten(self, faiss: Any, blocks: Blocks, dim: int) -> Any:
        """The package's index of other prepared vectors."""

    @abstractmethod
    def _parameters(self, faiss: Any, k: int) -> Any:
        """Parameters of a search for ``k`` items."""


class Graph(ApproximateIndex):
    """Hierarchical navigable small worlds (Malkov and Yashunin, 2018)."""

    def _built(self, faiss: Any, blocks: Blocks, dim: int) -> Any:
        index = faiss.IndexHNSWFlat(dim, self.settings.links, _metric(faiss, self.distance))
        index.hnsw.efConstruction = self.settings.built_with
        for vectors in blocks():
            index.add(vectors)
        return index

    def _rewritten(self, faiss: Any, blocks: Blocks, dim: int) -> Any:
        index = faiss.IndexHNSWFlat(dim, self.settings.links, _metric(faiss, self.distance))
        index.hnsw = self._index.hnsw
        for vectors in blocks():
            index.storage.add(vectors)
        index.ntotal = index.storage.ntotal
        return index

    def _parameters(self, faiss: Any, k: int) -> Any:
        return faiss.SearchParametersHNSW(efSearch=max(self.settings.searched_with, k))


class Lists(ApproximateIndex):
    """An inverted file over the centres of k-means (Jégou et al., 2011), vectors as they are."""

    def _built(self, faiss: Any, blocks: Blocks, dim: int) -> Any:
        n = self.settings.lists_of(self.rows)
        index = self._empty(faiss, dim, n)
        index.train(_sampled(blocks, self.rows, min(self.rows, _SAMPLE * n)))
        for vectors in blocks():
            index.add(vectors)
        return index

    def _rewritten(self, faiss: Any, blocks: Blocks, dim: int) -> Any:
        n, owner = self._index.nlist, self._owner(faiss)
        centres, first = np.zeros((n, dim)), 0
        for vectors in blocks():
            np.add.at(centres, owner[first : first + len(vectors)], vectors)
            first += len(vectors)
        centres /= np.maximum(np.bincount(owner, minlength=n), 1)[:, None]
        index = self._empty(faiss, dim, n)
        index.quantizer.add(_prepared(centres.astype(np.float32), self.distance))
        index.is_trained, first = True, 0
        for vectors in blocks():
            mine = np.ascontiguousarray(owner[first : first + len(vectors)])
            index.add_core(len(vectors), faiss.swig_ptr(vectors), None, faiss.swig_ptr(mine))
            first += len(vectors)
        return index

    def _owner(self, faiss: Any) -> Ints:
        """The list of each row."""
        owner = np.empty(self.rows, np.int64)
        lists = self._index.invlists
        for number in range(self._index.nlist):
            size = lists.list_size(number)
            if size:
                owner[faiss.rev_swig_ptr(lists.get_ids(number), size)] = number
        return owner

    def _empty(self, faiss: Any, dim: int, n: int) -> Any:
        metric = _metric(faiss, self.distance)
        centres = faiss.IndexFlat(dim, metric)
        index = faiss.IndexIVFFlat(centres, dim, n, metric)
        index.cp.spherical = self.distance == "cosine"
        index.cp.min_points_per_centroid = 1  # fewer are no reason to warn
        return index

    def _parameters(self, faiss: Any, _: int) -> Any:
        probes = self.settings.probes or math.ceil(math.sqrt(self._index.nlist))
        return faiss.SearchParametersIVF(nprobe=min(probes, self._index.nlist))


_KINDS: dict[str, type[ApproximateIndex]] = {"hnsw": Graph, "ivf": Lists}


def build(
    blocks: Blocks, rows: int, dim: int, distance: str = "cosine", settings: Settings = Settings()
) -> ApproximateIndex:
    """Build an index of vectors ``[rows, dim]``, which it holds in memory as float32.

    Raises:
        BenchError: If faiss is not installed.
    """
    index = _KINDS[settings.kind](settings, distance, rows)
    started = time.perf_counter()
    with _faiss(settings.threads) as faiss:
        prepared = lambda: _prepared_blocks(blocks, distance)  # noqa: E731
        index._index = index._built(faiss, prepared, dim)
    index.seconds = time.perf_counter() - started
    index._require_rows()
    return index


def needs_building(anew: NDArray[np.float64], kept: NDArray[np.float64]) -> bool:
    """Tell whether a kept index may lose more than a hundredth of recall; shares of each query."""
    span = mean_spread(anew - kept).interval(share=False)
    return span is None or span[1] > _TOLERANCE


@contextmanager
def _faiss(threads: int | None) -> Iterator[Any]:
    """Give the package faiss, using so many CPU threads within; all by default.

    Raises:
        BenchError: If it is not installed.
    """
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


def _metric(faiss: Any, distance: str) -> Any:
    return faiss.METRIC_L2 if distance == "l2" else faiss.METRIC_INNER_PRODUCT


def _prepared(vectors: Floats, distance: str) -> Floats:
    """Vectors as faiss takes them, of length 1 for cosines."""
    if distance == "cosine":
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.ascontiguousarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)
    return np.ascontiguousarray(vectors, np.float32)


def _prepared_blocks(blocks: Blocks, distance: str) -> Iterator[Floats]:
    return (_prepared(vectors, distance) for vectors in blocks())


def _sampled(blocks: Blocks, rows: int, n: int) -> Floats:
    """``n`` vectors drawn from all of the gallery."""
    drawn = np.sort(np.random.default_rng(0).choice(rows, n, replace=False))
    parts, first = [], 0
    for vectors in blocks():
        a, b = np.searchsorted(drawn, [first, first + len(vectors)])
        parts.append(vectors[drawn[a:b] - first])
        first += len(vectors)
    return np.concatenate(parts)
