"""iResNet, the residual networks that face recognition trains.

Source: deepinsight/insightface, recognition/arcface_torch/backbones/iresnet.py; Deng et al.,
ArcFace (2019), section 3.1.
"""

import math
from collections.abc import Mapping

from torch import Tensor, nn

BLOCKS: Mapping[int, tuple[int, int, int, int]] = {
    18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 14, 3), 100: (3, 13, 30, 3), 200: (6, 26, 60, 6),
}  # fmt: skip
"""Blocks of the four stages, by the network's depth."""
_WIDTHS = (64, 128, 256, 512)


class Block(nn.Module):
    """Normalised before the first and after the last convolution, without a ReLU at the end."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(inputs),
            nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.PReLU(outputs),
            nn.Conv2d(outputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """``[n, inputs, h, w]`` -> ``[n, outputs, h / stride, w / stride]``."""
        out: Tensor = self.body(x) + self.shortcut(x)
        return out


def iresnet_trunk(depth: int, channels: int, image_size: int) -> tuple[nn.Module, int]:
    """All but the last layer and its normalisation: ``[n, c, h, w]`` -> ``[n, 512 h w / 256]``.

    The stem keeps the image's size and each stage halves it: 112 pixels become 7 x 7, which are
    flattened, not averaged. The numbers of the trunk's output come second.
    """
    layers: list[nn.Module] = [
        nn.Conv2d(channels, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64),
    ]  # fmt: skip
    inputs, side = 64, image_size
    for width, count in zip(_WIDTHS, BLOCKS[depth], strict=True):
        layers += [Block(inputs, width, 2), *(Block(width, width, 1) for _ in range(count - 1))]
        inputs, side = width, math.ceil(side / 2)
    trunk = nn.Sequential(*layers, nn.BatchNorm2d(inputs), nn.Flatten())
    for module in trunk.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.normal_(module.weight, 0, 0.1)
    return trunk, inputs * side * side


def output_norm(dim: int) -> nn.BatchNorm1d:
    """Normalisation of the embedding, whose factors stay 1."""
    norm = nn.BatchNorm1d(dim)
    norm.weight.requires_grad_(False)
    return norm
