"""Low-rank: an affine map through a few dimensions, by reduced-rank regression in closed form."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmark.contract import FittedMap, Portable, Trainer, VectorMap
from benchmark.training.closed_form import ridge


class Narrow(Portable):
    """``U V^T x + b``, with ``rank`` dimensions between the two products."""

    def __init__(self, dim_in: int, rank: int, dim_out: int) -> None:
        super().__init__()
        self.down = nn.Linear(dim_in, rank, bias=False)
        self.up = nn.Linear(rank, dim_out)

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim_in]`` -> ``[n, dim_out]``."""
        return self.up(self.down(vectors))


@dataclass(frozen=True)
class LowRank(VectorMap):
    """Ridge regression among maps of a rank.

    The best one is the full ridge solution A projected on the leading principal directions of its
    fitted values (the paper's theorem 1 with the identity as weights; with a penalty, the fitted
    values of the pairs and of the penalty's rows together, whose second moments are A x^T y). At
    half the dimensions it stores as many numbers as ``linear``.
    """

    paper = "Izenman, Reduced-Rank Regression for the Multivariate Linear Model, 1975"
    fidelity = "ours"
    variants = {"query": {"direction": "query"}}
    ranges = {"rank": "[1, inf)", "share": "[0, inf)"}

    rank: int = 32  # ours: half of the tracks' 64 dimensions; at most the smaller dimension
    share: float | None = None  # ours: as in linear, by default of the smallest leave-one-out error

    def fit_vectors(self, source: Tensor, target: Tensor, trainer: Trainer) -> FittedMap:
        """The full solution and its leading directions, in float64."""
        weight, bias, _ = ridge(source, target, self.share)
        x, y = source.double(), target.double()
        mean_y = y.mean(0)
        moments = weight @ (x - x.mean(0)).T @ (y - mean_y)  # [d_out, d_out]
        rank = min(self.rank, *weight.shape)
        leading = torch.linalg.eigh((moments + moments.T) / 2)[1][:, -rank:]  # [d_out, rank]
        narrow = Narrow(source.shape[1], rank, target.shape[1])
        with torch.no_grad():
            narrow.down.weight.copy_(leading.T @ weight)
            narrow.up.weight.copy_(leading)
            narrow.up.bias.copy_(mean_y + leading @ (leading.T @ (bias - mean_y)))
        return narrow, {}
