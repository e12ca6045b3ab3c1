"""Backbones beside their sources: parameters, and sizes of inputs and outputs."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import nn

from benchmark.models.backbones import Encoder, trunk

CLASSES = 1000
_ARCFACE = "insightface, recognition/arcface_torch/backbones/{}.py"
_TORCHVISION = "torchvision, its weights' `num_params`"
OURS = "ours"


class Backbone(NamedTuple):
    """A backbone, and what its source says of it."""

    name: str
    side: int  # of an image, pixels
    outputs: int  # numbers after the last layer, of which parameters count that layer too
    source: str
    parameters: int | None = None  # as the source has them


BACKBONES = (
    Backbone("iresnet-18", 112, 512, _ARCFACE.format("iresnet"), 24_025_600),
    Backbone("iresnet-34", 112, 512, _ARCFACE.format("iresnet"), 34_139_328),
    Backbone("iresnet-50", 112, 512, _ARCFACE.format("iresnet"), 43_590_848),
    Backbone("iresnet-100", 112, 512, _ARCFACE.format("iresnet"), 65_156_160),
    Backbone("iresnet-200", 112, 512, _ARCFACE.format("iresnet"), 118_833_920),
    Backbone("vit-t", 112, 512, _ARCFACE.format("vit"), 19_137_792),
    Backbone("vit-s", 112, 512, _ARCFACE.format("vit"), 76_023_296),
    Backbone("vit-b", 112, 512, _ARCFACE.format("vit"), 113_833_472),
    Backbone("timm:resnet18", 224, CLASSES, _TORCHVISION, 11_689_512),
    Backbone("timm:resnet50", 224, CLASSES, _TORCHVISION, 25_557_032),
    Backbone("timm:resnet101", 224, CLASSES, _TORCHVISION, 44_549_160),
    Backbone("timm:resnet152", 224, CLASSES, _TORCHVISION, 60_192_808),
    Backbone("timm:vgg11_bn", 224, CLASSES, _TORCHVISION, 132_868_840),
    Backbone("timm:vgg13_bn", 224, CLASSES, _TORCHVISION, 133_053_736),
    Backbone("torchvision:alexnet", 224, CLASSES, _TORCHVISION, 61_100_840),
    Backbone("timm:vit_base_patch16_224", 224, CLASSES, _TORCHVISION, 86_567_656),
    Backbone("timm:mobilenetv1_100", 224, CLASSES, "timm's own; the paper says 4.2 million"),
    *(
        Backbone(name, 32, 64, OURS)
        for name in (
            "convnet-16", "convnet-32", "convnet-32x2", "mobilenet-32", "plain-32", "vit-96x4"
        )
    ),
)  # fmt: skip


def parameters(backbone: Backbone) -> int:
    """Parameters of our network, with its last layer."""
    with torch.device("meta"):
        model: nn.Module = Encoder(backbone.name, backbone.outputs, 3, backbone.side)
    return sum(each.numel() for each in model.parameters())


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """Backbone, its input and output, the source, its parameters and ours."""
    for each in BACKBONES:
        with torch.device("meta"):
            width = trunk(each.name, 3, each.side)[1]
        shape = f"3 x {each.side} x {each.side} to {width:,}, then {each.outputs:,}"
        known = "" if each.parameters is None else f"{each.parameters:,}"
        yield f"`{each.name}`", shape, each.source, known, f"{parameters(each):,}"
