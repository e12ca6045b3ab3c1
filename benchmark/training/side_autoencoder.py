"""Autoencoder side-information: a code from which the image can be reconstructed.

Source: FCT section 5.1 and appendix D.4.2; blocks of Sandler et al., MobileNetV2 (2018). FCT's
text gives the kind of the layers and the training, but no widths and no size of the code.
"""

from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchvision.models.mobilenetv2 import InvertedResidual

from benchmark.config.recipes import ModelSpec
from benchmark.config.seeds import drawing_from
from benchmark.errors import RefusedError
from benchmark.models.module import Portable
from benchmark.training.data import TrainingData
from benchmark.training.embedding import ImageSystem
from benchmark.training.loop import Curve, Trainer, rate

LEARNING_RATE = 3e-4  # Adam without weight decay, cosine schedule, appendix D.4.2
WARMUP = 5 / 100  # share of the steps, appendix D.4.2
WIDTHS = (16, 24, 32, 64, 96, 160)  # MobileNetV2's
SMALLEST = 7  # pixels of the last map, or less; MobileNetV2's at 224
_inverted = partial(InvertedResidual, expand_ratio=6)  # MobileNetV2's


def _sizes(image_size: int) -> list[int]:
    """Sides of the image and of each map, until one is small.

    Example:
        >>> _sizes(32), _sizes(224)
        ([32, 16, 8, 4], [224, 112, 56, 28, 14, 7])
    """
    sizes = [image_size, (image_size + 1) // 2]
    while sizes[-1] > SMALLEST and len(sizes) <= len(WIDTHS):
        sizes.append((sizes[-1] + 1) // 2)
    return sizes


class PixelEncoder(Portable):
    """Images to codes: a strided stem, inverted residuals, one linear layer."""

    def __init__(self, channels: int, image_size: int, dim: int) -> None:
        super().__init__()
        sizes = _sizes(image_size)
        widths = WIDTHS[: len(sizes) - 1]
        stem = nn.Conv2d(channels, widths[0], 3, 2, 1, bias=False)
        layers: list[nn.Module] = [stem, nn.BatchNorm2d(widths[0]), nn.ReLU6()]
        for before, after in pairwise(widths):
            layers += [_inverted(before, after, stride=2), _inverted(after, after, stride=1)]
        self.maps = nn.Sequential(*layers)
        self.code = nn.Linear(widths[-1] * sizes[-1] ** 2, dim)

    def forward(self, images: Tensor) -> Tensor:
        """Images -> side-information, ``[n, dim]``."""
        return self.code(self.maps(images).flatten(1)).float()


class PixelDecoder(nn.Module):
    """Codes to images: the encoder's layers backwards, growing where it shrinks."""

    def __init__(self, channels: int, image_size: int, dim: int) -> None:
        super().__init__()
        self.sizes = _sizes(image_size)[::-1]
        widths = WIDTHS[: len(self.sizes) - 1][::-1]
        self.shape = (widths[0], self.sizes[0], self.sizes[0])
        self.spread = nn.Linear(dim, widths[0] * self.sizes[0] ** 2)
        self.blocks = nn.ModuleList(
            nn.Sequential(_inverted(before, before, stride=1), _inverted(before, after, stride=1))
            for before, after in pairwise(widths)
        )
        self.draw = nn.Conv2d(widths[-1], channels, 3, 1, 1)

    def forward(self, codes: Tensor) -> Tensor:
        """``[n, dim]`` -> images in about [-1, 1]."""
        maps = self.spread(codes).unflatten(1, self.shape)
        for block, size in zip(self.blocks, self.sizes[1:-1], strict=True):
            maps = F.interpolate(block(maps), size=(size, size))
        return self.draw(F.interpolate(maps, size=(self.sizes[-1],) * 2))


def reconstruction(decoded: Tensor, images: Tensor) -> Tensor:
    """Squared difference, averaged over the pixels of a batch (section 5.1)."""
    return (decoded - images).square().mean()


class _Autoencoder(ImageSystem):
    def __init__(
        self, encoder: nn.Module, decoder: nn.Module, data: TrainingData, trainer: Trainer
    ) -> None:
        super().__init__(data.images, trainer.torch_device(), trainer.recipe.augment)
        self.encoder, self.decoder = encoder, decoder

    def forward(self, rows: Tensor) -> Tensor:
        images = self.augmented(rows)
        decoded = self.decoder(self.encoder(images))
        with torch.autocast(self.device.type, enabled=False):
            return reconstruction(decoded.float(), images)


def train(
    spec: ModelSpec, data: TrainingData, trainer: Trainer, *, dim: int,  # noqa: ARG001
) -> tuple[Portable, Curve]:  # fmt: skip
    """Train the autoencoder of a generation without labels; its encoder gives codes of ``dim``.

    Epochs and batch size are the track's for all side-information, where FCT has 100 and 512.

    Raises:
        RefusedError: If the images are not square.
    """
    _, channels, height, width = data.images.shape
    if height != width:
        raise RefusedError(
            f"side-information 'autoencoder': expected square images, got {height} x {width}"
        )
    with drawing_from(trainer.seed, "init"):
        encoder = PixelEncoder(channels, height, dim)
        decoder = PixelDecoder(channels, height, dim)
    system = _Autoencoder(encoder, decoder, data, trainer).to(memory_format=torch.channels_last)
    curve = trainer.run(
        system, len(data),
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=LEARNING_RATE),
        schedule=lambda progress: rate(progress, "cosine", WARMUP),
        on_epoch=system.start, name="side",
    )  # fmt: skip
    return encoder, curve
