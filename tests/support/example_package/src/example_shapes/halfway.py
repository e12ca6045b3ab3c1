"""Halfway: the stored gallery moves by half of what the means of both models are apart."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from benchmark.contract import FittedMap, Trainer, VectorMap
from benchmark.models.parts import Affine


@dataclass(frozen=True)
class Halfway(VectorMap):
    """x + share * (mean of y - mean of x)."""

    paper = "An example"
    ranges: ClassVar = {"share": "[0, 1]"}

    share: float = 0.5  # ours

    def fit_vectors(self, source: Tensor, target: Tensor, trainer: Trainer) -> FittedMap:
        """A shift."""
        shift = self.share * (target.mean(dim=0) - source.mean(dim=0))
        return Affine.of(torch.eye(source.shape[1]), shift), {}
