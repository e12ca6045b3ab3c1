"""AdvBCT: adversarial discriminator of new and old features, elastic boundaries of the classes."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract import Batch, CompatibleTraining, Head, UpdateJob
from benchmark.training.prototypes import class_means


def reversed_gradient(x: Tensor, strength: float) -> Tensor:
    """``x`` itself; its gradient comes back times ``-strength``."""
    return x.detach() + strength * (x.detach() - x)


class Boundary(nn.Module):
    """The sphere of each class around the centre of its old features, with an elastic radius.

    ``threshold`` is T, the radius that all boundaries tend to.
    """

    centre: Tensor
    radius: Tensor
    bounded: Tensor

    def __init__(self, features: Tensor, labels: Tensor, n_classes: int, threshold: float) -> None:
        super().__init__()
        unit = F.normalize(features.detach())
        centre = class_means(unit, labels, n_classes)
        self.threshold = threshold
        self.register_buffer("centre", centre)
        distance = (unit - centre[labels]).norm(dim=1)
        counts = torch.bincount(labels, minlength=n_classes)
        by_class = torch.split(distance[labels.argsort(stable=True)], counts.tolist())
        self.register_buffer("radius", torch.tensor([largest_usual(part) for part in by_class]))
        # One image alone has no extent.
        self.register_buffer("bounded", counts > 1)
        self.give = nn.Parameter(torch.empty(n_classes).uniform_(-1, 1))  # w_c

    def elastic(self) -> Tensor:
        """The boundary rho of each class, ``[C]``: its radius, moved to T by a learnt share."""
        # r + sigmoid(w) |r - T| below T and r - sigmoid(w) |r - T| above are the same formula.
        return self.radius + self.give.sigmoid() * (self.threshold - self.radius)

    def forward(self, new: Tensor, labels: Tensor) -> Tensor:
        """Mean distance beyond the boundary of the features that are beyond it; 0 if none is."""
        distance = (F.normalize(new) - self.centre[labels]).norm(dim=1)
        beyond = (distance - self.elastic()[labels]).clamp_min(0) * self.bounded[labels]
        return beyond.sum() / (beyond > 0).sum().clamp_min(1)


def largest_usual(distances: Tensor) -> float:
    """The largest of some distances once those beyond 1.5 inter-quartile ranges are left out.

    Quartiles are the elements at n / 4 and 3 n / 4; fewer than four are all kept.
    """
    ordered, n = distances.sort().values, len(distances)
    if n >= 4:
        low, high = ordered[n // 4], ordered[3 * n // 4]
        margin = 1.5 * (high - low)
        ordered = ordered[(ordered >= low - margin) & (ordered <= high + margin)]
    return float(ordered[-1]) if n else 0.0


class State(nn.Module):
    """Discriminator and boundaries, which train along."""

    def __init__(self, dim: int, width: int, boundary: Boundary) -> None:
        super().__init__()
        self.boundary = boundary
        self.discriminator = nn.Sequential(
            nn.Linear(dim, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 2)
        )


@dataclass(frozen=True)
class AdvBCT(CompatibleTraining[State]):
    """L_new + (1 - p) L_adv + L_border, p the progress of the training.

    L_adv is the cross-entropy of the discriminator on new and on old features; its gradient
    reaches the new ones reversed, at a strength 2 / (1 + exp(-10 p)) - 1 that rises from 0 to 1.
    The formulas are the published code's, but that there the weight falls epoch by epoch from
    (N + 1) / N to 2 / N, here step by step from 1 to 0. New and old features pass the discriminator
    apart: in one batch norm a difference of mean or length is seen at once, and fighting it costs
    the classification its first epochs. On several devices its batch norm, and the mean over what
    lies beyond a boundary, are of each one's share of the batch.
    """

    paper = (
        "Pan et al., Boundary-Aware Backward-Compatible Representation via Adversarial Learning "
        "in Image Retrieval, CVPR 2023"
    )
    fidelity = "code"
    variants = {"border": {"adversarial": 0.0}}
    ranges = {
        "adversarial": "[0, inf)", "border": "[0, inf)", "width": "[1, inf)",
        "steepness": "[0, inf)", "threshold": "[0, inf)",
    }  # fmt: skip

    adversarial: float = 1.0  # weight of L_adv at the start; published code
    border: float = 1.0  # weight of L_border; published code
    width: int = 100  # of the discriminator; published code
    steepness: float = 10.0  # of the rising strength; published code
    threshold: float = 1.0  # T; published configuration

    def prepare(self, job: UpdateJob) -> State:
        """Centres and radii of the old features of the new data; a fresh discriminator."""
        old, data = job.old.features, job.data
        boundary = Boundary(old, data.labels, len(data.classes), self.threshold)
        return State(old.shape[1], self.width, boundary)

    def loss(self, batch: Batch, head: Head, state: State) -> Tensor:
        """Classification, discriminator, boundary."""
        new, labels = batch.new, batch.labels
        strength = 2 / (1 + math.exp(-self.steepness * batch.progress)) - 1
        of_new = state.discriminator(reversed_gradient(new, strength))
        of_old = state.discriminator(batch.old.detach())
        adversarial = F.cross_entropy(of_new, torch.zeros_like(labels))
        adversarial = adversarial + F.cross_entropy(of_old, torch.ones_like(labels))
        weight = self.adversarial * (1 - batch.progress)
        beyond = state.boundary(new, labels)
        return head(new, labels) + weight * adversarial + self.border * beyond
