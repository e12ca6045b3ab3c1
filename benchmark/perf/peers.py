"""Other people's evaluators, timed where they are installed (the extra ``peers``)."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Problem = tuple[Any, Any, Any, Any]
"""Queries, gallery and their labels, as arrays."""


def available(name: str) -> bool:
    """Tell whether a package is installed."""
    return importlib.util.find_spec(name) is not None


def metric_learning(problem: Problem) -> Callable[[], object]:
    """pytorch-metric-learning's AccuracyCalculator, exact mAP and precision at 1."""
    import torch
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
    import torch
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


ALL: dict[str, tuple[str, Callable[[Problem], Callable[[], object]], int]] = {
    # package, what makes the call, most queries (the others are left out: they only repeat)
    "pytorch-metric-learning AccuracyCalculator": (
        "pytorch_metric_learning", metric_learning, 10_000,
    ),
    "torchmetrics RetrievalMAP": ("torchmetrics", torchmetrics, 500),
    "scikit-learn average_precision_score": ("sklearn", sklearn, 500),
    "torchreid evaluate_rank": ("torchreid", torchreid, 500),
}  # fmt: skip
