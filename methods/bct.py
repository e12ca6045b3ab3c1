"""BCT: the old classifier, frozen, also judges the new features (influence loss)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from benchmark.families import CompatibleTraining
from benchmark.method import Step, UpdateJob
from benchmark.models.heads import Head
from benchmark.training.embedding import Batch
from benchmark.training.old_head import OldHead, frozen_old_head, influence, no_known_class


@dataclass(frozen=True)
class BCT(CompatibleTraining[OldHead]):
    """L_new(W, f, y) + weight * L_old(K, f[:d_old], y) with K frozen (eq. 7, 8).

    ``synthesize`` gives classes that K does not know the mean old feature as their row; where the
    protocol discards K, that is every class. ``old`` leaves such images out, ``distill`` holds
    their outputs under K to those of their old features.
    """

    paper: ClassVar[str] = (
        "Shen et al., Towards Backward-Compatible Representation Learning, CVPR 2020"
    )
    variants: ClassVar = {
        "old": {"unknown": "old"},
        "distill": {"unknown": "distill"},
        "synthesize": {"unknown": "synthesize"},
    }

    unknown: Literal["synthesize", "distill", "old"] = "synthesize"  # section 2.5
    weight: float = 1.0  # lambda, eq. 7
    temperature: float = 1.0  # of distill, beside K's own scale: that alone, appendix A

    @property
    def needs(self) -> tuple[str, ...]:
        """Only synthesize works without the old classifier."""
        return () if self.unknown == "synthesize" else ("old_head",)

    def refuses(self, step: Step) -> str | None:
        """Only synthesize has a row for a class that the old classifier does not know."""
        found = super().refuses(step)
        return found if found or self.unknown == "synthesize" else no_known_class(step)

    def prepare(self, job: UpdateJob) -> OldHead:
        """The frozen old classifier, with synthesized rows where asked for."""
        return frozen_old_head(job, synthesize=self.unknown == "synthesize")

    def loss(self, batch: Batch, head: Head, state: OldHead) -> Tensor:
        """Classification plus influence loss."""
        term = influence(batch, state, self.unknown, self.temperature)
        return head(batch.new, batch.labels) + self.weight * term
