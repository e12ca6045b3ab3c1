"""Image encoders: small residual, plain, separable, transformer trunks, iResNet, timm's, AlexNet.

The small ones are for 32 x 32 images: a stem of stride 2 and strides where feature maps are
largest take half the time of striding last.
"""

import difflib
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config.recipes import BACKBONES, OWN_BACKBONE
from benchmark.errors import BenchError
from benchmark.models.iresnet import iresnet_trunk, output_norm
from benchmark.models.module import Portable

_STRIDES = (2, 2, 1)
_ALEXNET = "torchvision:alexnet"  # which timm does not have


class Encoder(Portable):
    """Images to embeddings of ``dim``, by a :func:`trunk` and a linear layer.

    With ``relu`` they end with a ReLU (BCT Table 3). ``neck`` standardises them over the batch, as
    re-identification does between a triplet loss and a classifier (Luo et al., Bag of Tricks,
    2019, section 3.5: BNNeck).
    """

    def __init__(
        self, backbone: str, dim: int, channels: int, image_size: int,
        relu: bool = False, neck: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.trunk, width = trunk(backbone, channels, image_size)
        self.project: nn.Module = nn.Linear(width, dim)
        self.relu = relu
        self.neck = nn.BatchNorm1d(dim) if neck else None
        if self.neck is not None:
            self.neck.bias.requires_grad_(False)  # stays 0, as in the paper
        if backbone.startswith("iresnet"):
            self.project = nn.Sequential(self.project, output_norm(dim))

    def forward(self, images: Tensor) -> Tensor:
        """Embed ``[n, c, h, w]`` float in [-1, 1] as ``[n, dim]``, not normalised."""
        return self.around_neck(images)[1]

    def around_neck(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The neck's input and the embedding, ``[n, dim]`` each; equal without neck and ReLU."""
        before: Tensor = self.project(self.trunk(images))
        out = before if self.neck is None else self.neck(before)
        return before, F.relu(out) if self.relu else out


def check_backbone(name: str) -> None:
    """Raise a BenchError unless ``name`` can be built; imports timm for its own names alone."""
    if OWN_BACKBONE.fullmatch(name) or name == _ALEXNET:
        return
    if not name.startswith("timm:"):
        raise BenchError(f"unknown backbone '{name}'; expected {BACKBONES}")
    import timm

    if not timm.is_model(name[5:]):
        close = difflib.get_close_matches(name[5:], timm.list_models(), n=3)
        near = ", ".join(f"timm:{c}" for c in close) or "a name of timm.list_models()"
        raise BenchError(f"unknown backbone '{name}'; try {near}")


def to_unit(images: Tensor) -> Tensor:
    """Scale uint8 images to float32 in [-1, 1]."""
    return images.to(torch.float32).div_(127.5).sub_(1.0)


def trunk(name: str, channels: int, image_size: int) -> tuple[nn.Module, int]:
    """The trunk of ``convnet-16``, ``vit-64x4``, ``timm:resnet18``, ..., and its output's width.

    The name is timm's, iResNet's with its depth, or a family, a width, and a depth: blocks a
    stage, by default 1, or layers of a transformer, by default 4. Images have ``image_size``
    pixels a side. A BenchError if the name is unknown, or the width does not suit the family.
    """
    check_backbone(name)
    if name == _ALEXNET:
        return _alexnet(channels, image_size)
    parsed = OWN_BACKBONE.fullmatch(name)
    if parsed is None:
        import timm

        options: dict[str, Any] = {"img_size": image_size} if "vit" in name else {}
        model: Any = timm.create_model(name[5:], num_classes=0, in_chans=channels, **options)
        return model, int(model.num_features)
    if parsed[4] is not None:
        return iresnet_trunk(int(parsed[5]), channels, image_size)
    family, width, depth = parsed[1], int(parsed[2]), int(parsed[3] or 0)
    if family == "vit":
        return _transformer(width, depth or 4, channels, image_size), width
    return _staged(family, width, depth or 1, channels), 4 * width


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


def _staged(family: str, width: int, depth: int, channels: int) -> nn.Module:
    """A stem and three stages, each of twice the channels of the one before."""
    block = {"convnet": Block, "plain": _plain, "mobilenet": _separable}[family]
    layers, inputs = _conv(channels, width, 3, 2), width
    for stage, stride in enumerate(_STRIDES):
        outputs = width * 2**stage
        layers.append(block(inputs, outputs, stride))
        layers += [block(outputs, outputs, 1) for _ in range(depth - 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def _alexnet(channels: int, image_size: int) -> tuple[nn.Module, int]:
    """AlexNet (Krizhevsky 2014) up to its last layer but one, and that layer's width."""
    from torchvision.models import alexnet

    if image_size < 63:  # its last pooling would have nothing left
        raise BenchError(
            f"backbone '{_ALEXNET}': expected images of 63 pixels or more a side, got {image_size}"
        )
    model: Any = alexnet(weights=None)
    if channels != 3:
        model.features[0] = nn.Conv2d(channels, 64, 11, 4, 2)
    *layers, last = model.classifier
    return nn.Sequential(model.features, model.avgpool, nn.Flatten(), *layers), last.in_features


class _Tokens(nn.Module):
    """Feature maps ``[n, width, h, w]`` as ``[n, h w, width]`` with learned places."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.empty(1, count, width))
        nn.init.trunc_normal_(self.place, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(2).transpose(1, 2) + self.place


class _TokenMean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=1)


def _transformer(width: int, depth: int, channels: int, image_size: int) -> nn.Module:
    """A vision transformer (Dosovitskiy et al. 2021) on patches of 8 x 8 pixels.

    The patches come from three convolutions (Xiao et al. 2021): without them, and without
    pre-training, a transformer learns little from a few ten thousand images.
    """
    if width % 16:  # the width of an attention head
        raise BenchError(f"backbone 'vit-{width}': width: expected a multiple of 16")
    side = -(-image_size // 8)
    # One by one: torch's TransformerEncoder would start them all with the same weights.
    layers = [
        nn.TransformerEncoderLayer(
            width, width // 16, 2 * width, dropout=0.0, activation="gelu",
            batch_first=True, norm_first=True,
        )
        for _ in range(depth)
    ]  # fmt: skip
    return nn.Sequential(
        *_conv(channels, width // 4, 3, 2), *_conv(width // 4, width // 2, 3, 2),
        *_conv(width // 2, width, 3, 2),
        _Tokens(width, side * side), *layers, nn.LayerNorm(width), _TokenMean(),
    )  # fmt: skip
