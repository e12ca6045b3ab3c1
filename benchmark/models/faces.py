"""The networks that face recognition trains: iResNet, and the transformers ViT-t, ViT-s and ViT-b.

The transformers see 9 x 9 patches without a class token; all tokens are flattened, as iResNet's
last map is. A tenth of the tokens is left out while training, and a learned one stands for them at
the end.

Source: deepinsight/insightface, recognition/arcface_torch/backbones/iresnet.py and vit.py; Deng et
al., ArcFace (2019), section 3.1. MixBCT's published code has a copy of vit.py; the paper (C.2)
names ViT-s alone. Its ``vit_s`` drops paths up to 0.1 and masks 0.1; ``vit_s_dp005_mask_0``, which
that code offers besides, 0.05 and none.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

BLOCKS: Mapping[int, tuple[int, int, int, int]] = {
    18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 14, 3), 100: (3, 13, 30, 3), 200: (6, 26, 60, 6),
}  # fmt: skip
"""Blocks of the four stages, by the network's depth."""
_WIDTHS = (64, 128, 256, 512)
SIZES: Mapping[str, tuple[int, int]] = {"t": (256, 12), "s": (512, 12), "b": (512, 24)}
"""Width and layers, by the size's letter."""
_PATCH, _HEADS, _DROP_PATH, _MASK = 9, 8, 0.1, 0.1
_EPS = 2e-5


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


class _Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, tokens, width = x.shape
        qkv = self.qkv(x).view(n, tokens, 3, _HEADS, width // _HEADS).permute(2, 0, 3, 1, 4)
        # In full precision, as there: logits of 16 bits lose their differences.
        with torch.autocast(x.device.type, enabled=False):
            mixed = F.scaled_dot_product_attention(*qkv.float())
        out: Tensor = self.proj(mixed.transpose(1, 2).reshape(n, tokens, width))
        return out


class _Layer(nn.Module):
    def __init__(self, width: int, drop: float) -> None:
        super().__init__()
        from timm.layers.drop import DropPath

        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = _Attention(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.ReLU6(), nn.Linear(4 * width, width)
        )
        self.drop = DropPath(drop)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attn(self.norm1(x)))
        out: Tensor = x + self.drop(self.mlp(self.norm2(x)))
        return out


class _FaceVit(nn.Module):
    def __init__(self, width: int, depth: int, channels: int, image_size: int) -> None:
        super().__init__()
        tokens = (image_size // _PATCH) ** 2
        self.patches = nn.Conv2d(channels, width, _PATCH, _PATCH)
        self.place = nn.Parameter(torch.zeros(1, tokens, width))
        self.mask = nn.Parameter(torch.zeros(1, 1, width))
        drops = torch.linspace(0, _DROP_PATH, depth, device="cpu").tolist()
        self.layers = nn.Sequential(*(_Layer(width, drop) for drop in drops))
        self.norm = nn.LayerNorm(width)
        self.feature = nn.Sequential(
            nn.Linear(width * tokens, width, bias=False), nn.BatchNorm1d(width, eps=_EPS)
        )
        nn.init.normal_(self.mask, std=0.02)
        nn.init.trunc_normal_(self.place, std=0.02)
        self.apply(_start)

    def forward(self, images: Tensor) -> Tensor:
        """``[n, c, h, w]`` -> ``[n, width]``."""
        x = self.patches(images).flatten(2).transpose(1, 2) + self.place
        n, tokens, width = x.shape
        order = None
        if self.training:
            order = torch.rand(n, tokens, device=x.device).argsort(1)
            kept = order[:, : int(tokens * (1 - _MASK)), None].expand(-1, -1, width)
            x = x.gather(1, kept)
        x = self.norm(self.layers(x).float())
        if order is not None:
            masked = self.mask.to(x.dtype).expand(n, tokens - x.shape[1], width)
            back = order.argsort(1)[:, :, None].expand(-1, -1, width)
            x = torch.cat([x, masked], dim=1).gather(1, back)
        out: Tensor = self.feature(x.flatten(1))
        return out


def _start(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def face_vit_trunk(size: str, channels: int, image_size: int) -> tuple[nn.Module, int]:
    """All but the last layer and its normalisation: ``[n, c, h, w]`` -> ``[n, width]``."""
    width, depth = SIZES[size]
    return _FaceVit(width, depth, channels, image_size), width


def face_vit_end(width: int, dim: int) -> nn.Module:
    """The last layer and the embedding's normalisation."""
    last = nn.Linear(width, dim, bias=False)
    _start(last)
    return nn.Sequential(last, nn.BatchNorm1d(dim, eps=_EPS))
