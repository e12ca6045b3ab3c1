"""LwF: the old classifier's answers to new images stay what they were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from benchmark.contract import (
    Batch,
    CompatibleTraining,
    Head,
    OldHead,
    UpdateJob,
    distillation,
    frozen_old_head,
    in_range,
)


@dataclass(frozen=True)
class LwF(CompatibleTraining[OldHead]):
    """L_new + weight * CE(K(o), K(f)) on newly added images, K frozen (BCT section 3.5).

    Newly added are the images whose class K does not know; where it knows every class, as with
    more data of the same classes, nothing tells old images from new ones and all of them count.
    """

    paper: ClassVar[str] = (
        "Li and Hoiem, Learning without Forgetting, ECCV 2016, as compared in BCT section 3.5"
    )

    longer: ClassVar[bool] = True

    weight: float = 1.0  # lambda, LwF eq. 1
    temperature: float = 1.0  # beside K's own scale: that alone, BCT appendix A

    def __post_init__(self) -> None:
        in_range(self, weight="[0, inf)", temperature="(0, inf)")

    @property
    def needs(self) -> tuple[str, ...]:
        """The old classifier."""
        return ("old_head",)

    def prepare(self, job: UpdateJob) -> OldHead:
        """The frozen old classifier as it is."""
        return frozen_old_head(job, synthesize=False)

    def loss(self, batch: Batch, head: Head, state: OldHead) -> Tensor:
        """Classification plus distillation, a mean over the whole batch."""
        added = (state.row_of < 0) | (state.row_of >= 0).all()
        terms = distillation(batch, state, self.temperature) * added[batch.labels]
        return head(batch.new, batch.labels) + self.weight * terms.mean()
