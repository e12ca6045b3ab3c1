"""1:1 verification of templates: TAR at the smallest threshold whose FAR is within the target."""

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

SWAPPED = True
"""Which model makes the first template is a convention: old/new is scored beside new/old."""


def evaluate(
    query: NDArray[float32], gallery: NDArray[float32], items: Evaluation, options: Options
) -> TaskResult:
    """Compare every probe template with every enrolled one.

    Args:
        query: Vectors of all items by the model of the first template, ``[n, d]``.
        gallery: Vectors of all items by the model of the second, ``[n, d]``.
        items: Templates and who is enrolled.
        options: ``far``; targets below one impostor pair are left out.

    Note:
        The interval draws probe identities with replacement and keeps the threshold.
    """
    from benchmark.metrics.products import all_pairs
    from benchmark.metrics.verification import tar_at_far

    enrolled = np.concatenate(items.galleries)
    first, subject = template_vectors(query, items, items.probes)
    second, owner = template_vectors(gallery, items, enrolled)
    genuine, impostor = all_pairs(first, second, subject, owner)
    who = np.repeat(subject, (subject[:, None] == owner).sum(1))  # of each genuine pair, in order
    result = TaskResult(counts={"n_genuine": genuine.size, "n_impostor": impostor.size})
    targets = [far for far in options["far"] if far * impostor.size >= 1]
    for point in tar_at_far(genuine, impostor, targets) if targets else ():
        hits = (genuine >= point.threshold).astype(np.float64)
        result.add(key("tar_at_far", point.target), hits, groups=who)
    return result
