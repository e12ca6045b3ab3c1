"""Score-merge: two lists merged by scores, the old ones brought to the scale of the new ones."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from sklearn.isotonic import isotonic_regression
from torch.nn import functional as F

from benchmark import contract
from benchmark.contract import Pairs, ResultLists, Scale, Trainer, drawing_from

_KNOTS = 257
_SLOPE = 1e-3


@dataclass(frozen=True)
class ScoreMerge(ResultLists):
    """A monotone map of old scores to new ones, fitted on scores between training items.

    ``isotonic`` is the regression of an item pair's new score on its old one; a thousandth of the
    straight line is mixed in, so that items on a step keep the order they had. ``z-score`` and
    ``min-max`` are the straight lines that make mean and deviation, or the ends, equal. An item of
    both lists scores the mean. Read in rebasis, docs/mixed-space-fusion.md at commit 87a9761 (the
    isotonic map and its ties); the two lines are remembered, and that they are fitted once on
    training pairs and not on each query's lists is ours: the scale of an item's score then does
    not depend on what else is filled.
    """

    paper = "Fox and Shaw, Combination of Multiple Searches, TREC-2, 1994; isotonic: rebasis"
    variants = {"z-score": {"scale": "z-score"}, "min-max": {"scale": "min-max"}}
    ranges = {"items": "[3, inf)", "window": "[1, inf)"}

    # Isotonic, the default, needs no unit of either score.
    scale: Literal["isotonic", "z-score", "min-max"] = "isotonic"  # ours
    items: int = 1000  # ours: training items that are compared with each other
    window: int = 1000  # ours: as in rrf

    def fit_merge(self, pairs: Pairs, trainer: Trainer) -> contract.ScoreMerge:
        """Scores of all pairs of some items, by both models, in float64."""
        with drawing_from(trainer.seed, "score-merge"):
            rows = torch.randperm(len(pairs.old))[: self.items]
        left, right = np.triu_indices(len(rows), 1)
        tables = []
        for vectors in (pairs.old[rows].double(), pairs.new[rows].double()):
            unit = F.normalize(vectors) if pairs.distance == "cosine" else vectors
            table = unit @ unit.T
            if pairs.distance == "l2":
                table = 2 * table - table.diag()[:, None] - table.diag()
            tables.append(table.numpy()[left, right])
        return contract.ScoreMerge.of(fit_scale(self.scale, *tables), self.window)


def fit_scale(kind: str, old: np.ndarray, new: np.ndarray) -> Scale:
    """The map of old scores ``[n]`` to new ones of the same pairs of items, ``[n]``."""
    if kind == "min-max":
        low, goal, spread, rise = old.min(), new.min(), np.ptp(old), np.ptp(new)
    else:
        low, goal, spread, rise = old.mean(), new.mean(), old.std(), new.std()
    if not spread > 0:  # all old scores are one
        return Scale.checked(low, 1.0, [goal, goal + 1.0])
    line = Scale.checked(low, spread, [goal, goal + rise])
    if kind != "isotonic":
        return line
    order = np.argsort(old, kind="stable")
    places = np.linspace(old[order[0]], old[order[-1]], _KNOTS)
    steps = np.interp(places, old[order], isotonic_regression(new[order]))
    straight = goal + (places - low) / spread * rise
    values = np.maximum.accumulate((1 - _SLOPE) * steps + _SLOPE * straight)
    return Scale.checked(places[0], places[1] - places[0], values)
