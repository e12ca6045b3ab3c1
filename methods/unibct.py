"""UniBCT: influence loss of old prototypes that the new model's neighbourhoods refine."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.contract import Batch, CompatibleTraining, Epoch, Head, OldClassifier, UpdateJob
from benchmark.training.credibility import near_own_class
from benchmark.training.prototypes import refined_prototypes


class Prototypes(OldClassifier):
    """Refined prototypes as the old classifier, and the number of refinements so far."""

    done: Tensor
    keep: Tensor

    def __init__(self, n_classes: int, dim: int, scale: float, keep: Tensor) -> None:
        super().__init__(torch.zeros(n_classes, dim), None, scale, torch.arange(n_classes))
        self.register_buffer("done", torch.tensor(0))
        self.register_buffer("keep", keep)


@dataclass(frozen=True)
class UniBCT(CompatibleTraining[Prototypes]):
    """L_new until the first refinement; then L_new + weight * L_old(prototypes, f[:d_old], y).

    L_old is a marginless softmax over cosines at the new classifier's scale. Prototypes come from
    denoised old features and the new features as they stand at the start of an epoch: with
    fewer than 3 epochs not all refinements fall due, and with one epoch none, which leaves the
    independent model.
    """

    paper = (
        "Zhang et al., Towards Universal Backward-Compatible Representation Learning, IJCAI 2022; "
        "compared in MixBCT section 4.4"
    )
    fidelity = "code"
    longer = True
    ranges = {
        "weight": "[0, inf)", "share": "[0, 1)", "tau": "(0, inf)", "drop": "[0, 1)",
        "warmup": "[0, 1)", "every": "(0, inf)", "refinements": "[0, inf)",
    }  # fmt: skip

    weight: float = 1.0  # of the influence; published code of MixBCT
    share: float = 0.9  # a, what an old feature takes from its neighbours; published code of MixBCT
    tau: float = 0.05  # temperature of the neighbourhood; published code of MixBCT
    drop: float = 0.1  # farthest share of each class that is left out, as in MixBCT section 3.4
    warmup: float = 10 / 35  # share of the training before refinement 1; published code of MixBCT
    every: float = 10 / 35  # share of the training between refinements; published code of MixBCT
    refinements: int = 2  # how often; published code of MixBCT

    def prepare(self, job: UpdateJob) -> Prototypes:
        """No prototypes yet; the mask of the old features that will enter them."""
        old, data = job.old.features, job.data
        keep = near_own_class(old, data.labels, self.drop)
        return Prototypes(len(data.classes), old.shape[1], job.spec.scale, keep)

    def refresh(self, state: Prototypes, job: UpdateJob, epoch: Epoch) -> None:
        """Refine where one or more refinements have become due."""
        starts = [self.warmup + k * self.every for k in range(self.refinements)]
        due = sum(epoch.progress + 1e-9 >= start for start in starts)
        if due <= int(state.done):
            return
        state.done.fill_(due)
        keep, data = state.keep.cpu(), job.data
        rows = job.old.features, epoch.embed(data.images), data.labels
        old, new, labels = (each[keep] for each in rows)
        # Of several devices the first one's count: it sends its buffers to the others.
        state.weight.copy_(
            refined_prototypes(old, new, labels, len(data.classes), self.share, self.tau)
        )

    def loss(self, batch: Batch, head: Head, state: Prototypes) -> Tensor:
        """Classification and, after the warm-up, influence."""
        losses, _ = state.losses(batch.new, batch.labels)
        return head(batch.new, batch.labels) + self.weight * losses.mean() * (state.done > 0)
