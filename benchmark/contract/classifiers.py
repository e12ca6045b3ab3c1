"""The frozen old classifier on new features: as it was kept, from old features, or both."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract.bases import CompatibleTraining
from benchmark.contract.method import Step, UpdateJob
from benchmark.models.heads import class_logits
from benchmark.training.embedding import Batch
from benchmark.training.prototypes import class_means


class OldClassifier(nn.Module):
    """A frozen classifier over old features: rows ``[k, d_old]`` and biases ``[k]``.

    Where the logits are cosines, ``scale`` multiplies them. ``row_of`` ``[C]`` is the row of each
    class of the new data; -1 where the classifier has none.
    """

    weight: Tensor
    bias: Tensor | None
    row_of: Tensor

    def __init__(
        self, weight: Tensor, bias: Tensor | None, scale: float | None, row_of: Tensor
    ) -> None:
        super().__init__()
        self.scale = scale
        self.register_buffer("weight", weight.detach().clone())
        self.register_buffer("bias", None if bias is None else bias.detach().clone())
        self.register_buffer("row_of", row_of)

    @property
    def dim(self) -> int:
        """Dimension of the old embedding."""
        return self.weight.shape[1]

    def logits(self, features: Tensor) -> Tensor:
        """Logits without margin, ``[n, d_old]`` -> ``[n, k]`` float32."""
        return class_logits(features, self.weight, self.bias, self.scale)

    def losses(self, features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy ``[n]`` of features, 0 where the class is unknown; and a mask of the known.

        Of features ``[n, d]`` the first ``dim`` dimensions count; labels are of the new data.
        """
        rows = self.row_of[labels]
        known = rows >= 0
        logits = self.logits(features[:, : self.dim])
        losses = F.cross_entropy(logits, rows.clamp_min(0), reduction="none")
        return torch.where(known, losses, torch.zeros_like(losses)), known

    def distillation(self, batch: Batch, temperature: float) -> Tensor:
        """Cross-entropy between the outputs for old and for new features, ``[B]``.

        Of longer features the first ``dim`` dimensions count; the temperature divides the logits,
        beside the classifier's own scale.
        """
        targets = F.softmax(self.logits(batch.old.detach()) / temperature, dim=1)
        logits = self.logits(batch.new[:, : self.dim]) / temperature
        return F.cross_entropy(logits, targets, reduction="none")

    @classmethod
    def of(cls, job: UpdateJob, *, synthesize: bool) -> Self:
        """The frozen old classifier K of an update.

        A kept K keeps its form and scale, without its margin. ``synthesize`` adds a row for each
        class that K does not know: the mean old feature of the class. Its length and bias, which
        the paper leaves open (its classifiers are cosines), are the means of those of K's rows,
        which favours no class. Where K is discarded, or knows no class of the new data, every row
        is such a mean, normalised, and the logits are cosines at the new classifier's scale, which
        a softmax one has by its classes (:func:`benchmark.models.heads.cosine_scale`): at scale 1
        a softmax over C cosines cannot fall below log C - 2 and would teach nothing.

        Source:
            BCT section 2.5; MixBCT section 3.1 (the old classifier is discarded).
        """
        data, kept = job.data, job.old.head
        n_classes = len(data.classes)
        means = F.normalize(class_means(job.old.features, data.labels, n_classes))
        known = None if kept is None else torch.isin(data.classes, kept.classes)
        if kept is None or known is None or (synthesize and not known.any()):
            return cls(means, None, job.spec.scale, torch.arange(n_classes))
        rows = torch.full((n_classes,), -1)
        order = kept.classes.argsort()
        rows[known] = order[torch.searchsorted(kept.classes, data.classes[known], sorter=order)]
        weight: Tensor = kept.weight.detach()
        bias: Tensor | None = kept.bias
        if synthesize and not known.all():
            new_rows = means[~known]
            rows[~known] = torch.arange(len(new_rows)) + len(weight)
            if not kept.normalised:  # as long as K's own: mean features would outvote them
                new_rows = new_rows * weight.norm(dim=1).mean()
            weight = torch.cat([weight, new_rows])
            bias = None if bias is None else torch.cat([bias, bias.mean().expand(len(new_rows))])
        return cls(weight, bias, kept.scale if kept.normalised else None, rows)


@dataclass(frozen=True)
class OldClassifierTraining(CompatibleTraining[OldClassifier]):
    """Base of methods whose loss applies the frozen old classifier K to new features (BCT 2.5).

    ``unknown`` names the treatment of images whose class K does not know: ``synthesize`` adds
    rows from their old features, ``distill`` uses K's outputs for these, ``old`` leaves them out.
    """

    longer: ClassVar[bool] = True
    ranges: ClassVar = {"weight": "[0, inf)", "temperature": "(0, inf)"}

    unknown: Literal["synthesize", "distill", "old"] = "synthesize"  # BCT section 2.5
    weight: float = 1.0  # lambda, BCT eq. 7
    temperature: float = 1.0  # of distill, beside K's own scale: that alone, BCT appendix A

    @property
    def needs(self) -> tuple[str, ...]:
        """Only synthesize works without the old classifier."""
        return () if self.unknown == "synthesize" else ("old_head",)

    @property
    def uses(self) -> tuple[str, ...]:
        """Old features, but for ``old``; K where it is kept."""
        features, kept = super().uses, ("the old classifier where it is kept",)
        return {"old": (), "distill": features, "synthesize": features + kept}[self.unknown]

    def refuses(self, step: Step) -> str | None:
        """Refuse ``old`` where K knows no class; synthesize has rows and distill needs none."""
        reason = super().refuses(step)
        if reason or self.unknown != "old" or step.shared_classes:
            return reason
        return "the old classifier knows no class of the new data"

    def prepare(self, job: UpdateJob) -> OldClassifier:
        """The frozen old classifier, in ``synthesize`` with rows for all classes."""
        return OldClassifier.of(job, synthesize=self.unknown == "synthesize")
