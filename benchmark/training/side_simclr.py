"""SimCLR side-information: features that are learned without labels, stored beside the old ones.

Source: FCT section 3.4 and appendix D.4.1; Chen et al., SimCLR (2020), eq. 1; multi-crop of Caron
et al., SwAV (2020), in the form of DINO (2021), which FCT adds to SimCLR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config.recipes import Augment, ModelSpec
from benchmark.config.seeds import drawing_from
from benchmark.models.backbones import Encoder
from benchmark.models.module import Portable
from benchmark.training.augment import augment
from benchmark.training.embedding import load_images
from benchmark.training.loop import Budget, Curve, Trainer

if TYPE_CHECKING:
    from benchmark.data.base import Images
    from benchmark.training.data import TrainingData

TEMPERATURE = 0.1
# Views differ more than the images of a supervised batch: position, size, slant and contrast.
VIEW = Augment(rotate=15.0, scale=0.3, shift=0.1, contrast=0.4, brightness=0.2)
LOCAL_LIGHT = Augment(contrast=VIEW.contrast, brightness=VIEW.brightness)
LOCAL_AREA = (0.05, 0.4)  # DINO: share of the image that a local crop shows
LOCAL_SIZE = 96 / 224  # DINO: its side, against the image's


class SideEncoder(Portable):
    """An encoder with one more batch norm at its end (appendix D.4.1)."""

    def __init__(self, backbone: str, channels: int, image_size: int, dim: int) -> None:
        super().__init__()
        self.encoder = Encoder(backbone, dim, channels, image_size)
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, images: Tensor) -> Tensor:
        """Images -> side-information, ``[n, dim]``."""
        out: Tensor = self.norm(self.encoder(images).float())
        return out


def nt_xent(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """Normalised temperature-scaled cross-entropy over both views of a batch.

    Args:
        first: ``[n, d]``, one view of each image.
        second: ``[n, d]``, the other view.
        temperature: tau.

    Source:
        SimCLR, eq. 1: each view finds its partner among the 2n - 1 others.
    """
    both = F.normalize(torch.cat([first, second]))
    logits = both @ both.T / temperature
    logits.fill_diagonal_(-torch.inf)
    n = len(first)
    partner = torch.arange(2 * n, device=both.device).roll(n)
    return F.cross_entropy(logits, partner)


def local_crops(images: Tensor, size: int, rng: torch.Generator) -> Tensor:
    """A random square part of each image, at a lower resolution.

    Args:
        images: ``[n, c, h, w]``.
        size: Side of a crop, pixels.
        rng: Source of the draws, on the CPU, so that every device sees the same ones.
    """
    draws = torch.rand(3, len(images), generator=rng).to(images.device)
    low, high = LOCAL_AREA
    part = (low + (high - low) * draws[0]).sqrt()
    # Coordinates run from -1 to 1; the crop stays inside.
    across, down = (2.0 * draws[1:] - 1.0) * (1.0 - part)
    zero = torch.zeros_like(part)
    rows = torch.stack([part, zero, across, zero, part, down], dim=1).view(-1, 2, 3)
    grid = F.affine_grid(rows, [*images.shape[:2], size, size], align_corners=False)
    crops = F.grid_sample(images, grid, padding_mode="border", align_corners=False)
    return crops.contiguous(memory_format=torch.channels_last)


def multi_crop(whole: Sequence[Tensor], local: Sequence[Tensor], temperature: float) -> Tensor:
    """NT-Xent of each view of the whole image with each other view, whole or local, averaged.

    Two local crops of an image may show nothing in common, so they are not compared.

    Args:
        whole: Embedded views of the whole images, ``[n, d]`` each.
        local: Embedded local crops of the same images, ``[n, d]`` each.
        temperature: tau.
    """
    pairs = [*combinations(whole, 2), *((a, b) for a in whole for b in local)]
    return torch.stack([nt_xent(a, b, temperature) for a, b in pairs]).mean()


Compare = Callable[[Sequence[Tensor], Sequence[Tensor]], Tensor]
"""Outputs of the network for views of whole images, and for local crops -> loss, a scalar."""


class _Contrast(nn.Module):
    """Two views of a batch and some local crops, and how well each finds the others."""

    def __init__(
        self, network: nn.Module, compare: Compare, images: Images, device: torch.device,
        crops: int, crop_size: int,
    ) -> None:  # fmt: skip
        super().__init__()
        self.network, self.compare, self.images, self.device = network, compare, images, device
        self.crops, self.crop_size = crops, crop_size
        self.rng = torch.Generator()

    def forward(self, rows: Tensor) -> Tensor:
        batch = load_images(self.images, rows, self.device)
        whole = [augment(batch, VIEW, self.rng) for _ in range(2)]
        local = [
            augment(local_crops(batch, self.crop_size, self.rng), LOCAL_LIGHT, self.rng)
            for _ in range(self.crops)
        ]
        outputs = [self._outputs(whole)]
        with _statistics_kept(self.network):
            outputs.append(self._outputs(local))
        with torch.autocast(self.device.type, enabled=False):
            return self.compare(*outputs)

    def _outputs(self, views: list[Tensor]) -> list[Tensor]:
        """Views of one size go through the network together."""
        if not views:
            return []
        together = torch.cat(views).contiguous(memory_format=torch.channels_last)
        return list(self.network(together).float().chunk(len(views)))

    def start(self, _: int, __: float, rng: torch.Generator) -> None:
        """Take the random stream of an epoch."""
        self.rng = rng


@contextmanager
def _statistics_kept(network: nn.Module) -> Iterator[None]:
    """Batch norms keep their running statistics, which are those of whole images.

    Only whole images are embedded later: statistics that are half of local crops would move
    every stored number, and turn most bits of a binary one into constants.
    """
    norms = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    momenta = [m.momentum for m in norms]
    for norm in norms:
        norm.momentum = 0.0
    yield
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum


def contrast(
    network: nn.Module, compare: Compare, spec: ModelSpec, data: TrainingData, trainer: Trainer,
    crops: int,
) -> Curve:  # fmt: skip
    """Train a network in place, on views of images whose labels it does not see."""
    # A transformer takes one size of image only.
    local = 1.0 if "vit" in spec.backbone else LOCAL_SIZE
    size = max(1, round(local * data.images.shape[2]))
    network.to(memory_format=torch.channels_last)
    system = _Contrast(network, compare, data.images, trainer.torch_device(), crops, size)
    batch = min(trainer.recipe.batch_size, len(data))
    steps = trainer.recipe.epochs * max(1, len(data) // batch)
    return trainer.run(system, len(data), Budget(steps, batch), on_epoch=system.start, name="side")


def train(
    spec: ModelSpec, data: TrainingData, trainer: Trainer, *, dim: int, crops: int
) -> tuple[Portable, Curve]:
    """Train the side-information model of a generation, labels unseen.

    Args:
        spec: Its backbone; the same as the old model's.
        data: Training data of the generation.
        trainer: The loop.
        dim: Size of the side-information.
        crops: Local crops of each image, beside two views of the whole.

    Returns:
        The model and its training curve.
    """
    _, channels, height, _ = data.images.shape
    with drawing_from(trainer.seed, "init"):
        encoder = SideEncoder(spec.backbone, channels, height, dim)
    compare: Compare = lambda whole, local: multi_crop(whole, local, TEMPERATURE)  # noqa: E731
    return encoder, contrast(encoder, compare, spec, data, trainer, crops)
