"""BCT(+32): BCT with extra dimensions, which the old classifier does not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from benchmark.contract import (
    Batch,
    Head,
    OldClassifierTraining,
    OldHead,
    Portable,
    UpdateJob,
    distillation,
    in_range,
)


@dataclass(frozen=True)
class BCTExtra(OldClassifierTraining):
    """BCT's loss on d_old + extra dimensions, K padded with zeros (BT2 section 4.3).

    The zeros are not multiplied: K judges the first d_old dimensions, which are those that old
    vectors are compared with, and which it normalises alone where it normalises.
    """

    paper: ClassVar[str] = (
        "Zhou et al., BT^2: Backward-compatible Training with Basis Transformation, ICCV 2023, "
        "section 4.3"
    )
    variants: ClassVar = {"old": {"unknown": "old"}, "distill": {"unknown": "distill"}}

    extra: int = 32  # dimensions, section 4.3

    def __post_init__(self) -> None:
        super().__post_init__()
        in_range(self, extra="[0, inf)")

    @property
    def changes(self) -> tuple[str, ...]:
        """The training and the dimension."""
        return ("training", "dimension")

    def new_model(self, job: UpdateJob) -> tuple[Portable, Head]:
        """A model with the extra dimensions; every further update adds as many."""
        return job.new_model(dim=job.old.features.shape[1] + self.extra)

    def loss(self, batch: Batch, head: Head, state: OldHead) -> Tensor:
        """Classification on all dimensions, BCT's influence loss on those of the old embedding."""
        influence, known = state.losses(batch.new, batch.labels)
        if self.unknown == "distill":
            influence = torch.where(known, influence, distillation(batch, state, self.temperature))
        return head(batch.new, batch.labels) + self.weight * influence.mean()
