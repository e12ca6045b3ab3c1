"""Scores of the side-information that galleries keep."""

from pathlib import Path
from typing import Any

from benchmark.config import registry
from benchmark.data.base import Evaluation
from benchmark.harness.artifacts import load_stored
from benchmark.harness.work import EvaluationWork
from benchmark.metrics.similarity import linear_cka


def score_side_information(work: EvaluationWork[Path], items: Evaluation) -> dict[str, Any]:
    """Size, scores and CKA of the side-information of each generation; empty where none is used.

    Items are ranked as the evaluation's tasks say, if at all.

    Returns:
        ``side``: the kind and, by generation, numbers and bytes an item, its own scores
        (``side/side``) where items are ranked, and its linear CKA with the embedding on the
        gallery (FCT 5.3), which is ``None`` where one of the two is constant.
    """
    if work.side is None:
        return {}
    kind, bits = work.side["kind"], work.side["bits"]
    ranking = next((t for t in ("retrieval", "reidentification") if t in work.tasks), None)
    generations = {}
    for i, name in enumerate(work.generations):
        vectors, side = load_stored(work, i)
        if side is None:
            continue
        task = registry.task(ranking) if ranking else None
        stored = side[items.gallery], vectors[items.gallery]
        constant = any((x == x[:1]).all() for x in stored)
        dim = int(stored[0].shape[1])
        generations[name] = {
            "scores": task.evaluate(side, side, items, work.params()).scores if task else {},
            "cka": None if constant else linear_cka([stored]), "dim": dim, "bytes": bits * dim / 8,
        }  # fmt: skip
    return {"side": {"kind": kind, "generations": generations}}
