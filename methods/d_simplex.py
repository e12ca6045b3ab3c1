"""d-Simplex: one fixed simplex classifier for all generations; with HOC, a contrastive loss."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract import Batch, CompatibleTraining, Portable, RefusedError, Step, UpdateJob
from benchmark.models.heads import Head, SimplexHead
from benchmark.models.parts import Frozen


class State(nn.Module):
    """The vertex of each class of the data, and the previous model."""

    vertex: Tensor

    def __init__(self, vertex: Tensor, previous: nn.Module | None) -> None:
        super().__init__()
        self.register_buffer("vertex", vertex)
        self.previous = None if previous is None else Frozen(previous)


@dataclass(frozen=True)
class DSimplex(CompatibleTraining[State]):
    """Cross-entropy under a classifier whose rows are the vertices of a regular simplex.

    The first generation is trained so as well. Vertices of classes that are not in the data stay
    in the softmax: places kept for later. By default there is one for each class of the dataset,
    those of the evaluation too, of which nothing but their number is used. The embedding has one
    dimension less than the simplex has vertices, whatever the track says.

    ``hoc`` (higher-order compatibility) trains the later generations with
    weight * cross-entropy + (1 - weight) * L_hoc (eq. 3),
    L_hoc = mean_i (-mu o_i.f_i + log sum_j exp(mu o_i.f_j)) over the images j of other classes
    (eq. 4), o the features of the generation before, of the same augmented images, all
    normalised. In the published code the pairs of one class stay in the sum with exp(0); here
    they are left out. Each generation starts from the initial weights of every method, as a
    replaced model does; the paper also goes on from the one before. On several devices the other
    classes of L_hoc are those in each device's share of the batch.
    """

    paper = (
        "Biondi et al., Stationary Representations: Optimally Approximating Compatibility and "
        "Implications for Improved Model Replacements, CVPR 2024"
    )
    fidelity = "code"
    own_first = True
    variants = {"hoc": {"hoc": True}}
    changes = ("training", "dimension")
    ranges = {"weight": "[0, 1]", "mu": "(0, inf)", "vertices": "[0, inf)"}

    hoc: bool = False  # eq. 3 instead of cross-entropy alone
    weight: float = 0.1  # lambda, eq. 3; value of the published code
    mu: float = 10.0  # eq. 4; value of the published code
    vertices: int = 0  # ours: 0, one for each class of the dataset; 1,024 in the published code
    head: Literal["softmax", "track"] = "softmax"  # eq. 3; or as the track's classifier

    @property
    def uses(self) -> tuple[str, ...]:
        """HOC embeds the images by the generation before."""
        return ("the old model on the training images",) if self.hoc else ()

    def refuses(self, step: Step) -> str | None:
        """All generations have the size of the simplex."""
        return None

    def new_model(self, job: UpdateJob) -> tuple[Portable, Head]:
        """An encoder of as many dimensions as the simplex has, and the fixed classifier."""
        count = self.vertices or job.n_classes
        if count < job.n_classes:
            raise RefusedError(
                f"d-simplex: vertices: expected {job.n_classes} or more, one for each class of "
                f"the dataset, got {count}"
            )
        spec, smoothing = job.spec, job.trainer.recipe.label_smoothing
        kind = spec.head if self.head == "track" else "softmax"
        encoder, _ = job.new_model(count - 1)
        return encoder, SimplexHead(kind, count, spec.scale, spec.margin, smoothing)

    def prepare(self, job: UpdateJob) -> State:
        """Class numbers are vertices; HOC embeds by the generation before."""
        later = self.hoc and bool(job.chain)
        return State(job.data.classes, job.old.model if later else None)

    def loss(self, batch: Batch, head: Head, state: State) -> Tensor:
        """Cross-entropy under the fixed classifier, with HOC mixed with the contrast."""
        stationary: Tensor = head(batch.new, state.vertex[batch.labels])
        if state.previous is None:
            return stationary
        old = state.previous(batch.images).float()
        higher_order = hoc_loss(batch.new, old, batch.labels, self.mu)
        return self.weight * stationary + (1 - self.weight) * higher_order


def hoc_loss(new: Tensor, old: Tensor, labels: Tensor, mu: float) -> Tensor:
    """L_hoc (eq. 4) of new features ``[B, d]`` and old ones of the same images; mu scales cosines.

    Each old feature is pulled to the new one of its image, and pushed from other classes.
    """
    scores = mu * F.normalize(old) @ F.normalize(new).T
    other = labels[:, None] != labels
    # An image whose batch has no other class is only pulled.
    rows = other.any(dim=1)
    push = torch.logsumexp(scores.masked_fill(~other, -torch.inf)[rows], dim=1)
    return (push.sum() - scores.diagonal().sum()) / len(labels)
