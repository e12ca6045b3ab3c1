"""Small trunks of our own for 32 x 32 images: residual, plain, depthwise-separable, transformer.

A stem of stride 2 and strides where feature maps are largest: on a 32 x 32 image half the time of
striding last. Each takes a width and a depth.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config.recipes import OWN_BACKBONE
from benchmark.errors import BenchError

_STRIDES = (2, 2, 1)
_LAYERS = 4
"""Layers of a transformer whose name gives no depth."""
_HEAD_WIDTH = 16


def trunk(name: str, channels: int, image_size: int) -> tuple[nn.Module, int]:
    """The trunk of a name such as ``convnet-16`` or ``vit-64x4``, and the width of what it gives.

    Args:
        name: Family, width, and depth: blocks a stage, or layers of a transformer.
        channels: Channels of an image.
        image_size: Side of an image, pixels.

    Raises:
        BenchError: If there is no such family, or the width does not suit it.
    """
    found = OWN_BACKBONE.fullmatch(name)
    if found is None:
        raise BenchError(f"unknown backbone '{name}'")
    family, width, depth = found[1], int(found[2]), int(found[3] or 0)
    if family == "vit":
        return _transformer(width, depth or _LAYERS, channels, image_size), width
    blocks: dict[str, Callable[[int, int, int], nn.Module]] = {
        "convnet": Block, "plain": _plain, "mobilenet": _separable,
    }  # fmt: skip
    return _staged(blocks[family], width, depth or 1, channels), 4 * width


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


def _plain(inputs: int, outputs: int, stride: int) -> nn.Module:
    """Two 3 x 3 convolutions without a shortcut (Simonyan and Zisserman 2015, VGG)."""
    return nn.Sequential(*_conv(inputs, outputs, 3, stride), *_conv(outputs, outputs, 3, 1))


def _separable(inputs: int, outputs: int, stride: int) -> nn.Module:
    """Two depthwise-separable convolutions (Howard et al. 2017, MobileNetV1)."""
    return nn.Sequential(
        *_conv(inputs, inputs, 3, stride, groups=inputs), *_conv(inputs, outputs, 1, 1),
        *_conv(outputs, outputs, 3, 1, groups=outputs), *_conv(outputs, outputs, 1, 1),
    )  # fmt: skip


def _conv(inputs: int, outputs: int, size: int, stride: int, groups: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs), nn.ReLU()]


def _staged(
    block: Callable[[int, int, int], nn.Module], width: int, depth: int, channels: int
) -> nn.Module:
    """A stem and three stages, each of twice the channels of the one before."""
    layers = _conv(channels, width, 3, 2)
    inputs = width
    for stage, stride in enumerate(_STRIDES):
        outputs = width * 2**stage
        for i in range(depth):
            layers.append(block(inputs, outputs, stride if i == 0 else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


class _Places(nn.Module):
    """A feature map as tokens with learned places."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.empty(1, count, width))
        nn.init.trunc_normal_(self.place, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """``[n, width, h, w]`` -> ``[n, h w, width]``."""
        return x.flatten(2).transpose(1, 2) + self.place


class _Mean(nn.Module):
    """The mean of the tokens."""

    def forward(self, x: Tensor) -> Tensor:
        """``[n, tokens, width]`` -> ``[n, width]``."""
        return x.mean(dim=1)


def _transformer(width: int, depth: int, channels: int, image_size: int) -> nn.Module:
    """A vision transformer (Dosovitskiy et al. 2021) on patches of 8 x 8 pixels.

    The patches come from three convolutions (Xiao et al. 2021): without them, and without
    pre-training, a transformer learns little from a few ten thousand images.
    """
    if width % _HEAD_WIDTH:
        raise BenchError(f"backbone 'vit-{width}': width: expected a multiple of {_HEAD_WIDTH}")
    side = -(-image_size // 8)
    # One by one: torch's TransformerEncoder would start them all with the same weights.
    layers = [
        nn.TransformerEncoderLayer(
            width, width // _HEAD_WIDTH, 2 * width, dropout=0.0, activation="gelu",
            batch_first=True, norm_first=True,
        )
        for _ in range(depth)
    ]  # fmt: skip
    return nn.Sequential(
        *_conv(channels, width // 4, 3, 2), *_conv(width // 4, width // 2, 3, 2),
        *_conv(width // 2, width, 3, 2),
        _Places(width, side * side), *layers, nn.LayerNorm(width), _Mean(),
    )  # fmt: skip
