"""1:1 verification of templates: TAR at the smallest threshold whose FAR is within the target.

The pairs are those that the dataset lists (IJB-C), or else every probe with every enrolled one.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.data.base import Evaluation
from benchmark.metrics.threshold_draws import Impostors, threshold_draws
from benchmark.metrics.verification import tar_at_far
from benchmark.tasks import base
from benchmark.tasks.base import Embeddings, Ints, Options, Task, TaskResult, template_vectors


@dataclass(frozen=True)
class ScoredPairs:
    """Scores of pairs; identities are numbers from 0 on."""

    genuine: Embeddings  # [g]
    subject: Ints  # the identity of each genuine pair, [g]
    impostors: Impostors


@dataclass(frozen=True)
class Verification(Task):
    """Compare pairs of templates.

    Targets below one impostor pair are left out. The interval draws identities, of genuine and of
    impostor pairs, and finds the threshold anew; where fewer than 30 impostor pairs decide it,
    there is none.
    """

    scores: ClassVar = ("tar_at_far_",)
    needs: ClassVar = ("templates",)
    both_directions: ClassVar = True

    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options
    ) -> TaskResult:
        """TAR at each FAR; ``query`` is of a pair's first template, ``gallery`` of its second."""
        pairs = compared(query, gallery, items)
        genuine, impostor, subject = pairs.genuine, pairs.impostors.scores, pairs.subject
        result = TaskResult(counts={"n_genuine": genuine.size, "n_impostor": impostor.size})
        targets = base.measurable(options["far"], impostor.size)
        for point in tar_at_far(genuine, impostor, targets) if targets else ():
            name = base.key("tar_at_far", point.target)
            hits = (genuine >= point.threshold).astype(np.float64)
            draws = threshold_draws(genuine, subject, pairs.impostors, point.target)
            n_people = len(pairs.impostors.totals)
            result.add_at_threshold(name, hits, subject, draws, n_people)
            result.counts[f"n_accepted_impostor_{name}"] = round(point.far * impostor.size)
        return result


def compared(query: Embeddings, gallery: Embeddings, items: Evaluation) -> ScoredPairs:
    """Score the pairs that the dataset lists, or else every probe with every enrolled one."""
    pairs = _every_pair if items.pairs is None else _listed_pairs
    return pairs(query, gallery, items)


def _every_pair(query: Embeddings, gallery: Embeddings, items: Evaluation) -> ScoredPairs:
    from benchmark.ranking import pair_scores

    enrolled = np.concatenate(items.galleries)
    first, subject = template_vectors(query, items, items.probes)
    second, owner = template_vectors(gallery, items, enrolled)
    n_people, (left, right) = _numbered(subject, owner)
    genuine, impostor = pair_scores.all_pairs(first, second, left, right)
    n = np.bincount(left, minlength=n_people), np.bincount(right, minlength=n_people)
    totals = n[0] * (len(right) - n[1]) + n[1] * (len(left) - n[0])

    def people(places: Ints) -> Ints:
        rows, columns = _other_pairs(left, right, places)
        return np.stack([left[rows], right[columns]])

    # In the order of the genuine pairs.
    mine = np.repeat(left, n[1][left])
    return ScoredPairs(genuine, mine, Impostors(impostor, people, totals.astype(np.float64)))


def _other_pairs(left: Ints, right: Ints, places: Ints) -> tuple[Ints, Ints]:
    """Rows and columns of some of the pairs of unequal labels, which are counted row by row."""
    same = left[:, None] == right
    rows, columns = np.nonzero(same)
    n_same = same.sum(axis=1)
    own = np.full((len(left), int(n_same.max(initial=0))), len(right))
    own[rows, np.arange(len(rows)) - (np.cumsum(n_same) - n_same)[rows]] = columns
    ends = np.cumsum(len(right) - n_same)
    row = np.searchsorted(ends, places, side="right")
    column = places - (ends - len(right) + n_same)[row]
    for skipped in own[row].T:
        column += column >= skipped
    return row, column


def _listed_pairs(query: Embeddings, gallery: Embeddings, items: Evaluation) -> ScoredPairs:
    from benchmark.ranking import pair_scores

    pairs = np.asarray(items.pairs)
    # A protocol may evaluate some of the items only.
    pairs = pairs[np.isin(pairs, items.template).all(1)]
    ones, left = np.unique(pairs[:, 0], return_inverse=True)
    others, right = np.unique(pairs[:, 1], return_inverse=True)
    first, subject = template_vectors(query, items, ones)
    second, owner = template_vectors(gallery, items, others)
    scores = pair_scores.listed(first, second, left, right)
    n_people, (subject, owner) = _numbered(subject, owner)
    sides = np.stack([subject[left], owner[right]])
    same = sides[0] == sides[1]
    apart = sides[:, ~same]
    totals = np.bincount(apart.ravel(), minlength=n_people).astype(np.float64)
    impostors = Impostors(scores[~same], lambda places: apart[:, places], totals)
    return ScoredPairs(scores[same], sides[0, same], impostors)


def _numbered(subject: Ints, owner: Ints) -> tuple[int, tuple[Ints, Ints]]:
    """Number of identities, and both columns as numbers from 0 on."""
    names, codes = np.unique(np.concatenate([subject, owner]), return_inverse=True)
    return len(names), (codes[: len(subject)], codes[len(subject) :])
