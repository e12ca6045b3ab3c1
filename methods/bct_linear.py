"""BCT and linear: backward training, then a ridge regression of the stored gallery."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.contract import (
    Batch,
    Epoch,
    Head,
    OldClassifier,
    OldClassifierTraining,
    Portable,
    Update,
    UpdateJob,
)
from benchmark.models.parts import Affine, Directions, KeepSide
from benchmark.training.closed_form import ridge


@dataclass(frozen=True)
class BCTLinear(OldClassifierTraining):
    """BCT's loss (eq. 7, 8), and A, b of the least mean ||A o + b - f||^2 + strength ||A||^2.

    A plain hybrid of ours: the training brings f near o, the regression the rest of the way. It
    stands where BiCT would, whose formulas could not be read. Features o are stored old ones and f
    those of the trained model on the new images without augmentation, unit vectors where
    directions are compared.
    """

    paper = (
        "Ours, of Shen et al., Towards Backward-Compatible Representation Learning, CVPR 2020, and "
        "Hoerl and Kennard, Ridge Regression, 1970"
    )
    fidelity = "ours"
    variants = {"distill": {"unknown": "distill"}}
    changes = ("training", "gallery")
    ranges = {"share": "[0, inf)"}

    share: float | None = None  # ours: as in linear, by default of the smallest leave-one-out error

    @property
    def uses(self) -> tuple[str, ...]:
        """Pairs of features in any variant; K where it is kept."""
        return ("stored old features", "the old classifier where it is kept")

    def loss(self, batch: Batch, head: Head, state: OldClassifier) -> Tensor:
        """Classification on all dimensions plus BCT's influence loss."""
        influence, known = state.losses(batch.new, batch.labels)
        if self.unknown == "distill":
            distilled = state.distillation(batch, self.temperature)
            influence = torch.where(known, influence, distilled)
        return head(batch.new, batch.labels) + self.weight * influence.mean()

    def finish(self, job: UpdateJob, encoder: Portable, head: Head, state: OldClassifier) -> Update:
        """Fit the conversion; converted vectors have the new size, so queries are as they are."""
        device, cosine = job.trainer.torch_device(), job.distance == "cosine"
        new = Epoch(0, 1.0, encoder, device).embed(job.data.images)
        old, new = (F.normalize(x) if cosine else x for x in (job.old.features, new))
        weight, bias, _ = ridge(old, new, self.share)
        convert = KeepSide(Directions(Affine.of(weight, bias), cosine))
        return Update(encoder, head, convert=convert)
