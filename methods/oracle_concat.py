"""Control: old and new vector side by side, the upper bound of methods that add dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.contract import Method, Portable, Update, UpdateJob
from benchmark.models.parts import FirstDims


class Concatenation(Portable):
    """The vectors of two models, one after the other.

    Args:
        old: The old model, whose vector comes first and as it is.
        new: The new model.
        parts: How many models the old one consists of already; 0: lengths stay as they are.
    """

    def __init__(self, old: Portable, new: Portable, parts: int) -> None:
        super().__init__()
        self.old, self.new, self.parts = old, new, parts

    def forward(self, images: Tensor) -> Tensor:
        """``[n, c, h, w]`` -> ``[n, d_old + d_new]``."""
        old, new = self.old(images), self.new(images)
        if self.parts:
            # As long as each part of the old vector: in a cosine all parts then count alike, and
            # the old vector itself is not touched.
            new = F.normalize(new) * old.norm(dim=1, keepdim=True) / self.parts**0.5
        return torch.cat([old, new], dim=1)


@dataclass(frozen=True)
class OracleConcat(Method):
    """Stored: [n(o), n(f)] of the independent f; queries show the old gallery their part o.

    New/old is old/old exactly, and old information costs the new nothing; but each query runs
    through both models and the vectors grow by all of f (BT2 section 1).
    """

    paper: ClassVar[str] = (
        "Zhou et al., BT^2: Backward-compatible Training with Basis Transformation, ICCV 2023, "
        "section 1: the upper bound solution"
    )
    runs_old_model: ClassVar[bool] = True
    trains: ClassVar[str] = "nothing: the old and the independent model, side by side"

    @property
    def needs(self) -> tuple[str, ...]:
        """The independent new model."""
        return ("independent",)

    @property
    def uses(self) -> tuple[str, ...]:
        """The old model stays in service."""
        return ("the old model on all new images and queries",)

    @property
    def changes(self) -> tuple[str, ...]:
        """The dimension."""
        return ("dimension",)

    def update(self, job: UpdateJob) -> Update:
        """Put the old and the independent model side by side; there is no common classifier."""
        if job.independent is None:
            raise ValueError("job.independent: the plan must provide the independent model")
        parts = len(job.chain) if job.distance == "cosine" else 0
        model = Concatenation(job.old.model, job.independent.model, parts)
        return Update(model, None, query_view=FirstDims(job.old.features.shape[1]))
