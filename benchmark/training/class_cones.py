"""The cone that holds the usual members of a class, on the sphere of directions.

Source: Meng et al., Learning Compatible Embeddings (2021).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

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
