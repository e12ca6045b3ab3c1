"""Image encoders: small trunks of four families, those for faces, timm's, CLIP's, AlexNet.

The small ones are for 32 x 32 images: a stem of stride 2 and strides where feature maps are
largest take half the time of striding last.
"""

import difflib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config import registry
from benchmark.config.backbones import BACKBONES, OWN_BACKBONE, backbone_version, backbones
from benchmark.config.embedders import load_embedder
from benchmark.config.entry_points import one_line
from benchmark.config.recipes import PACKAGED, ModelSpec, is_weights_file
from benchmark.errors import BenchError
from benchmark.models.faces import SIZES, face_vit_end, face_vit_trunk, iresnet_trunk, output_norm
from benchmark.models.frozen import StoredFeatures
from benchmark.models.module import Portable
from benchmark.models.weights import check_tag, check_weights, weights_file

_STRIDES = (2, 2, 1)
_ALEXNET = "torchvision:alexnet"  # which timm does not have
_USUAL_SIDE = 224
FACE_VITS = frozenset(f"vit-{size}" for size in SIZES)


class Encoder(Portable):
    """Images to embeddings of ``dim``, by a :func:`trunk` and a linear layer.

    With ``relu`` they end with a ReLU (BCT Table 3). ``neck`` standardises them over the batch, as
    re-identification does between a triplet loss and a classifier (Luo et al., Bag of Tricks,
    2019, section 3.5: BNNeck). Without ``project`` there is no linear layer. ``input_size`` and
    ``last_stride`` are as in :class:`benchmark.config.recipes.ModelSpec`; ``mean`` and ``std``, of
    pixels in [0, 1], are those that pretrained weights expect. ``hidden`` are widths of layers
    after the trunk. With ``stored`` the backbone is frozen: in place of images there are its
    features of that key, ``channels`` numbers an image
    (:class:`~benchmark.models.frozen.StoredFeatures`).
    """

    trunk: nn.Module
    shift: Tensor | None
    scale: Tensor | None

    def __init__(
        self, backbone: str, dim: int, channels: int, image_size: int,
        relu: bool = False, neck: bool = False, project: bool = True,
        input_size: int | None = None, last_stride: int = 2,
        mean: Sequence[float] = (), std: Sequence[float] = (),
        hidden: Sequence[int] = (), stored: str = "",
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_size = input_size
        width = channels
        if stored:
            self.trunk = StoredFeatures(stored, channels)
        else:
            self.trunk, width = trunk(backbone, channels, input_size or image_size)
        if last_stride == 1:
            widen_last_stage(self.trunk, backbone)
        if hidden:
            self.trunk, width = nn.Sequential(self.trunk, *_hidden(width, hidden)), hidden[-1]
        self.project = _last_layer(backbone, width, dim) if project else nn.Identity()
        if not project and width != dim:
            raise BenchError(
                f"dim: expected {width}, the width of {backbone}, as no linear layer follows it "
                f"(project: false), got {dim}"
            )
        self.relu = relu
        self.neck = nn.BatchNorm1d(dim) if neck else None
        if self.neck is not None:
            self.neck.bias.requires_grad_(False)  # stays 0, as in the paper
        # From [-1, 1] to pixels in [0, 1], and from there to what the weights expect.
        shift, scale = _scaling(mean, std, channels)
        self.register_buffer("shift", shift, persistent=False)
        self.register_buffer("scale", scale, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Embed ``[n, c, h, w]`` float in [-1, 1] as ``[n, dim]``, not normalised."""
        return self.around_neck(images)[1]

    def around_neck(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The neck's input and the embedding, ``[n, dim]`` each; equal without neck and ReLU."""
        before: Tensor = self.project(self.trunk(self.prepared(images)))
        out = before if self.neck is None else self.neck(before)
        return before, F.relu(out) if self.relu else out

    def prepared(self, images: Tensor) -> Tensor:
        """Images as the backbone takes them: of its size, with its mean and deviation."""
        side = self.input_size
        if side is not None and images.shape[-2:] != (side, side):
            images = F.interpolate(images, size=(side, side), mode="bilinear", antialias=True)
            images = images.contiguous(memory_format=torch.channels_last)
        if self.shift is None or self.scale is None:
            return images
        return (images - self.shift) / self.scale


def _scaling(
    mean: Sequence[float], std: Sequence[float], channels: int
) -> tuple[Tensor | None, Tensor | None]:
    """Number that is subtracted from images in [-1, 1], and the one that they are divided by."""
    if not mean:
        return None, None
    shift, scale = (2.0 * torch.tensor(list(values)).view(1, -1, 1, 1) for values in (mean, std))
    shift = shift - 1.0
    if channels != len(mean):  # of grey images, which have the colours' mean
        shift, scale = shift.mean(1, keepdim=True), scale.mean(1, keepdim=True)
    return shift, scale


def _hidden(width: int, widths: Sequence[int]) -> list[nn.Module]:
    """Layers, each with a batch norm and a ReLU."""
    return [
        layer
        for inputs, outputs in pairwise((width, *widths))
        for layer in (nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU())
    ]


def _last_layer(backbone: str, width: int, dim: int) -> nn.Module:
    if OWN_BACKBONE.fullmatch(backbone):
        if backbone.startswith("iresnet"):
            return nn.Sequential(nn.Linear(width, dim), output_norm(dim))
        if backbone in FACE_VITS:
            return face_vit_end(width, dim)
    return nn.Linear(width, dim)


def widen_last_stage(model: nn.Module, backbone: str) -> None:
    """Give the last stage of timm's ResNets a stride of 1 (Luo et al., Bag of Tricks, 3.4)."""
    first = getattr(model, "layer4", [None])[0]
    layers = [] if first is None else first.modules()
    strided = [m for m in layers if isinstance(m, nn.Conv2d) and m.stride == (2, 2)]
    if not strided:
        raise BenchError(f"last_stride: expected a ResNet of timm, got '{backbone}'")
    for module in strided:
        module.stride = (1, 1)


def check_backbone(name: str) -> None:
    """Raise a BenchError unless ``name`` can be built; imports timm for its own names alone."""
    library, _, model = name.partition(":")
    if OWN_BACKBONE.fullmatch(name) or name == _ALEXNET or name in backbones():
        return
    if library == "open_clip":
        from benchmark.models.clip import check_clip

        check_clip(model)
        return
    if library == "text":
        if load_embedder(model).modality != "text":
            raise BenchError(f"backbone '{name}': expected an embedder of texts")
        return
    if library != "timm":
        raise BenchError(f"unknown backbone '{name}'; expected {BACKBONES}")
    import timm

    if not timm.is_model(model):
        close = difflib.get_close_matches(model, timm.list_models(), n=3)
        near = ", ".join(f"timm:{c}" for c in close) or "a name of timm.list_models()"
        raise BenchError(f"unknown backbone '{name}'; try {near}")


def check_model(spec: ModelSpec) -> None:
    """Raise a BenchError unless a model's backbone can be built and load its weights, if here."""
    check_backbone(spec.backbone)
    here = backbone_version(spec.backbone)
    if spec.package and spec.package != here:
        there = f"expected {spec.package}, got {here or 'none'}"
        raise BenchError(f"backbone '{spec.backbone}': package: {there}")
    # Packages may be missing where a plan is only read, or all features are stored.
    if spec.weights is None or spec.weights.startswith(PACKAGED):
        return
    if not is_weights_file(spec.weights):
        check_tag(spec)
        return
    # Sizes are enough; open_clip wants its parameters on a device.
    with torch.device("cpu" if spec.backbone.startswith("open_clip:") else "meta"):
        model, _ = trunk(spec.backbone, 3, spec.input_size or _USUAL_SIDE)
    check_weights(model, spec, weights_file(spec), "visual")


def to_unit(images: Tensor) -> Tensor:
    """Images as float32 for models: uint8 scaled to [-1, 1], floating-point ones as they are."""
    if images.is_floating_point():
        return images.to(torch.float32)
    return images.to(torch.float32).div_(127.5).sub_(1.0)


def trunk(name: str, channels: int, image_size: int) -> tuple[nn.Module, int]:
    """The trunk of ``convnet-16``, ``vit-64x4``, ``timm:resnet18``, ..., and its output's width.

    The name is timm's, iResNet's with its depth, or a family, a width, and a depth: blocks a
    stage, by default 1, or layers of a transformer, by default 4. Images have ``image_size``
    pixels a side. A BenchError if the name is unknown, or the width does not suit the family.
    """
    check_backbone(name)
    if name in backbones():
        return _of_a_package(name, channels, image_size)
    parsed = OWN_BACKBONE.fullmatch(name)
    if parsed is None:
        return _of_a_library(name, channels, image_size)
    if parsed[4] is not None:
        return iresnet_trunk(int(parsed[5]), channels, image_size)
    if parsed[6] is not None:
        return face_vit_trunk(parsed[6], channels, image_size)
    family, width, depth = parsed[1], int(parsed[2]), int(parsed[3] or 0)
    if family == "vit":
        return _transformer(width, depth or 4, channels, image_size), width
    return _staged(family, width, depth or 1, channels), 4 * width


def _of_a_package(name: str, channels: int, image_size: int) -> tuple[nn.Module, int]:
    """The trunk that another package builds; a BenchError names the package if it is none."""
    where = f"backbone '{name}' of {backbone_version(name).partition(',')[0]}"
    build = registry.backbone(name)
    try:
        built: Any = build(channels, image_size)
        match built:
            case (nn.Module() as network, int(width)):
                image = torch.zeros(1, channels, image_size, image_size)
                with torch.no_grad():
                    shape = tuple(network.eval()(image).shape)
                network.train()
            case _:
                kind = type(built).__name__
                raise BenchError(f"{where}: expected a network and its output's width, got {kind}")
    except BenchError:
        raise
    except Exception as error:
        raise BenchError(f"{where}: {one_line(error)}") from error
    if shape != (1, width):
        raise BenchError(f"{where}: expected output of {width} numbers an image, got {shape[1:]}")
    return network, width


def _of_a_library(name: str, channels: int, image_size: int) -> tuple[nn.Module, int]:
    library, _, model_name = name.partition(":")
    if library == "torchvision":
        return _alexnet(channels, image_size)
    if library == "open_clip":
        from benchmark.models.clip import image_tower

        return image_tower(model_name, channels, image_size)
    import timm

    options: dict[str, Any] = {"num_classes": 0, "in_chans": channels}
    sized: dict[str, Any] = {"img_size": image_size} if "vit" in model_name else {}
    try:
        model: Any = timm.create_model(model_name, **options, **sized)
    except TypeError:  # convolutional ones whose name has it, too: EfficientViT, FastViT
        model = timm.create_model(model_name, **options)
    # Of some families, VGG among them, layers follow the last map that the classifier stands on.
    return model, int(getattr(model, "head_hidden_size", None) or model.num_features)


class ConvBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut (He et al. 2016).

    The shortcut takes every ``stride``-th pixel and then convolves, the same but for rounding as a
    strided convolution. That one writes beyond its memory in torch 2.15, where a CPU has AVX2 at
    best, of 2 to 7 channels that lie last. The pixels are taken by a pooling of one pixel, whose
    gradient keeps the channels last, as that of a slice does not.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """``[n, inputs, h, w]`` -> ``[n, outputs, h / stride, w / stride]``."""
        y = F.relu(self.norm1(self.conv1(x)))
        passed = x if self.stride == 1 else F.avg_pool2d(x, 1, self.stride)
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(passed))


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
    block = {"convnet": ConvBlock, "plain": _plain, "mobilenet": _separable}[family]
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
