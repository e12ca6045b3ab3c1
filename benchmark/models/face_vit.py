"""The vision transformers that face recognition trains: ViT-t, ViT-s and ViT-b.

They see 9 x 9 patches without a class token; all tokens are flattened, as iResNet's last map is. A
tenth of the tokens is left out while training, and a learned one stands for them at the end.

Source: deepinsight/insightface, recognition/arcface_torch/backbones/vit.py, of which MixBCT's
published code has a copy; the paper (C.2) names ViT-s alone. Its ``vit_s`` drops paths up to 0.1
and masks 0.1; ``vit_s_dp005_mask_0``, which that code offers besides, 0.05 and none.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SIZES: Mapping[str, tuple[int, int]] = {"t": (256, 12), "s": (512, 12), "b": (512, 24)}
"""Width and layers, by the size's letter."""
_PATCH, _HEADS, _DROP_PATH, _MASK = 9, 8, 0.1, 0.1
_EPS = 2e-5


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
