"""BCT(+32): BCT with extra dimensions, which the old classifier does not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from benchmark.families import CompatibleTraining
from benchmark.method import Step, UpdateJob
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.training.embedding import Batch
from benchmark.training.old_head import OldHead, frozen_old_head, influence, no_known_class


@dataclass(frozen=True)
class BCTExtra(CompatibleTraining[OldHead]):
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
    unknown: Literal["synthesize", "distill", "old"] = "synthesize"  # as in BCT section 2.5
    weight: float = 1.0  # lambda, BCT eq. 7
    temperature: float = 1.0  # of distill, beside K's own scale: that alone, BCT appendix A

    @property
    def needs(self) -> tuple[str, ...]:
        """Only synthesize works without the old classifier."""
        return () if self.unknown == "synthesize" else ("old_head",)

    @property
    def changes(self) -> tuple[str, ...]:
        """The training and the dimension."""
        return ("training", "dimension")

    def refuses(self, step: Step) -> str | None:
        """Only synthesize has a row for a class that the old classifier does not know."""
        found = super().refuses(step)
        return found if found or self.unknown == "synthesize" else no_known_class(step)

    def new_model(self, job: UpdateJob) -> tuple[Portable, Head]:
        """A model with the extra dimensions; every further update adds as many."""
        return job.new_model(dim=job.old.features.shape[1] + self.extra)

    def prepare(self, job: UpdateJob) -> OldHead:
        """The frozen old classifier, with synthesized rows where asked for."""
        return frozen_old_head(job, synthesize=self.unknown == "synthesize")

    def loss(self, batch: Batch, head: Head, state: OldHead) -> Tensor:
        """Classification on all dimensions plus influence loss on the first ones."""
        term = influence(batch, state, self.unknown, self.temperature)
        return head(batch.new, batch.labels) + self.weight * term
