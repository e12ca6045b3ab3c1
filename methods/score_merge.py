"""Score-merge: two lists merged by scores, the old ones brought to the scale of the new ones."""

from dataclasses import dataclass

import torch

from benchmark import contract
from benchmark.contract import Pairs, ResultLists, Trainer, drawing_from
from benchmark.training.calibration import ScaleKind, fit_scale, scores_between


@dataclass(frozen=True)
class ScoreMerge(ResultLists):
    """A monotone map of old scores to new ones, fitted on scores between training items.

    ``isotonic`` is the regression of an item pair's new score on its old one; a thousandth of the
    straight line is mixed in, so that items on a step keep the order they had. ``z-score`` and
    ``min-max`` are the straight lines that make mean and deviation, or the ends, equal. An item of
    both lists scores the mean. Read in rebasis, docs/mixed-space-fusion.md at commit 87a9761 (the
    isotonic map and its ties); the two lines are remembered, and that they are fitted once on
    training pairs and not on each query's lists is ours: the scale of an item's score then does
    not depend on what else is filled. The new model has learned these pairs, and scores others
    lower.
    """

    paper = "Fox and Shaw, Combination of Multiple Searches, TREC-2, 1994; isotonic: rebasis"
    fidelity = {"": "paper", "z-score": "second-hand", "min-max": "second-hand"}
    variants = {"z-score": {"scale": "z-score"}, "min-max": {"scale": "min-max"}}
    ranges = {"items": "[3, inf)", "window": "[1, inf)"}

    # Isotonic, the default, needs no unit of either score.
    scale: ScaleKind = "isotonic"  # ours
    items: int = 1000  # ours: training items that are compared with each other
    window: int = 1000  # ours: as in rrf

    def fit_merge(self, pairs: Pairs, trainer: Trainer) -> contract.ScoreMerge:
        """Scores of all pairs of some items, by both models, in float64."""
        with drawing_from(trainer.seed, "score-merge"):
            rows = torch.randperm(len(pairs.old))[: self.items]
        cosine = pairs.distance == "cosine"
        old, new = (scores_between(x[rows], cosine=cosine) for x in (pairs.old, pairs.new))
        return contract.ScoreMerge.of(fit_scale(self.scale, old, new), self.window)
