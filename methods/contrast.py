"""Contrast: contrastive loss of new features with old and new ones of other classes (RACT)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract import Batch, CompatibleTraining, Head
from benchmark.training.memory_bank import gather_rows


@dataclass(frozen=True)
class Contrast(CompatibleTraining[nn.Module]):
    """L_new + weight * CE over [f.o same image | f.o other classes | f.f other classes] / tau.

    Regression-alleviating compatible training; BT2 section 4.3 prints the term with its brackets
    misplaced and old by old in the second sum. All features are unit vectors; gradient flows
    through the query f alone. Images of the same class are neither positive nor negative.
    """

    paper = (
        "Zhang et al., Hot-Refresh Model Upgrades with Regression-Alleviating Compatible "
        "Training in Image Retrieval, ICLR 2022; compared in BT2 section 4.3 and FastFill section 4"
    )
    fidelity = "code"
    variants = {"fastfill": {"tau": 0.5}, "top10": {"tau": 0.01, "hardest": 10}}
    ranges = {"weight": "[0, inf)", "tau": "(0, inf)", "hardest": "[0, inf)"}

    weight: float = 1.0  # lambda, FastFill appendix A.2
    tau: float = 0.5  # FastFill appendix A.2; 0.01 in the published code
    hardest: int = 0  # negatives of either kind that count, 0: all; 10 in the published code

    def loss(self, batch: Batch, head: Head, state: nn.Module) -> Tensor:
        """Classification plus the contrast, over the batch of all devices."""
        new, old = F.normalize(batch.new), F.normalize(batch.old.detach())
        same = batch.labels[:, None] == gather_rows(batch.labels)
        columns = [(new * old).sum(dim=1, keepdim=True)]
        for others in (gather_rows(old), gather_rows(new)):
            negatives = (new @ others.T).masked_fill(same, -torch.inf)
            if self.hardest:
                negatives = negatives.topk(min(self.hardest, negatives.shape[1])).values
            columns.append(negatives)
        logits = torch.cat(columns, dim=1) / self.tau
        term = (logits.logsumexp(dim=1) - logits[:, 0]).mean()
        return head(batch.new, batch.labels) + self.weight * term
