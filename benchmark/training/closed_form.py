"""Maps of vectors in closed form, in float64: rotation, ridge regression, a diagonal."""

import torch
from torch import Tensor

SHARES = tuple(10.0 ** (k / 2) for k in range(-12, 5))
"""Strengths of ridge regression to choose from."""


def rotation(source: Tensor, target: Tensor, *, centred: bool = True) -> tuple[Tensor, Tensor]:
    """The orthogonal W ``[d_out, d_in]``, and b ``[d_out]``, of the least mean ||W x + b - y||^2.

    x ``[n, d_in]`` is the source, y ``[n, d_out]`` the target; the result is float64.
    W = U V^T from the singular value decomposition of the centred y^T x. Reflections are allowed,
    scaling is not. Between unequal dimensions W is semi-orthogonal: it lays the smaller space into
    the larger one, or projects on a part of it; the latter has the largest trace of W x^T y, which
    no closed form turns into the least squared distance. Without ``centred`` b is zero.

    Source:
        Schönemann (1966), A Generalized Solution of the Orthogonal Procrustes Problem.
    """
    x, y = source.double(), target.double()
    mean_x, mean_y = (z.mean(0) if centred else torch.zeros_like(z[0]) for z in (x, y))
    left, _, right = torch.linalg.svd((y - mean_y).T @ (x - mean_x), full_matrices=False)
    weight = left @ right
    return weight, mean_y - weight @ mean_x


def ridge(
    source: Tensor, target: Tensor, share: float | None = None
) -> tuple[Tensor, Tensor, float]:
    """W, b of the least mean ||W x + b - y||^2 + strength ||W||^2, as :func:`rotation`, and share.

    The share is the strength against the mean variance of a source dimension: it means the same
    for every length of the vectors and number of pairs. By default it is the one of ``SHARES``
    with the smallest leave-one-out error, which comes in closed form too. With 0, the smallest W
    where several are as good: what the source has no variance along is left out.

    Source:
        Hoerl and Kennard, Ridge Regression (1970), eq. 2.1; the leave-one-out error of Allen
        (1974), the residual over one minus the leverage.
    """
    x, y = source.double(), target.double()
    mean_x, mean_y = x.mean(0), y.mean(0)
    x, y = x - mean_x, y - mean_y
    variance, axes = torch.linalg.eigh(x.T @ x / len(x))
    variance = variance.clamp_min(0.0)
    rounding = float(variance.max()) * torch.finfo(x.dtype).eps * max(x.shape)
    along = x @ axes  # [n, d_in]
    squares = along.square()
    covariance = along.T @ y / len(x)  # [d_in, d_out]

    def inverse(share: float) -> Tensor:
        held = variance + share * variance.mean()
        return torch.where(held > rounding, 1.0 / held, 0.0)

    def left_out_error(share: float) -> float:
        gain = inverse(share)
        leverage = (1.0 + squares @ gain) / len(x)
        residual = (y - along @ (gain[:, None] * covariance)).square().sum(1)
        return float((residual / (1.0 - leverage).clamp_min(1e-9).square()).mean())

    chosen = min(SHARES, key=left_out_error) if share is None else share
    weight = (axes @ (inverse(chosen)[:, None] * covariance)).T
    return weight, mean_y - weight @ mean_x, chosen


def diagonal(given: Tensor, target: Tensor) -> Tensor:
    """Factor of each dimension of the least squared distance, ``[n, d]`` -> ``[d]``; 1 of zeros."""
    squares = given.square().sum(0)
    return torch.where(squares < 1e-12, 1.0, (given * target).sum(0) / squares)
