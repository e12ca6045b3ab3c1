"""Open-set 1:N identification: TPIR@FPIR and rank-1 of each enrolment gallery, and their mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmark.tasks.base import Options, TaskResult, key, template_vectors

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from benchmark.data.base import Evaluation

NEEDS = ("templates",)
"""What a dataset must offer for it."""

SCORES = ("rank_1", "tpir_at_fpir_", "g1_", "g2_")
"""What it scores, by the whole name or how it begins."""


def evaluate(
    query: NDArray[float32], gallery: NDArray[float32], items: Evaluation, options: Options
) -> TaskResult:
    """Search each gallery (IJB-C's G1, G2) with every probe.

    Args:
        query: Vectors of all items by the asking model, ``[n, d]``.
        gallery: Vectors of all items as stored, ``[n, d]``.
        items: Templates, probes and galleries.
        options: ``fpir``; targets below one non-mated probe are left out.

    Note:
        Each gallery has its own threshold; ``g1_...`` and ``g2_...`` are the galleries' scores, the
        plain names their mean. The intervals draw probe identities with replacement and keep the
        thresholds.
    """
    from benchmark.metrics.identification import rank_k, search, tpir_at_fpir

    probes, subject = template_vectors(query, items, items.probes)
    result = TaskResult(counts={"n_probe": len(probes)})
    values: dict[str, dict[int, tuple[NDArray[np.float64], NDArray[np.int64]]]] = {}
    for i, enrolled in enumerate(items.galleries, 1):
        stored, owner = template_vectors(gallery, items, enrolled)
        found = search(probes, subject, stored, owner)
        who = subject[found.mated]
        values.setdefault("rank_1", {})[i] = rank_k(found, 1), who
        outsiders = int((~found.mated).sum())
        targets = [t for t in options["fpir"] if t * outsiders >= 1]
        for point in tpir_at_fpir(found, targets) if targets else ():
            name = key("tpir_at_fpir", point.target)
            values.setdefault(name, {})[i] = point.hits, who
            result.counts[f"n_accepted_outsiders_g{i}_{name}"] = round(point.fpir * outsiders)
        result.counts.update({f"n_enrolled_g{i}": len(enrolled), f"n_mated_g{i}": len(who)})
        result.counts[f"n_outsiders_g{i}"] = outsiders
    for name, parts in values.items():
        _add_mean(result, name, list(parts.values()))
        if len(items.galleries) > 1:  # of a single gallery the mean says it all
            for i, (hits, who) in parts.items():
                result.add(f"g{i}_{name}", hits, groups=who)
    return result


def _add_mean(
    result: TaskResult, name: str, parts: list[tuple[NDArray[np.float64], NDArray[np.int64]]]
) -> None:
    """Mean of the galleries' means, as the mean of values weighted by their gallery's size."""
    n = sum(len(values) for values, _ in parts)
    weighted = np.concatenate([v * (n / (len(parts) * len(v))) for v, _ in parts])
    result.add(name, weighted, groups=np.concatenate([who for _, who in parts]))
