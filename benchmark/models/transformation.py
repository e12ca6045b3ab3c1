"""The learned map from old to new embeddings that FCT describes and others build on.

Source: Ramanujan et al., Forward Compatible Training (2022), Figure 4, appendix D.1.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.models.module import Portable


class Transformation(Portable):
    """h(o, side): two branches of Linear-norm-ReLU twice to 256, joined by a mixer (D.1).

    Args:
        dim_old: Dimension of the old embedding.
        dim_side: Dimension of the side-information; 0 is none, a vector of zeros.
        dim_new: Dimension of the new embedding.
        width: Width of the mixer.
        normalise: Normalise the output, as where embeddings are normalised (appendix D.7).
        branch: Width of a branch.
        norm: Batch or layer normalisation between layers (appendix D.5).
        inputs: ``side`` hides the old embedding behind a vector of zeros (section 5.2).
        normalise_old: Normalise the old embedding first: in a chain some stored items are
            normalised outputs of the map before and others are fresh, and only the directions
            of both mean anything.
    """

    def __init__(
        self, dim_old: int, dim_side: int, dim_new: int, width: int, normalise: bool,
        branch: int = 256, norm: Literal["batch", "layer"] = "batch",
        inputs: Literal["both", "side"] = "both", normalise_old: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if inputs == "side" and dim_side == 0:
            raise ValueError("side-information: the only input, but there is none")
        self.normalise, self.normalise_old, self.dim_side = normalise, normalise_old, dim_side
        self.side_only = inputs == "side"
        layer = nn.BatchNorm1d if norm == "batch" else nn.LayerNorm
        self.old = _layers(layer, dim_old, branch)
        self.side = _layers(layer, max(1, dim_side), branch)
        self.mixer = nn.Sequential(*_layers(layer, 2 * branch, width), nn.Linear(width, dim_new))

    def forward(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Stored vectors ``[n, dim_old]`` to ``[n, dim_new]``; side-information is kept."""
        return self.estimates(vectors, side)[0], side

    def estimates(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Transformed vectors and their log variances, of which this map has none."""
        out = self.raw(vectors, side)
        return F.normalize(out) if self.normalise else out, None

    def raw(self, vectors: Tensor, side: Tensor | None) -> Tensor:
        """The mixer's output, ``[n, dim_new]`` float32, not normalised."""
        if (side is None) != (self.dim_side == 0):
            raise ValueError(f"side-information: fitted with {self.dim_side} dimensions of it")
        side = vectors.new_zeros(len(vectors), 1) if side is None else side
        if self.side_only:
            vectors = torch.zeros_like(vectors)
        elif self.normalise_old:
            vectors = F.normalize(vectors)
        return self.mixer(torch.cat([self.old(vectors), self.side(side)], dim=1)).float()


class WithSide(Portable):
    """h for stored vectors and g for their side-information: the next generation's gallery (4.4).

    Both take vectors and side-information.
    """

    def __init__(self, h: Transformation, g: Transformation) -> None:
        super().__init__()
        self.h, self.g = h, g

    def forward(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor]:
        """New vectors ``[n, d_new]`` and new side-information ``[n, s_new]``."""
        return self.h(vectors, side)[0], self.g(vectors, side)[0]


def _layers(norm: type[nn.Module], inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width), norm(width), nn.ReLU(),
        nn.Linear(width, width), norm(width), nn.ReLU(),
    )  # fmt: skip
