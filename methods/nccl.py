"""NCCL: new features stay among the credible old features of their class, in a memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract import (
    Batch,
    CompatibleTraining,
    Head,
    OldHead,
    RefusedError,
    UpdateJob,
    frozen_old_head,
    in_range,
)
from benchmark.training.credibility import certain
from benchmark.training.memory_bank import Memory, contrast


class Neighbours(nn.Module):
    """Memory of old features and of their logits, the mask of credible ones, K where it is kept."""

    credible: Tensor

    def __init__(self, memory: Memory, credible: Tensor, judge: OldHead | None) -> None:
        super().__init__()
        self.memory, self.judge = memory, judge
        self.register_buffer("credible", credible)


@dataclass(frozen=True)
class NCCL(CompatibleTraining[Neighbours]):
    """L_new + features * l(f) + logits * l(logits of f), against a memory of old features.

    l = -mean_i sum_pos w_ij (s_ij - lse_j s_ij) / |pos|, s_ij = n(f_i).q_j / tau,
    w_ij = (n(o_i).n(o_j) + 1) / 2, over all q_j in the memory; positive is what has the same
    class. Logits are those of K where it is kept, else of the new classifier. That their rows are
    unit vectors too is ours: the published code set the weight 0.01 for logits as they come.
    On several devices each asks with its own rows, and the memory takes in those of all.
    """

    paper: ClassVar[str] = (
        "Wu et al., Neighborhood Consensus Contrastive Learning for Backward-Compatible "
        "Representation, AAAI 2022; compared in MixBCT section 4.4"
    )

    features: float = 1.0  # weight of the term on features; published code of MixBCT
    logits: float = 0.01  # weight of the term on logits; published code of MixBCT
    tau: float = 1.0  # temperature; published code of MixBCT
    size: int = 8192  # of the memory, MixBCT section 4.4; 2,048 in NCCL
    doubt: float = 0.5  # share of log C that a credible entropy may reach; published code of MixBCT

    def __post_init__(self) -> None:
        in_range(self, features="[0, inf)", logits="[0, inf)", tau="(0, inf)")
        in_range(self, size="[1, inf)", doubt="[0, inf)")

    @property
    def uses(self) -> tuple[str, ...]:
        """Old features, and K for the logits; where there is none, the new classifier."""
        return (*super().uses, "the old classifier where it is kept")

    def prepare(self, job: UpdateJob) -> Neighbours:
        """An empty memory, and which old features may enter it."""
        old, data = job.old.features, job.data
        credible = certain(old, data.labels, self.doubt)
        if not credible.any():
            raise RefusedError(f"nccl: no old feature has an entropy below {self.doubt} log C")
        judge = None if job.old.head is None else frozen_old_head(job, synthesize=False)
        answers = len(data.classes) if judge is None else len(judge.weight)
        # No image twice: of few images an epoch fits in.
        memory = Memory(min(self.size, len(data)), old.shape[1], answers)
        return Neighbours(memory, credible, judge)

    def loss(self, batch: Batch, head: Head, state: Neighbours) -> Tensor:
        """Classification plus both contrasts with the memory, which has the batch in it."""
        logits = head.logits if state.judge is None else state.judge.logits
        old = F.normalize(batch.old.detach())
        entering = torch.where(state.credible[batch.index], batch.labels, -1)
        state.memory.push(entering, old, F.normalize(logits(batch.old)))
        labels, features, answers = state.memory.rows()
        positive = labels == batch.labels[:, None]
        count = positive.sum(dim=1, keepdim=True).clamp_min(1)
        weight = positive * (old @ features.T + 1) / 2 / count
        near = contrast(F.normalize(batch.new), features, weight, self.tau)
        alike = contrast(F.normalize(logits(batch.new)), answers, weight, self.tau)
        return head(batch.new, batch.labels) + self.features * near + self.logits * alike
