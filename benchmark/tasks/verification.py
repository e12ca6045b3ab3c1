"""1:1 verification of templates: TAR at the smallest threshold whose FAR is within the target.

The pairs are those that the dataset lists (IJB-C), or else every probe with every enrolled one.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.data.base import Evaluation
from benchmark.metrics.verification import tar_at_far
from benchmark.tasks import base
from benchmark.tasks.base import Embeddings, Ints, Options, Task, TaskResult, template_vectors

Scores = tuple[Embeddings, Embeddings, Ints]
"""Scores of genuine and of impostor pairs, and the subject of each genuine pair."""


@dataclass(frozen=True)
class Verification(Task):
    """Compare pairs of templates.

    Targets below one impostor pair are left out. The interval draws probe identities with
    replacement and keeps the threshold.
    """

    scores: ClassVar = ("tar_at_far_",)
    needs: ClassVar = ("templates",)
    both_directions: ClassVar = True

    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options
    ) -> TaskResult:
        """TAR at each FAR; ``query`` is of a pair's first template, ``gallery`` of its second."""
        genuine, impostor, subject = compared(query, gallery, items)
        result = TaskResult(counts={"n_genuine": genuine.size, "n_impostor": impostor.size})
        targets = base.measurable(options["far"], impostor.size)
        for point in tar_at_far(genuine, impostor, targets) if targets else ():
            name = base.key("tar_at_far", point.target)
            result.add(name, (genuine >= point.threshold).astype(np.float64), groups=subject)
            result.counts[f"n_accepted_impostor_{name}"] = round(point.far * impostor.size)
        return result


def compared(query: Embeddings, gallery: Embeddings, items: Evaluation) -> Scores:
    """Score the pairs that the dataset lists, or else every probe with every enrolled one."""
    pairs = _every_pair if items.pairs is None else _listed_pairs
    return pairs(query, gallery, items)


def _every_pair(query: Embeddings, gallery: Embeddings, items: Evaluation) -> Scores:
    from benchmark.ranking import pair_scores

    enrolled = np.concatenate(items.galleries)
    first, subject = template_vectors(query, items, items.probes)
    second, owner = template_vectors(gallery, items, enrolled)
    genuine, impostor = pair_scores.all_pairs(first, second, subject, owner)
    # In the order of the genuine pairs.
    return genuine, impostor, np.repeat(subject, (subject[:, None] == owner).sum(1))


def _listed_pairs(query: Embeddings, gallery: Embeddings, items: Evaluation) -> Scores:
    from benchmark.ranking import pair_scores

    pairs = np.asarray(items.pairs)
    # A protocol may evaluate some of the items only.
    pairs = pairs[np.isin(pairs, items.template).all(1)]
    ones, left = np.unique(pairs[:, 0], return_inverse=True)
    others, right = np.unique(pairs[:, 1], return_inverse=True)
    first, subject = template_vectors(query, items, ones)
    second, owner = template_vectors(gallery, items, others)
    scores = pair_scores.listed(first, second, left, right)
    same = subject[left] == owner[right]
    return scores[same], scores[~same], subject[left][same]
