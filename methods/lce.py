"""LCE: a map that is judged by the new classifier and by the borders of the new classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.checks import in_range
from benchmark.families import Fitted, Pairs
from benchmark.models.bottleneck import Bottlenecks
from benchmark.models.module import Portable
from benchmark.models.parts import Frozen
from benchmark.models.transformation import Transformation
from benchmark.training.loop import Trainer
from benchmark.training.maps import LearnedMap
from benchmark.training.new_head import new_head
from benchmark.training.prototypes import class_means


def angles(left: Tensor, right: Tensor) -> Tensor:
    """The angle between rows, ``[n]``, in radians; its gradient is finite at 0 and at pi."""
    left, right = F.normalize(left), F.normalize(right)
    # An arccosine has an infinite slope at 1, just where a class of one image has its member.
    return 2 * torch.atan2((left - right).norm(dim=1), (left + right).norm(dim=1))


class Borders(nn.Module):
    """The cone of each new class: its mean direction, and the angle that holds usual members.

    Args:
        new: New embeddings, ``[n, d]``.
        labels: Their classes, ``[n]``, 0 to C - 1.
        n_classes: C.
    """

    centre: Tensor
    theta: Tensor

    def __init__(self, new: Tensor, labels: Tensor, n_classes: int) -> None:
        super().__init__()
        self.register_buffer("centre", class_means(F.normalize(new), labels, n_classes))
        found = angles(new, self.centre[labels])
        usual = [largest_usual(found[labels == c]) for c in range(n_classes)]
        self.register_buffer("theta", torch.tensor(usual))

    def forward(self, made: Tensor, labels: Tensor) -> Tensor:
        """By how much embeddings lie outside the cone of their class, on average."""
        return (angles(made, self.centre[labels]) - self.theta[labels]).clamp_min(0).mean()


def largest_usual(values: Tensor) -> float:
    """The largest value up to 1.5 inter-quartile ranges above the third quartile; 0 of none."""
    if not len(values):
        return 0.0
    low, high = values.double().quantile(torch.tensor([0.25, 0.75], dtype=torch.float64))
    return float(values[values <= high + 1.5 * (high - low) + 1e-9].max())


@dataclass(frozen=True)
class LCE(LearnedMap):
    """L(W, h(o), y) + weight * mean of max(angle(h(o), c_y) - theta_y, 0).

    L is the new classifier's own loss and W is frozen; c_y is the centre of the new embeddings
    of a class, theta_y the largest angle to it but for outliers. Only the forward map of the
    method, as FCT appendix J compares it: the new model stays as it is.
    """

    paper: ClassVar[str] = "Meng et al., Learning Compatible Embeddings, ICCV 2021"
    variants: ClassVar = {"mlp": {"map": "mlp"}}

    map: Literal["rbt", "mlp"] = "rbt"  # rbt: published code; mlp: fct's
    weight: float = 1.0  # of the border; published code
    blocks: int = 4  # of rbt; published code
    bottleneck: int = 16  # of rbt; published code
    width: int = 2048  # of mlp, as fct

    def __post_init__(self) -> None:
        super().__post_init__()
        ones = dict.fromkeys(("blocks", "bottleneck", "width"), "[1, inf)")
        in_range(self, weight="[0, inf)", **ones)

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h on labels alone: no new embedding enters but in its class's cone."""
        head, labels = new_head(pairs, "lce")
        borders = Borders(pairs.new, labels, len(head.weight))

        def loss(h: nn.Module, old: Tensor, rows: Tensor) -> Tensor:
            made = h(old, None)[0]
            judged: Tensor = head(made, rows) + self.weight * borders(made, rows)
            return judged

        h, curves = self.train(
            lambda: self.network(pairs), loss, (pairs.old, labels), trainer,
            nn.ModuleList([Frozen(head), borders]),
        )  # fmt: skip
        return Fitted(h, curves=curves)

    def network(self, pairs: Pairs) -> Portable:
        """The residual bottlenecks, or the network of FCT."""
        d_old, d_new = pairs.old.shape[1], pairs.new.shape[1]
        on, past = pairs.normalised, pairs.old_normalised
        if self.map == "mlp":
            return Transformation(d_old, 0, d_new, self.width, on, normalise_old=past)
        return Bottlenecks(d_old, d_new, self.blocks, self.bottleneck, on, past)
