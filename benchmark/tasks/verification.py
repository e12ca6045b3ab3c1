"""1:1 verification of templates: TAR at the smallest threshold whose FAR is within the target.

The pairs are those that the dataset lists (IJB-C), or else every probe with every enrolled one.
"""

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

SCORES = ("tar_at_far_",)
"""What it scores, by the whole name or how it begins."""

SWAPPED = True
"""Which model makes the first template is a convention: old/new is scored beside new/old."""


def evaluate(
    query: NDArray[float32], gallery: NDArray[float32], items: Evaluation, options: Options
) -> TaskResult:
    """Compare pairs of templates.

    Args:
        query: Vectors of all items by the model of the first template, ``[n, d]``.
        gallery: Vectors of all items by the model of the second, ``[n, d]``.
        items: Templates, and the pairs that are compared or who is enrolled.
        options: ``far``; targets below one impostor pair are left out.

    Note:
        The interval draws probe identities with replacement and keeps the threshold.
    """
    from benchmark.metrics.verification import tar_at_far

    if items.pairs is None:
        genuine, impostor, who = _every(query, gallery, items)
    else:
        genuine, impostor, who = _listed(query, gallery, items, items.pairs)
    result = TaskResult(counts={"n_genuine": genuine.size, "n_impostor": impostor.size})
    targets = [far for far in options["far"] if far * impostor.size >= 1]
    for point in tar_at_far(genuine, impostor, targets) if targets else ():
        hits = (genuine >= point.threshold).astype(np.float64)
        name = key("tar_at_far", point.target)
        result.add(name, hits, groups=who)
        result.counts[f"n_accepted_impostor_{name}"] = round(point.far * impostor.size)
    return result


_Scores = tuple["NDArray[float32]", "NDArray[float32]", "NDArray[np.int64]"]
"""Scores of genuine and of impostor pairs, and who the genuine ones are."""


def _every(query: NDArray[float32], gallery: NDArray[float32], items: Evaluation) -> _Scores:
    from benchmark.ranking.pair_scores import all_pairs

    enrolled = np.concatenate(items.galleries)
    first, subject = template_vectors(query, items, items.probes)
    second, owner = template_vectors(gallery, items, enrolled)
    genuine, impostor = all_pairs(first, second, subject, owner)
    # In the order of the genuine pairs.
    return genuine, impostor, np.repeat(subject, (subject[:, None] == owner).sum(1))


def _listed(
    query: NDArray[float32],
    gallery: NDArray[float32],
    items: Evaluation,
    pairs: NDArray[np.int64],
) -> _Scores:
    from benchmark.ranking.pair_scores import listed

    # A protocol may judge on some of the items only.
    pairs = pairs[np.isin(pairs, items.template).all(1)]
    ones, left = np.unique(pairs[:, 0], return_inverse=True)
    others, right = np.unique(pairs[:, 1], return_inverse=True)
    first, subject = template_vectors(query, items, ones)
    second, owner = template_vectors(gallery, items, others)
    scores = listed(first, second, left, right)
    same = subject[left] == owner[right]
    return scores[same], scores[~same], subject[left][same]
