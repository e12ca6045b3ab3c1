"""Frozen backbones as trained models see them: stored features in place of images."""

import copy
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from benchmark.config.embedders import load_embedder
from benchmark.data.features import Block
from benchmark.errors import BenchError
from benchmark.models.embedder_runners import embed_texts
from benchmark.models.module import Portable
from benchmark.models.texts import TextModel
from benchmark.ranking.arrays import Floats

M = TypeVar("M", bound=nn.Module)
_ROUNDING = 1e-3
"""Share of the largest number by which features may differ where normalisations are folded, by
rounding; float16, in which they are stored, rounds each number by about as much."""


class StoredFeatures(Portable):
    """Features ``[n, width]`` of one backbone, by its ``key``, among those in place of images."""

    def __init__(self, key: str, width: int) -> None:
        super().__init__()
        self.key, self.width = key, width
        self.start, self.total = 0, width

    def forward(self, features: Tensor) -> Tensor:
        """``[n, total, 1, 1]`` -> ``[n, width]``."""
        if features.shape[1] != self.total:
            raise BenchError(
                f"features of a frozen backbone: expected {self.total} numbers an image, got "
                f"{tuple(features.shape[1:])}"
            )
        return features.flatten(1)[:, self.start : self.start + self.width]


def find_features(module: M, blocks: Sequence[Block]) -> M:
    """Tell every frozen trunk of a module where its features stand among those of some backbones.

    Args:
        module: Changed in place; models of images have no frozen trunk.
        blocks: Key and width of each backbone's features, in their order.

    Raises:
        BenchError: If those of a trunk are not among them.
    """
    total = sum(width for _, width in blocks)
    starts, start = {}, 0
    for block in blocks:
        starts[block], start = start, start + block[1]
    for each in module.modules():
        if isinstance(each, StoredFeatures):
            if (each.key, each.width) not in starts:
                raise BenchError(f"features of a frozen backbone: {each.key}: not among the inputs")
            each.start, each.total = starts[each.key, each.width], total
    return module


def folded(backbone: nn.Module, images: Tensor) -> nn.Module:
    """A frozen backbone with batch normalisations as a part of the convolutions before them.

    That saves a pass over the arrays for each. Layers are paired as they are defined, so that both
    are called with some ``images [n, c, h, w]``: where features differ by more than rounding the
    backbone is left as it is.
    """
    made = copy.deepcopy(backbone)
    for parent in list(made.modules()):
        for (place, conv), (after, norm) in pairwise(list(parent.named_children())):
            if (
                isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
                and conv.out_channels == norm.num_features
            ):  # fmt: skip
                setattr(parent, place, fuse_conv_bn_eval(conv, norm))
                setattr(parent, after, getattr(norm, "act", nn.Identity()))  # as timm's have
    with torch.inference_mode():
        wanted = backbone(images)
        off = (made(images) - wanted).abs().max()
    return made if off <= _ROUNDING * wanted.abs().max() else backbone


class FrozenTexts(TextModel):
    """A linear layer behind a frozen embedder of texts, which embeds each different text once."""

    def __init__(self, embedder: str, width: int, dim: int) -> None:
        super().__init__()
        self.embedder, self.stored = embedder, dict[str, Floats]()
        self.project = nn.Linear(width, dim)

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Embed ``n`` texts as ``[n, dim]``, not normalised."""
        self.embed_once(texts)
        features = torch.from_numpy(np.stack([self.stored[text] for text in texts]))
        embedded: Tensor = self.project(features.to(self.project.weight.device))
        return embedded

    def embed_once(self, texts: Iterable[str]) -> None:
        """Embed those that were not yet, together: loading the embedder takes longest."""
        new = [text for text in dict.fromkeys(texts) if text not in self.stored]
        if new:
            found = embed_texts(load_embedder(self.embedder), new, queries=True)
            self.stored |= dict(zip(new, found, strict=True))
