"""Class prototypes of an embedding space."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def class_means(features: Tensor, labels: Tensor, n_classes: int) -> Tensor:
    """Mean feature of each class, ``[n_classes, d]``."""
    sums = torch.zeros(n_classes, features.shape[1], dtype=features.dtype, device=features.device)
    sums.index_add_(0, labels, features)
    return sums / torch.bincount(labels, minlength=n_classes).clamp_min(1)[:, None]


def refined_prototypes(
    old: Tensor, new: Tensor, labels: Tensor, n_classes: int, share: float, tau: float,
    block: int = 2048,
) -> Tensor:  # fmt: skip
    """Mean old direction of each class after old features were spread over the new neighbourhood.

    In a class, E is the row-wise softmax of n(f) n(f)^T / tau without the diagonal and
    A = (1 - a)(I - a E)^-1; the prototype is the direction of the mean row of A n(O).

    Args:
        old: ``[n, d_old]``.
        new: ``[n, d]`` of the same items.
        labels: ``[n]``, 0 to C - 1.
        n_classes: C.
        share: a, in [0, 1).
        tau: Temperature.
        block: Most items of a class in one matrix; a larger class is spread block by block.

    Returns:
        ``[C, d_old]`` float32 unit vectors.

    Source:
        UniBCT, structural prototype refinement.
    """
    made = torch.zeros(n_classes, old.shape[1], dtype=torch.float64)
    order = labels.argsort(stable=True)
    counts = torch.bincount(labels, minlength=n_classes)
    for label, rows in enumerate(torch.split(order, counts.tolist())):
        for part in torch.split(rows, block):
            weights = _column_sums(F.normalize(new[part].double()), share, tau)
            made[label] += weights @ F.normalize(old[part].double())
    return F.normalize(made).float()


def _column_sums(unit: Tensor, share: float, tau: float) -> Tensor:
    """How much each item counts: the column sums of A. With a softmax of columns all were 1."""
    n = len(unit)
    if n < 2:
        return torch.ones(n, dtype=unit.dtype)
    edges = (unit @ unit.T / tau).fill_diagonal_(-torch.inf).softmax(dim=1)
    system = torch.eye(n, dtype=unit.dtype) - share * edges
    return (1 - share) * torch.linalg.solve(system.T, torch.ones(n, dtype=unit.dtype))
