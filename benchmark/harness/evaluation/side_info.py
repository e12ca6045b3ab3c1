"""Scores of the side-information that galleries keep."""

from collections.abc import Mapping
from typing import Any

from benchmark.config import registry
from benchmark.data.base import Evaluation
from benchmark.harness.artifacts import Inputs, load_stored
from benchmark.metrics.similarity import linear_cka


def score_side_information(
    params: Mapping[str, Any], inputs: Inputs, items: Evaluation
) -> dict[str, Any]:
    """Size, scores and CKA of the side-information of each generation; empty where none is used.

    Args:
        params: Of the evaluation; ``side`` holds kind and bits, and is missing where none is used;
            ``tasks`` says how items are ranked, if at all.
        inputs: ``side{i}`` and ``vectors{i}`` of each generation ``i`` that stores some.
        items: Queries and gallery.

    Returns:
        ``side``: the kind and, by generation, numbers and bytes an item, its own scores
        (``side/side``) where items are ranked, and its linear CKA with the embedding on the
        gallery (FCT 5.3), which is ``None`` where one of the two is constant.
    """
    if "side" not in params:
        return {}
    kind, bits = params["side"]["kind"], params["side"]["bits"]
    ranking = next((t for t in ("retrieval", "reidentification") if t in params["tasks"]), None)
    generations = {}
    for i, name in enumerate(params["generations"]):
        if f"side{i}" not in inputs:
            continue
        vectors, side = load_stored(inputs, i)
        task = registry.task(ranking) if ranking else None
        stored: tuple[Any, Any] = side[items.gallery], vectors[items.gallery]  # type: ignore[index]
        constant = any((x == x[:1]).all() for x in stored)
        dim = int(stored[0].shape[1])
        generations[name] = {
            "scores": task.evaluate(side, side, items, params).scores if task else {},
            "cka": None if constant else linear_cka([stored]), "dim": dim, "bytes": bits * dim / 8,
        }  # fmt: skip
    return {"side": {"kind": kind, "generations": generations}}
