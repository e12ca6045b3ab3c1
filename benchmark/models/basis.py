"""Learnable changes of basis: Zhou et al., BT2 (2023), 3.3, Lemmas 2 and 3, and Algorithm 1."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrize import register_parametrization

from benchmark.models.module import Portable


def exponential(skew: Tensor) -> Tensor:
    """e^A of a skew-symmetric A ``[d, d]``, faster than ``torch.matrix_exp`` with gradients.

    torch exponentiates a matrix of twice the size for the gradient; here it goes through a
    polynomial of degree 8, exact to float32 up to a spectral norm of 1/2, and as many squarings
    as bring A there.
    """
    with torch.autocast(skew.device.type, enabled=False):
        square = skew @ skew
        # ||A||_2^2 = ||A^2||_2 is at most the largest absolute row sum of A^2.
        bound = float(square.detach().abs().sum(dim=1).max().sqrt())
        halvings = max(0, math.ceil(math.log2(bound / 0.5))) if bound > 0 else 0
        x, x2 = skew / 2**halvings, square / 4**halvings
        x4 = x2 @ x2
        one = torch.eye(len(skew), dtype=skew.dtype, device=skew.device)
        even = one + x2 / 2 + x4 / 24 + x4 @ (x2 / 720 + x4 / 40320)
        odd = one + x2 / 6 + x4 / 120 + x4 @ (x2 / 5040)
        power = even + x @ odd
        for _ in range(halvings):
            power = power @ power
        return power


class _Orthonormal(nn.Module):
    """Parametrization of a weight: its start times e^A, with the triangle of A below learnt."""

    base: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("base", torch.zeros(dim, dim))

    def forward(self, lower: Tensor) -> Tensor:
        below = lower.tril(-1)
        return self.base @ exponential(below - below.T)

    @torch.no_grad()
    def right_inverse(self, weight: Tensor) -> Tensor:
        q, r = torch.linalg.qr(weight)
        self.base.copy_(q * r.diagonal().sign())
        return torch.zeros_like(weight)


class Rotation(Portable):
    """``x P^T``, P orthonormal: a fixed random start times e^A, A skew-symmetric and learnt.

    The start keeps A small, where the exponential is exact to float32.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, dim, bias=False)
        register_parametrization(self.linear, "weight", _Orthonormal(dim))

    @property
    def matrix(self) -> Tensor:
        """P, ``[dim, dim]``."""
        return self.linear.weight

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim]`` -> ``[n, dim]``, lengths and angles kept."""
        return F.linear(vectors, self.matrix)


class BasisTransformation(Portable):
    """The backbone's output, ``[n, m + n_old]``, to phi_new, ``[n, m + extra]``.

    phi_new = [phi_5 ; phi_4[n_old - extra :]] holds all of phi_3, which a linear map
    (:meth:`reader`) reads from it, and is of length ``sqrt(1 + factor^2)``. Of the arguments,
    ``dim_new`` is m, the dimension of the independent new model; ``dim_old`` is n_old, that of the
    old embedding, ``extra`` that of phi_2; ``factor`` is C, the length of phi_4 against phi_2's.
    ``rectified``: phi_2 is projected from the positive part of the backbone's output, as the
    published code has it for convolutional networks.
    """

    def __init__(
        self, dim_new: int, dim_old: int, extra: int, factor: float, rectified: bool = False
    ) -> None:
        super().__init__()
        shared = dim_old - extra
        if extra < 1 or not 0 <= shared <= dim_new:
            span = f"{max(1, dim_old - dim_new)}..{dim_old}"
            sizes = f"{dim_old} old and {dim_new} new dimensions"
            raise ValueError(f"extra: expected {span} for {sizes}, got {extra}")
        self.dim_new, self.shared, self.extra, self.factor = dim_new, shared, extra, factor
        self.rectified = rectified
        self.project = nn.Linear(dim_new + dim_old, extra)
        self.first, self.second = Rotation(dim_new), Rotation(dim_old)

    def parts(self, backbone: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """phi_3 ``[n, m]`` (unit), phi_5 ``[n, n_old]`` and phi_new ``[n, m + extra]``."""
        phi_2 = F.normalize(self.project(backbone.relu() if self.rectified else backbone))
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
        through_old = back[:, : self.shared] @ old.T[self.extra :]
        return torch.cat([through_old, back[:, self.shared :]], dim=1)


class Composed(Portable):
    """``outer(inner(x))``, the outer module in float32."""

    def __init__(self, inner: Portable, outer: Portable) -> None:
        super().__init__()
        self.inner, self.outer = inner, outer

    def forward(self, x: Tensor) -> Tensor:
        """The output of ``outer``."""
        return self.outer(self.inner(x).float())
