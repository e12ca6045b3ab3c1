"""A map of the stored gallery that also says how far from the new embeddings it expects to be.

Source: Jaeckle et al., FastFill (2023), section 4.2 and appendix A.2.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.models.module import Portable
from benchmark.models.transformation import Transformation


class Uncertain(Portable):
    """h, and psi: the log variance of its error, a linear layer on the transformed embedding.

    Where h normalises its output, psi reads it before: on the unit sphere, where directions
    belong to classes, a linear layer has hardly a way to tell a doubtful item.

    As a part of an update it is the priority: what is expected to be farthest off comes first.

    Args:
        map: h.
        dim: Dimension of the transformed embedding.
        diagonal: A variance of its own for each dimension.
    """

    def __init__(self, map: Transformation, dim: int, diagonal: bool = False) -> None:
        super().__init__()
        self.map, self.psi = map, nn.Linear(dim, dim if diagonal else 1)
        nn.init.zeros_(self.psi.bias)  # sigma^2 is about 1 before training

    def estimates(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor]:
        """Transformed vectors ``[n, dim]`` and log variances ``[n, 1]``, or ``[n, dim]``."""
        raw = self.map.mixer(self.map.joined(vectors, side)).float()
        made = F.normalize(raw) if self.map.normalise else raw
        with torch.autocast(raw.device.type, enabled=False):  # it orders items: every bit counts
            return made, self.psi(raw)

    def forward(self, vectors: Tensor, side: Tensor | None) -> Tensor:
        """Stored gallery -> log of the expected squared distance a dimension, ``[n]``."""
        logs = self.estimates(vectors, side)[1]
        return logs.logsumexp(dim=1) - math.log(logs.shape[1])


def log_mean(logs: Tensor) -> Tensor:
    """``[n, k]`` -> log of the geometric mean of what they are logarithms of, ``[n]``.

    The arithmetic mean would be that of the largest: one dimension, given up, could excuse an item
    from a loss that is divided by it.
    """
    return logs.mean(dim=1)
