"""Maps of vectors whose numbers a closed form gives: nothing of them is trained."""

from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.models.module import Portable

_LEAN = 0.01
"""Weight of what the similarities to all classes say of an item, against its label."""


class Scaled(Portable):
    """The output of a map times a number for each dimension."""

    def __init__(self, map: Portable, dim: int) -> None:
        super().__init__()
        self.map = map
        self.scale = nn.Parameter(torch.ones(dim), requires_grad=False)

    @classmethod
    def of(cls, map: Portable, scale: Tensor) -> Self:
        """Of the numbers ``[dim]``."""
        made = cls(map, len(scale))
        made.scale.copy_(scale)
        return made

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim_in]`` -> ``[n, dim]``."""
        return self.map(vectors) * self.scale


class Routed(Portable):
    """sum_k w_k(x) (A_k x + b_k), w = softmax of the cosines with the centres over ``tau``."""

    def __init__(self, clusters: int, dim_in: int, dim_out: int, tau: float) -> None:
        super().__init__()
        self.tau = tau
        self.centre = nn.Parameter(torch.zeros(clusters, dim_in), requires_grad=False)
        self.weight = nn.Parameter(torch.zeros(clusters, dim_out, dim_in), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(clusters, dim_out), requires_grad=False)

    @classmethod
    def of(cls, centre: Tensor, weight: Tensor, bias: Tensor, tau: float) -> Self:
        """Of K centres ``[K, d_in]``, weights ``[K, d_out, d_in]`` and biases ``[K, d_out]``."""
        clusters, dim_out, dim_in = weight.shape
        routed = cls(clusters, dim_in, dim_out, tau)
        for own, given in ((routed.centre, centre), (routed.weight, weight), (routed.bias, bias)):
            own.copy_(given)
        return routed

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim_in]`` -> ``[n, dim_out]``."""
        cosine = F.normalize(vectors) @ F.normalize(self.centre).T
        share = (cosine / self.tau).softmax(dim=1)  # [n, clusters]
        out = share @ self.bias
        for k in range(len(self.weight)):
            out = out + share[:, k : k + 1] * F.linear(vectors, self.weight[k])
        return out


class Relabel(Portable):
    """The new mean ``[d_new]`` of the class with the nearest old mean ``[d_old]``, and a remainder.

    That are all new means, by the similarities to the old ones: it orders items of one label.
    """

    def __init__(self, classes: int, dim_old: int, dim_new: int) -> None:
        super().__init__()
        self.old = nn.Parameter(torch.zeros(classes, dim_old))
        self.new = nn.Parameter(torch.zeros(classes, dim_new))

    @classmethod
    def of(cls, old: Tensor, new: Tensor) -> Self:
        """Of means ``[C, d_old]`` and ``[C, d_new]``."""
        made = cls(len(old), old.shape[1], new.shape[1])
        with torch.no_grad():
            made.old.copy_(old)
            made.new.copy_(new)
        return made

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim_old]`` -> ``[n, dim_new]``; of classes equally near the first."""
        # |x - c|^2 less |x|^2, which is the same for all classes.
        nearest = (self.old.square().sum(1) - 2 * vectors @ self.old.T).argmin(dim=1)
        among = vectors @ self.old.T @ self.new / len(self.new)
        return self.new[nearest] + _LEAN * among


class Cosines(Portable):
    """Cosines of a vector to anchors, all of them about a centre; the result has length 1."""

    def __init__(self, dim: int, anchors: int) -> None:
        super().__init__()
        self.centre = nn.Parameter(torch.zeros(dim))
        self.anchors = nn.Linear(dim, anchors, bias=False)

    @classmethod
    def of(cls, vectors: Tensor, rows: Tensor) -> Self:
        """About the mean direction of vectors ``[n, d]``; anchors are some rows of them."""
        cosines, unit = cls(vectors.shape[1], len(rows)), F.normalize(vectors)
        with torch.no_grad():
            cosines.centre.copy_(unit.mean(0))
            cosines.anchors.weight.copy_(F.normalize(unit[rows] - unit.mean(0)))
        return cosines

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim]`` -> ``[n, anchors]``."""
        return F.normalize(self.anchors(F.normalize(F.normalize(vectors) - self.centre)))
