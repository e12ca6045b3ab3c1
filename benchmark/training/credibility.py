"""Credible old features: near their class (MixBCT, UniBCT), near no other (NCCL)."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.training.prototypes import class_means


class CredibleMask(nn.Module):
    """:func:`near_own_class` of the old features, kept with the checkpoint."""

    keep: Tensor

    def __init__(
        self, features: Tensor, labels: Tensor, drop: float, directions: bool = True
    ) -> None:
        super().__init__()
        self.register_buffer("keep", near_own_class(features, labels, drop, directions))


def near_own_class(
    features: Tensor, labels: Tensor, drop: float, directions: bool = True
) -> Tensor:
    """Mask ``[n]`` without the ``floor(drop * n_c)`` features farthest from their class centre.

    Features ``[n, d]`` are normalised where ``directions`` alone count; then each dimension is
    brought to one scale over the data set. Labels ``[n]`` are 0 to C - 1. Ties at the border keep
    the earlier row. A ValueError unless ``drop`` is in [0, 1).

    Source:
        MixBCT section 3.4 (normalised Euclidean distance, top 10 % excluded), whose text speaks of
        dimensions only; its code (tools/denoising/denoise_credible.py) normalises rows before.
    """
    if not 0.0 <= drop < 1.0:
        raise ValueError(f"drop: expected 0 <= drop < 1, got {drop}")
    # In float64, so that no tie at the border hangs on the order of a sum.
    rows = features.double()
    scaled = F.normalize(F.normalize(rows) if directions else rows, dim=0)
    n_classes = int(labels.max()) + 1
    distance = (scaled - class_means(scaled, labels, n_classes)[labels]).norm(dim=1)
    order = torch.argsort(distance, stable=True)
    order = order[torch.argsort(labels[order], stable=True)]
    keep = torch.ones_like(labels, dtype=torch.bool)
    for own in torch.split(order, torch.bincount(labels).tolist()):
        keep[own[len(own) - math.floor(drop * len(own) + 1e-9) :]] = False
    return keep


def near_one_class(features: Tensor, labels: Tensor, doubt: float, block: int = 1024) -> Tensor:
    """Mask ``[n]`` of the features that are plainly nearest one class.

    Features ``[n, d]`` are compared as unit vectors, labels ``[n]`` are 0 to C - 1. The entropy of
    a softmax over minus the distances to all C class centres, in units of their variance, may
    reach the share ``doubt`` of log C. Distances are taken of ``block`` rows at a time.

    Source:
        NCCL, credible sample selection, as compared in MixBCT. Over one centre alone, the softmax
        is 1 and keeps everything.
    """
    unit = F.normalize(features)
    n_classes = int(labels.max()) + 1
    centres = class_means(unit, labels, n_classes).double()

    def distances() -> Iterator[Tensor]:
        for rows in torch.split(unit, block):
            yield torch.cdist(rows.double(), centres)

    moments = torch.stack([torch.stack([d.sum(), d.square().sum()]) for d in distances()]).sum(0)
    mean, square = (moments / (len(unit) * n_classes)).tolist()
    variance = max(square - mean**2, 1e-10)
    log_shares = (F.log_softmax(-d / variance, dim=1) for d in distances())
    entropy = torch.cat([-(log.exp() * log).sum(dim=1) for log in log_shares])
    return entropy <= doubt * math.log(n_classes)
