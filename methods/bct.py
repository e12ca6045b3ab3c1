"""BCT: influence loss of the frozen old classifier on the new features."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.contract import Batch, Head, OldClassifier, OldClassifierTraining


@dataclass(frozen=True)
class BCT(OldClassifierTraining):
    """L_new(W, f, y) + weight * L_old(K, f[:d_old], y) with K frozen (eq. 7, 8).

    ``synthesize`` gives classes that K does not know the mean old feature as their row; where the
    protocol discards K, that is every class. ``old`` leaves such images out, ``distill`` holds
    their outputs under K to those of their old features, for which K need know no class at all.
    Of longer new features K reads the first d_old dimensions (section 3.6).
    """

    paper = "Shen et al., Towards Backward-Compatible Representation Learning, CVPR 2020"
    fidelity = "paper"
    variants = {
        "old": {"unknown": "old"},
        "distill": {"unknown": "distill"},
        "synthesize": {"unknown": "synthesize"},
    }

    def loss(self, batch: Batch, head: Head, state: OldClassifier) -> Tensor:
        """Classification on all dimensions plus the influence loss, means over the batch.

        A batch without a class that K knows has an influence of 0, not the mean of nothing.
        """
        influence, known = state.losses(batch.new, batch.labels)
        if self.unknown == "distill":
            distilled = state.distillation(batch, self.temperature)
            influence = torch.where(known, influence, distilled)
        return head(batch.new, batch.labels) + self.weight * influence.mean()
