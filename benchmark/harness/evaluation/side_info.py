"""Scores of stored side-information."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmark.data.base import Evaluation


Facts = dict[str, Any]


def score_sides(params: Mapping[str, Any], inputs: Mapping[str, Path], items: Evaluation) -> Facts:
    """What the record says of the side-information that each generation stores.

    Args:
        params: Of the evaluation; ``side`` holds kind and bits, and is missing where none is used;
            ``tasks`` says how items are ranked, if at all.
        inputs: ``side{i}`` and ``vectors{i}`` of each generation ``i`` that stores some.
        items: Who asks and who is stored.

    Returns:
        ``side``: the kind and, by generation, numbers and bytes an item, its own scores
        (``side/side``) where items are ranked, and its linear CKA with the embedding on the
        gallery (FCT 5.3), which is ``None`` where one of the two is constant. Empty without
        side-information.
    """
    import numpy as np

    from benchmark.harness.artifacts import VECTORS

    if "side" not in params:
        return {}
    found = {}
    for i, name in enumerate(params["generations"]):
        if f"side{i}" in inputs:
            side = np.load(inputs[f"side{i}"] / VECTORS)
            vectors = np.load(inputs[f"vectors{i}"] / VECTORS)
            bits = params["side"]["bits"]
            found[name] = _judged(side, vectors, items, params) | {
                "dim": side.shape[1], "bytes": bits * side.shape[1] / 8,
            }  # fmt: skip
    return {"side": {"kind": params["side"]["kind"], "generations": found}}


def _judged(side: Any, vectors: Any, items: Evaluation, params: Mapping[str, Any]) -> Facts:
    from benchmark.config.registry import task
    from benchmark.metrics.similarity import linear_cka

    ranking = next((t for t in ("retrieval", "reidentification") if t in params["tasks"]), None)
    stored = side[items.gallery], vectors[items.gallery]
    constant = any((x == x[:1]).all() for x in stored)
    return {
        "scores": task(ranking).evaluate(side, side, items, params).scores if ranking else {},
        "cka": None if constant else linear_cka([stored]),
    }
