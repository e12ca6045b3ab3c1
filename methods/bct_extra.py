"""BCT(+32): BCT with extra dimensions that the old classifier does not read."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.contract import Batch, OldClassifier, OldClassifierTraining, Portable, UpdateJob
from benchmark.models.heads import Head


@dataclass(frozen=True)
class BCTExtra(OldClassifierTraining):
    """BCT's loss on d_old + extra dimensions, K padded with zeros (BT2 section 4.3).

    The zeros are not multiplied: K reads the first d_old dimensions, which are those that old
    vectors are compared with, and which it normalises alone where it normalises. The length is
    d_old + extra, whatever that of the new model would be, as every later update needs.
    """

    paper = (
        "Zhou et al., BT^2: Backward-compatible Training with Basis Transformation, ICCV 2023, "
        "section 4.3"
    )
    fidelity = "paper"
    variants = {"old": {"unknown": "old"}, "distill": {"unknown": "distill"}}
    changes = ("training", "dimension")
    ranges = {"extra": "[0, inf)"}

    extra: int = 32  # dimensions, section 4.3

    def new_model(self, job: UpdateJob) -> tuple[Portable, Head]:
        """A model with the extra dimensions; every further update adds as many."""
        return job.new_model(dim=job.old.features.shape[1] + self.extra)

    def loss(self, batch: Batch, head: Head, state: OldClassifier) -> Tensor:
        """Classification on all dimensions, BCT's influence loss on those of the old embedding."""
        influence, known = state.losses(batch.new, batch.labels)
        if self.unknown == "distill":
            distilled = state.distillation(batch, self.temperature)
            influence = torch.where(known, influence, distilled)
        return head(batch.new, batch.labels) + self.weight * influence.mean()
