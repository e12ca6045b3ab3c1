"""NCCL: contrastive loss against a memory bank of credible old features."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract import Batch, CompatibleTraining, OldClassifier, RefusedError, UpdateJob
from benchmark.models.heads import Head
from benchmark.training.credibility import near_one_class
from benchmark.training.memory_bank import MemoryBank, contrastive_loss


class State(nn.Module):
    """Bank of old features and their logits, the mask of credible ones, K where it is kept."""

    credible: Tensor

    def __init__(self, bank: MemoryBank, credible: Tensor, old: OldClassifier | None) -> None:
        super().__init__()
        self.bank, self.old_classifier = bank, old
        self.register_buffer("credible", credible)


@dataclass(frozen=True)
class NCCL(CompatibleTraining[State]):
    """L_new + features * l(f) + logits * l(logits of f), against a memory of old features.

    l = -mean_i sum_pos w_ij (s_ij - lse_j s_ij) / |pos|, s_ij = n(f_i).q_j / tau,
    w_ij = (n(o_i).n(o_j) + 1) / 2, over all q_j in the memory; positives have the same
    class. Logits are those of K where it is kept, else of the new classifier. That their rows are
    unit vectors too is ours: the published code set the weight 0.01 for logits as they come.
    The published code of MixBCT has a ``doubt`` of 0.5, for thousands of classes; of a few dozen
    it leaves most without a credible feature, and these learn nothing. Ours is chosen on products
    of training.
    On several devices the queries of each are its own rows, and the memory takes in those of all.
    """

    paper = (
        "Wu et al., Neighborhood Consensus Contrastive Learning for Backward-Compatible "
        "Representation, AAAI 2022; compared in MixBCT section 4.4"
    )
    fidelity = "code"
    uses = ("stored old features", "the old classifier where it is kept")
    ranges = {
        "features": "[0, inf)", "logits": "[0, inf)", "tau": "(0, inf)", "size": "[1, inf)",
        "doubt": "[0, inf)",
    }  # fmt: skip

    features: float = 1.0  # weight of the term on features; published code of MixBCT
    logits: float = 0.01  # weight of the term on logits; published code of MixBCT
    tau: float = 1.0  # temperature; published code of MixBCT
    size: int = 8192  # of the memory, MixBCT section 4.4; 2,048 in NCCL
    doubt: float = 0.85  # share of log C that a credible entropy may reach; ours, see above

    def prepare(self, job: UpdateJob) -> State:
        """An empty memory, and which old features may enter it."""
        old, data = job.old.features, job.data
        credible = near_one_class(old, data.labels, self.doubt)
        if not credible.any():
            raise RefusedError(f"nccl: no old feature has an entropy below {self.doubt} log C")
        kept = None if job.old.head is None else OldClassifier.of(job, synthesize=False)
        n_logits = len(data.classes) if kept is None else len(kept.weight)
        # Of few images an epoch fits in; where not all are credible, some stand in it twice.
        bank = MemoryBank(min(self.size, len(data)), old.shape[1], n_logits)
        return State(bank, credible, kept)

    def loss(self, batch: Batch, head: Head, state: State) -> Tensor:
        """Classification plus both contrasts with the memory, which has the batch in it."""
        classifier = head if state.old_classifier is None else state.old_classifier
        old = F.normalize(batch.old.detach())
        entering = torch.where(state.credible[batch.index], batch.labels, -1)
        state.bank.push(entering, old, F.normalize(classifier.logits(batch.old)))
        labels, features, logits = state.bank.rows()
        positive = labels == batch.labels[:, None]
        count = positive.sum(dim=1, keepdim=True).clamp_min(1)
        weight = positive * (old @ features.T + 1) / 2 / count
        new, new_logits = F.normalize(batch.new), F.normalize(classifier.logits(batch.new))
        near = contrastive_loss(new, features, weight, self.tau)
        alike = contrastive_loss(new_logits, logits, weight, self.tau)
        return head(batch.new, batch.labels) + self.features * near + self.logits * alike
