"""Asymmetric: new queries learn the old embedding itself, by regression or by contrast."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract import Batch, CompatibleTraining, Head, Portable, Update, UpdateJob
from benchmark.training.memory_bank import gather_rows


@dataclass(frozen=True)
class Asymmetric(CompatibleTraining[nn.Module]):
    """mean of D^2 / 2, D = ||n(f) - n(o)||, f and o of the same image: no label is used.

    ``contrastive``: of each new feature, the mean of D^2 / 2 to old features of its class and the
    sum of max(margin - D, 0)^2 / 2 over the nearest of other classes. Either way the old model is
    the teacher of a student that embeds queries, and the gallery stays its own; new/new, which
    nothing here asks for, is about what the teacher's is.

    Of published code (budnikm/aml at 332d20c, functional.py, training.py) both losses, the margin
    and which side is whose were read; the paper's abstract alone, which finds regression best for
    asymmetric search. There a tuple has one positive and mined negatives; positives and the nearest
    of the batch of all devices are ours.
    """

    paper = "Budnik and Avrithis, Asymmetric Metric Learning for Knowledge Transfer, CVPR 2021"
    fidelity = "code"
    reads_old_head = False
    variants = {"contrastive": {"objective": "contrastive"}}
    trains = "a new model on the old one's vectors, without a classifier"
    ranges = {"margin": "(0, inf)", "negatives": "[1, inf)"}

    objective: Literal["regression", "contrastive"] = "regression"  # published code: reg, ts
    margin: float = 0.7  # m, published code
    negatives: int = 5  # nearest of other classes that count; ours

    @property
    def uses(self) -> tuple[str, ...]:
        """Labels say which old features are of another class."""
        labels = ("labels",) if self.objective == "contrastive" else ()
        return (*super().uses, *labels)

    def new_model(self, job: UpdateJob) -> tuple[Portable, Head]:
        """An encoder; its classifier does not train."""
        encoder, head = job.new_model()
        return encoder, head.requires_grad_(False)

    def loss(self, batch: Batch, head: Head, state: nn.Module) -> Tensor:
        """Of the batch; negatives are of all devices."""
        new, old = F.normalize(batch.new), F.normalize(batch.old.detach())
        if self.objective == "regression":
            return (new - old).square().sum(dim=1).mean() / 2
        others, labels = gather_rows(old), gather_rows(batch.labels)
        squared = (2 - 2 * new @ others.T).clamp_min(1e-12)  # the root of 0 has no gradient
        same = batch.labels[:, None] == labels
        near = (squared * same).sum(dim=1) / same.sum(dim=1)
        violation = (self.margin - squared.sqrt()).clamp_min(0.0).masked_fill(same, 0.0)
        far = violation.topk(min(self.negatives, len(others))).values.square().sum(dim=1)
        return (near + far).mean() / 2

    def finish(self, job: UpdateJob, encoder: Portable, head: Head, state: nn.Module) -> Update:
        """There is no classifier."""
        return Update(encoder, None)
