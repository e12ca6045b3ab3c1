"""Image encoders: small ones of our own for 32 x 32 images, and timm's."""

from __future__ import annotations

import difflib
import re
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.errors import BenchError
from benchmark.models.module import Portable


class Encoder(Portable):
    """Images to embeddings.

    Args:
        backbone: ``convnet-<width>`` or ``timm:<name>``.
        dim: Embedding dimension.
        channels: Channels of an image.
        image_size: Side of an image, pixels.
    """

    def __init__(self, backbone: str, dim: int, channels: int, image_size: int) -> None:
        super().__init__()
        self.trunk, width = _trunk(backbone, channels, image_size)
        self.project = nn.Linear(width, dim)

    def forward(self, images: Tensor) -> Tensor:
        """Embed ``[n, c, h, w]`` float in [-1, 1] as ``[n, dim]``, not normalised."""
        out: Tensor = self.project(self.trunk(images))
        return out


def check_backbone(name: str) -> None:
    """Raise a BenchError unless ``name`` can be built; loads nothing heavy for our own."""
    if re.fullmatch(r"convnet-[1-9]\d*", name):
        return
    if not name.startswith("timm:"):
        raise BenchError(f"unknown backbone '{name}'; expected convnet-<width> or timm:<name>")
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
    width = int(name.partition("-")[2])
    return _convnet(width, channels), 4 * width


class Block(nn.Module):
    """Two 3 x 3 convolutions and a shortcut (He et al. 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """``[n, inputs, h, w]`` -> ``[n, outputs, h / stride, w / stride]``."""
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def _convnet(width: int, channels: int) -> nn.Module:
    # Strides where feature maps are largest: on a 32 x 32 image half the time of striding last.
    layers: list[nn.Module] = [
        nn.Conv2d(channels, width, 3, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
    ]
    inputs = width
    for stage, stride in enumerate((2, 2, 1)):
        outputs = width * 2**stage
        layers.append(Block(inputs, outputs, stride))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def to_unit(images: Tensor) -> Tensor:
    """uint8 images as float32 in [-1, 1]."""
    return images.to(torch.float32).div_(127.5).sub_(1.0)
