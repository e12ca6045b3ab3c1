"""Image encoders: small ones of our own for 32 x 32 images, and timm's."""

from __future__ import annotations

import difflib
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config.recipes import BACKBONES, OWN_BACKBONE
from benchmark.errors import BenchError
from benchmark.models.module import Portable
from benchmark.models.small import trunk as trunk_of


class Encoder(Portable):
    """Images to embeddings.

    Args:
        backbone: ``convnet-<width>`` and the like, or ``timm:<name>``.
        dim: Embedding dimension.
        channels: Channels of an image.
        image_size: Side of an image, pixels.
        relu: End with a ReLU (BCT Table 3).
        neck: Standardise the embedding over the batch, as re-identification does between a triplet
            loss and a classifier (Luo et al., Bag of Tricks, 2019, section 3.5: BNNeck).
    """

    def __init__(
        self, backbone: str, dim: int, channels: int, image_size: int,
        relu: bool = False, neck: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.trunk, width = _trunk(backbone, channels, image_size)
        self.project = nn.Linear(width, dim)
        self.relu = relu
        self.neck = nn.BatchNorm1d(dim) if neck else None
        if self.neck is not None:
            self.neck.bias.requires_grad_(False)  # it stays 0, as there

    def forward(self, images: Tensor) -> Tensor:
        """Embed ``[n, c, h, w]`` float in [-1, 1] as ``[n, dim]``, not normalised."""
        return self.around_neck(images)[1]

    def around_neck(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """What goes into the neck, and what comes out: the embedding; the same without a neck."""
        bare: Tensor = self.project(self.trunk(images))
        out = bare if self.neck is None else self.neck(bare)
        return bare, F.relu(out) if self.relu else out


def check_backbone(name: str) -> None:
    """Raise a BenchError unless ``name`` can be built; loads nothing heavy for our own."""
    if OWN_BACKBONE.fullmatch(name):
        return
    if not name.startswith("timm:"):
        raise BenchError(f"unknown backbone '{name}'; expected {BACKBONES}")
    import timm

    if not timm.is_model(name[5:]):
        close = difflib.get_close_matches(name[5:], timm.list_models(), n=3)
        near = ", ".join(f"timm:{c}" for c in close) or "a name of timm.list_models()"
        raise BenchError(f"unknown backbone '{name}'; try {near}")


def _trunk(name: str, channels: int, image_size: int) -> tuple[nn.Module, int]:
    check_backbone(name)
    if name.startswith("timm:"):
        import timm

        options: dict[str, Any] = {"img_size": image_size} if "vit" in name else {}
        trunk: Any = timm.create_model(name[5:], num_classes=0, in_chans=channels, **options)
        return trunk, int(trunk.num_features)
    return trunk_of(name, channels, image_size)


def to_unit(images: Tensor) -> Tensor:
    """uint8 images as float32 in [-1, 1]."""
    return images.to(torch.float32).div_(127.5).sub_(1.0)
