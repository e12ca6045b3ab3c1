"""SimCLR side-information: features that are learned without labels, stored beside the old ones.

Source: FCT section 3.4 and appendix D.4.1; Chen et al., SimCLR (2020), eq. 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.models.backbones import Encoder
from benchmark.models.module import Portable
from benchmark.protocol import Augment, ModelSpec
from benchmark.seeds import drawing_from
from benchmark.training.augment import augment
from benchmark.training.embedding import load_images
from benchmark.training.loop import Budget, Curve, Trainer

if TYPE_CHECKING:
    from benchmark.data.base import Images
    from benchmark.method import TrainingData

TEMPERATURE = 0.1
# Views differ more than the images of a supervised batch: position, size, slant and contrast.
VIEW = Augment(rotate=15.0, scale=0.3, shift=0.1, contrast=0.4, brightness=0.2)


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


class _SimCLR(nn.Module):
    """Two views of a batch, and how well each finds the other."""

    def __init__(self, encoder: nn.Module, images: Images, device: torch.device) -> None:
        super().__init__()
        self.encoder, self.images, self.device = encoder, images, device
        self.rng = torch.Generator()

    def forward(self, rows: Tensor) -> Tensor:
        batch = load_images(self.images, rows, self.device)
        views = torch.cat([augment(batch, VIEW, self.rng) for _ in range(2)])
        embedded = self.encoder(views.contiguous(memory_format=torch.channels_last))
        with torch.autocast(self.device.type, enabled=False):
            first, second = embedded.float().chunk(2)
            return nt_xent(first, second, TEMPERATURE)

    def start(self, _: int, __: float, rng: torch.Generator) -> None:
        """Take the random stream of an epoch."""
        self.rng = rng


def train(
    spec: ModelSpec, data: TrainingData, trainer: Trainer, *, dim: int
) -> tuple[Portable, Curve]:
    """Train the side-information model of a generation, labels unseen.

    Args:
        spec: Its backbone; the same as the old model's.
        data: Training data of the generation.
        trainer: The loop.
        dim: Size of the side-information.

    Returns:
        The model and its training curve.
    """
    _, channels, height, _ = data.images.shape
    with drawing_from(trainer.seed, "init"):
        encoder = SideEncoder(spec.backbone, channels, height, dim)
    encoder.to(memory_format=torch.channels_last)
    system = _SimCLR(encoder, data.images, trainer.torch_device())
    batch = min(trainer.recipe.batch_size, len(data))
    steps = trainer.recipe.epochs * max(1, len(data) // batch)
    curve = trainer.run(system, len(data), Budget(steps, batch), on_epoch=system.start, name="side")
    return encoder, curve
