"""A map of the stored gallery with an estimate of its own error.

Source: Jaeckle et al., FastFill (2023), section 4.2 and appendix A.2.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.models.module import Portable
from benchmark.models.transformation import Transformation


class Uncertain(Portable):
    """h, and psi: the log variance of its error, a linear layer on the transformed embedding.

    Where h normalises its output, psi reads it before: on the unit sphere, where directions
    belong to classes, a linear layer can hardly tell a doubtful item.

    As a part of an update it is the priority: the largest expected error is backfilled first.
    ``dim`` is the transformed embedding's; ``diagonal`` gives each dimension a variance of its own.
    """

    def __init__(self, map: Transformation, dim: int, diagonal: bool = False) -> None:
        super().__init__()
        self.map, self.psi = map, nn.Linear(dim, dim if diagonal else 1)
        nn.init.zeros_(self.psi.bias)  # sigma^2 is about 1 before training

    def estimates(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor]:
        """Transformed vectors ``[n, dim]`` and log variances ``[n, 1]``, or ``[n, dim]``."""
        raw = self.map.raw(vectors, side)
        with torch.autocast(raw.device.type, enabled=False):  # it orders items: every bit counts
            return F.normalize(raw) if self.map.normalise else raw, self.psi(raw)

    def forward(self, vectors: Tensor, side: Tensor | None) -> Tensor:
        """Log of the expected squared error a dimension, ``[n]``."""
        logs = self.estimates(vectors, side)[1]
        return logs.logsumexp(dim=1) - math.log(logs.shape[1])
