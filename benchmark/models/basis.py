"""Learnable changes of basis: orthonormal maps, which lose nothing of what they are given.

Source: Zhou et al., BT2 (2023), section 3.3, Lemmas 2 and 3, and Algorithm 1.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import orthogonal

from benchmark.models.module import Portable


class Rotation(Portable):
    """``x P^T`` with P orthonormal: a fixed random start times e^A, A skew-symmetric and learnt.

    The start keeps A small, where the exponential is exact to float32.

    Args:
        dim: Dimension of what goes in and comes out.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear = orthogonal(nn.Linear(dim, dim, bias=False), orthogonal_map="matrix_exp")

    @property
    def matrix(self) -> Tensor:
        """P, ``[dim, dim]``."""
        return cast(Tensor, self.linear.weight)

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim]`` -> ``[n, dim]``, lengths and angles kept."""
        return F.linear(vectors, self.matrix)


class BasisTransformation(Portable):
    """What the backbone gives, ``[n, m + n_old]``, to phi_new, ``[n, m + extra]``.

    phi_new = [phi_5 ; phi_4[n_old - extra :]] holds all of phi_3, for phi_3 can be read from it
    by a linear map (:meth:`reader`), and is of length ``sqrt(1 + factor^2)``.

    Args:
        dim_new: m, the dimension of the independent new model.
        dim_old: n_old, the dimension of the old embedding.
        extra: Dimension of phi_2.
        factor: C, the length of phi_4 against that of phi_2.
    """

    def __init__(self, dim_new: int, dim_old: int, extra: int, factor: float) -> None:
        super().__init__()
        shared = dim_old - extra
        if extra < 1 or not 0 <= shared <= dim_new:
            raise ValueError(
                f"extra: expected {max(1, dim_old - dim_new)}..{dim_old} for {dim_old} old and "
                f"{dim_new} new dimensions, got {extra}"
            )
        self.dim_new, self.shared, self.extra, self.factor = dim_new, shared, extra, factor
        self.project = nn.Linear(dim_new + dim_old, extra)
        self.first, self.second = Rotation(dim_new), Rotation(dim_old)

    def parts(self, backbone: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """phi_3 ``[n, m]`` (unit), phi_5 ``[n, n_old]`` and phi_new ``[n, m + extra]``."""
        phi_2 = F.normalize(self.project(backbone))
        phi_3 = F.normalize(backbone[:, : self.dim_new])
        phi_4 = self.factor * self.first(phi_3)
        phi_5 = self.second(torch.cat([phi_2, phi_4[:, : self.shared]], dim=1))
        return phi_3, phi_5, torch.cat([phi_5, phi_4[:, self.shared :]], dim=1)

    def forward(self, backbone: Tensor) -> Tensor:
        """``[n, m + n_old]`` -> phi_new, ``[n, m + extra]``."""
        return self.parts(backbone)[2]

    @torch.no_grad()
    def reader(self) -> Tensor:
        """The matrix ``[m, m + extra]`` that reads phi_3 from phi_new."""
        back, old = self.first.matrix.T / self.factor, self.second.matrix
        return torch.cat(
            [back[:, : self.shared] @ old.T[self.extra :], back[:, self.shared :]], dim=1
        )


class Composed(Portable):
    """One module after another.

    Args:
        inner: Sees the input.
        outer: Sees what ``inner`` gives.
    """

    def __init__(self, inner: Portable, outer: Portable) -> None:
        super().__init__()
        self.inner, self.outer = inner, outer

    def forward(self, x: Tensor) -> Tensor:
        """``outer(inner(x))``, the outer one in float32."""
        out: Tensor = self.outer(self.inner(x).float())
        return out
