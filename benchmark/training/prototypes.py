"""Class prototypes of an embedding space."""

from __future__ import annotations

import torch
from torch import Tensor


def class_means(features: Tensor, labels: Tensor, n_classes: int) -> Tensor:
    """Mean feature of each class, ``[n_classes, d]``."""
    sums = torch.zeros(n_classes, features.shape[1], dtype=features.dtype, device=features.device)
    sums.index_add_(0, labels, features)
    return sums / torch.bincount(labels, minlength=n_classes).clamp_min(1)[:, None]
