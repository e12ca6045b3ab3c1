"""Exact ranking against the score products alone, and against the evaluators of others."""

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.perf import measure
from benchmark.ranking import engine, ranks

_MOST = 10_000 * 10_000  # peers keep all scores: beyond this they are left out
_TILE = 1024  # items that are multiplied at a time
_PRODUCTS, _OURS = "score products in tiles", "rank, clustered"
Problem = tuple[Any, Any, Any, Any]
"""Queries, gallery and their labels, as arrays."""


def rows(
    queries: int = 50_000, gallery: int = 50_000, dim: int = 128, classes: int = 1000
) -> list[dict[str, Any]]:
    """Time the ranking of clustered vectors, and of vectors whose labels mean nothing.

    Nothing can be skipped with random labels: half of all scores lie above the middle match. A
    query has ``gallery / classes`` matches. See ``benchmark.perf.run``.
    """
    rng = np.random.default_rng(0)
    q, g, ql, gl = measure.clustered((queries, gallery), dim, classes, 1.5, rng)
    random = rng.permutation(ql), rng.permutation(gl)
    warm = min(queries, gallery, 600)
    ranks.rank(q[:warm], g[:warm], ql[:warm], gl[:warm])
    calls: dict[str, Callable[[], object]] = {
        _PRODUCTS: lambda: products(q, g),
        _OURS: lambda: ranks.rank(q, g, ql, gl),
        "rank, random labels": lambda: ranks.rank(q, g, *random),
    }
    if queries * gallery <= _MOST:
        calls["rank, clustered, l2"] = lambda: ranks.rank(q, g, ql, gl, distance="l2")
    size = f"{queries} x {gallery} x {dim}, {gallery / classes:g} matches a query"
    timings = measure.together(calls, 3 if queries * gallery < 10**10 else 1)
    out = measure.rows(timings, size, _PRODUCTS)
    if queries * gallery <= _MOST:
        out += _peers((q, g, ql, gl), timings[_OURS].seconds)
    return out


def _peers(problem: Any, seconds: float) -> list[dict[str, Any]]:
    """Time the installed peers; those that loop over queries get some of them only."""
    q, g, ql, gl = problem
    out = []
    base = f"{_OURS} (as many queries)"
    for name, (package, prepare, most) in PEERS.items():
        if available(package):
            n = min(most, len(q))
            timed = measure.once(prepare((q[:n], g, ql[:n], gl)))
            timings = {base: measure.Timing(seconds * n / len(q), None), name: timed}
            out += measure.rows(timings, f"{n} x {len(g)} x {q.shape[1]}", base)[1:]
    return out


def products(q: Any, g: Any) -> None:
    """All score products by the fastest BLAS at hand, tile by tile, nothing kept.

    Each thread multiplies its own tiles with one BLAS thread: faster than tiles shared by threads.
    NumPy's BLAS and torch's are tried on a tile, as which is faster depends on the processor.
    """
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()

    def work(start: int, end: int) -> None:
        torch.set_num_threads(1)
        multiply(q[start:end], g)

    with threadpool_limits(1):
        try:
            torch.set_num_threads(1)
            multiply = min((_by_torch, _by_numpy), key=lambda way: _tried(way, q, g))
            threads = engine.n_threads(None)
            engine.share(work, engine.even(len(q), 2048, 1, threads), threads)
        finally:
            torch.set_num_threads(before)


def _by_torch(q: Any, g: Any) -> None:
    left, right = torch.from_numpy(q), torch.from_numpy(g)
    room = torch.empty(len(q) * _TILE)
    for first in range(0, len(g), _TILE):
        tile = right[first : first + _TILE]
        torch.mm(left, tile.T, out=room[: len(q) * len(tile)].view(len(q), len(tile)))


def _by_numpy(q: Any, g: Any) -> None:
    room = np.empty(len(q) * _TILE, np.float32)
    for first in range(0, len(g), _TILE):
        tile = g[first : first + _TILE]
        np.matmul(q, tile.T, out=room[: len(q) * len(tile)].reshape(len(q), len(tile)))


def _tried(way: Callable[[Any, Any], None], q: Any, g: Any) -> float:
    """Least processor time of a way for a tile, the first call aside."""
    seconds = []
    for _ in range(4):
        start = time.thread_time()
        way(q[:2048], g[:_TILE])
        seconds.append(time.thread_time() - start)
    return min(seconds[1:])


def available(name: str) -> bool:
    """Tell whether a package is installed."""
    return importlib.util.find_spec(name) is not None


def metric_learning(problem: Problem) -> Callable[[], object]:
    """pytorch-metric-learning's AccuracyCalculator, exact mAP and precision at 1."""
    from pytorch_metric_learning.distances import CosineSimilarity
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
    from pytorch_metric_learning.utils.inference import CustomKNN

    calculator = AccuracyCalculator(
        include=("mean_average_precision", "precision_at_1"), k=None, device=torch.device("cpu"),
        knn_func=CustomKNN(CosineSimilarity(), batch_size=1000),
    )  # fmt: skip
    q, g, ql, gl = map(torch.from_numpy, problem)
    return lambda: calculator.get_accuracy(q, ql, g, gl)


def torchmetrics(problem: Problem) -> Callable[[], object]:
    """TorchMetrics' RetrievalMAP on all scores."""
    from torchmetrics.retrieval import RetrievalMAP

    q, g, ql, gl = map(torch.from_numpy, problem)

    def call() -> object:
        scores = torch.nn.functional.normalize(q) @ torch.nn.functional.normalize(g).T
        indexes = torch.arange(len(q))[:, None].expand_as(scores)
        return RetrievalMAP()(scores.flatten(), (ql[:, None] == gl).flatten(), indexes.flatten())

    return call


def sklearn(problem: Problem) -> Callable[[], object]:
    """scikit-learn's average_precision_score, query by query."""
    from sklearn.metrics import average_precision_score as score

    q, g, ql, gl = problem
    return lambda: [score(gl == label, row) for row, label in zip(_cosines(q, g), ql, strict=True)]


def torchreid(problem: Problem) -> Callable[[], object]:
    """Torchreid's evaluate_rank, all scores in one matrix, every item on its own camera."""
    package = importlib.util.find_spec("torchreid")
    places = [] if package is None else package.submodule_search_locations or []
    (path,) = (path for place in places for path in Path(place).glob("**/metrics/rank.py"))
    spec = importlib.util.spec_from_file_location("torchreid_rank", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"torchreid: expected a module, got {path}")
    module = importlib.util.module_from_spec(spec)  # alone: the package imports much that is unused
    spec.loader.exec_module(module)
    q, g, ql, gl = problem
    cameras = np.zeros(len(q)), np.ones(len(g))
    return lambda: module.evaluate_rank(1 - _cosines(q, g), ql, gl, *cameras, use_cython=False)


def _cosines(q: Any, g: Any) -> Any:
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, g)]
    return unit[0] @ unit[1].T


PEERS: dict[str, tuple[str, Callable[[Problem], Callable[[], object]], int]] = {
    # package, what makes the call, most queries (the others are left out: they only repeat)
    "pytorch-metric-learning AccuracyCalculator": (
        "pytorch_metric_learning", metric_learning, 10_000,
    ),
    "torchmetrics RetrievalMAP": ("torchmetrics", torchmetrics, 500),
    "scikit-learn average_precision_score": ("sklearn", sklearn, 500),
    "torchreid evaluate_rank": ("torchreid", torchreid, 500),
}  # fmt: skip
