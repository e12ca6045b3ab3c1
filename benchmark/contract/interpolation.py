"""Queries between both models' vectors, for an index that stays as it is.

The new query is turned into the old space, v; the query then lies between the old one, u, and v.
One definition serves the adapter and :mod:`benchmark.upgrade`.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.models.module import Portable
from benchmark.models.parts import Affine
from benchmark.training.closed_form import rotation

SHARES = tuple(round(0.1 * k, 1) for k in range(11))
"""Places on the way from the old query to the new one, from which one is chosen."""


class Between(Portable):
    """Unit vectors from the old query (share 0) to the new one after ``turn`` (share 1)."""

    def __init__(self, turn: Portable, share: float, path: str = "slerp") -> None:
        super().__init__()
        self.turn, self.share, self.path = turn, share, path

    def forward(self, new: Tensor, old: Tensor) -> Tensor:
        """``[n, d_new]`` and ``[n, d_old]`` -> ``[n, d_old]``."""
        u, v = F.normalize(old).double(), F.normalize(self.turn(F.normalize(new))).double()
        parts = torch.tensor([[1 - self.share, self.share]], dtype=torch.float64)
        if self.path == "slerp":
            cosine = (u * v).sum(dim=1, keepdim=True)
            parts = torch.sin(parts * cosine.clamp(-1 + 1e-7, 1 - 1e-7).acos())  # [n, 2]
        return F.normalize(parts[:, :1] * u + parts[:, 1:] * v).to(old.dtype)


def turn(old: Tensor, new: Tensor) -> Affine:
    """The rotation of new directions nearest to old ones, ``[n, d]`` each, not centred.

    Between unequal dimensions it is semi-orthogonal. Source: Ricci et al., SLERP for
    backward-compatible retrieval, NeurIPS 2026, equations 1 and 40.
    """
    return Affine.of(*rotation(F.normalize(new), F.normalize(old), centred=False))


def best_share(hits: Callable[[float], float]) -> float:
    """The share with the most hits, of equal ones the smallest."""
    return max(SHARES, key=lambda share: (hits(share), -share))
