"""BCT: the old classifier, frozen, also judges the new features (influence loss)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.families import CompatibleTraining
from benchmark.method import UpdateJob
from benchmark.models.heads import Head
from benchmark.training.embedding import Batch
from benchmark.training.old_head import OldHead, frozen_old_head


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
    temperature: float = 2.0  # of distill; the paper names none

    @property
    def needs(self) -> tuple[str, ...]:
        """Only synthesize works without the old classifier."""
        return () if self.unknown == "synthesize" else ("old_head",)

    def prepare(self, job: UpdateJob) -> OldHead:
        """The frozen old classifier, with synthesized rows where asked for."""
        return frozen_old_head(job, synthesize=self.unknown == "synthesize")

    def loss(self, batch: Batch, head: Head, state: OldHead) -> Tensor:
        """Classification plus influence loss."""
        influence = self.influence(batch, state)
        return head(batch.new, batch.labels) + self.weight * influence

    def influence(self, batch: Batch, old: OldHead) -> Tensor:
        """The second term of eq. 7, averaged over the whole batch."""
        rows = old.row_of[batch.labels]
        logits = old.logits(batch.new[:, : old.dim])
        known = rows >= 0
        terms = F.cross_entropy(logits, rows.clamp_min(0), reduction="none")
        if self.unknown == "distill":
            targets = F.softmax(old.logits(batch.old) / self.temperature, dim=1)
            soft = F.cross_entropy(logits / self.temperature, targets, reduction="none")
            terms = torch.where(known, terms, soft)
        else:
            # A batch without a known class gives 0, not the mean of nothing.
            terms = torch.where(known, terms, 0.0)
        return terms.mean()
