"""Control: old and new vectors side by side, the bound of methods that add dimensions."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.contract import Method, Portable, Update, UpdateJob
from benchmark.models.parts import FirstDims


class Concatenation(Portable):
    """The vectors of two models, the old one's first and as it is.

    ``parts`` is the number of models in the old one; with 0 the new vector keeps its length.
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
    """Stored: [n(o), n(f)] of the independent f; the old gallery is compared with the part o.

    New/old is old/old exactly, and old information costs the new nothing; but each query runs
    through both models and the vectors grow by all of f (BT2 section 1).
    """

    paper = (
        "Zhou et al., BT^2: Backward-compatible Training with Basis Transformation, ICCV 2023, "
        "section 1: the upper bound solution"
    )
    fidelity = "paper"
    runs_old_model = True
    model_runs = 2
    control = True
    trains = "nothing: the old and the independent model, side by side"
    needs = ("independent",)
    uses = ("the old model on all new images and queries",)
    changes = ("dimension",)

    def update(self, job: UpdateJob) -> Update:
        """Put the old and the independent model side by side; there is no common classifier."""
        parts = len(job.chain) if job.distance == "cosine" else 0
        model = Concatenation(job.old.model, job.require_independent().model, parts)
        return Update(model, None, query_view=FirstDims(job.old.features.shape[1]))
