"""SimCLR side-information: features learned without labels, stored beside the old ones.

Views are the recipe's augmentation: of characters another one than of photographs.

Source: FCT section 3.4 and appendix D.4.1; Chen et al., SimCLR (2020), eq. 1; multi-crop of Caron
et al., SwAV (2020), in the form of DINO (2021), which FCT adds to SimCLR.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config.recipes import Augment, ModelSpec
from benchmark.config.seeds import drawing_from
from benchmark.models.backbones import Encoder
from benchmark.models.module import Portable
from benchmark.training.augment import augment
from benchmark.training.data import TrainingData
from benchmark.training.embedding import ImageSystem, load_images
from benchmark.training.loop import Curve, Trainer

TEMPERATURE = 0.1  # SimCLR's code for ImageNet, on every track; its README has 0.5 for CIFAR-10
LOCAL_AREA = (0.05, 0.4)  # DINO: share of the image that a local crop shows
LOCAL_SIZE = 96 / 224  # DINO: its side, against the image's

ViewLoss = Callable[[Sequence[Tensor], Sequence[Tensor]], Tensor]
"""Embedded views of whole images, and embedded local crops -> loss, a scalar."""


class SideEncoder(Portable):
    """An encoder with one more batch norm at its end (appendix D.4.1)."""

    def __init__(
        self, backbone: str, channels: int, image_size: int, dim: int, input_size: int | None = None
    ) -> None:
        super().__init__()
        self.encoder = Encoder(backbone, dim, channels, image_size, input_size=input_size)
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, images: Tensor) -> Tensor:
        """Images -> side-information, ``[n, dim]``."""
        return self.norm(self.encoder(images).float())


def nt_xent(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """NT-Xent (SimCLR, eq. 1) over both views ``[n, d]`` of a batch, the partner as positive."""
    both = F.normalize(torch.cat([first, second]))
    logits = both @ both.T / temperature
    logits.fill_diagonal_(-torch.inf)
    n = len(first)
    partner = torch.arange(2 * n, device=both.device).roll(n)
    return F.cross_entropy(logits, partner)


def local_crops(images: Tensor, size: int, rng: torch.Generator) -> Tensor:
    """A random square part of each image ``[n, c, h, w]``, resized to ``size`` pixels a side."""
    draws = torch.rand(3, len(images), generator=rng).to(images.device)  # the same on every device
    low, high = LOCAL_AREA
    part = (low + (high - low) * draws[0]).sqrt()
    # Coordinates run from -1 to 1; the crop stays inside.
    across, down = (2.0 * draws[1:] - 1.0) * (1.0 - part)
    zero = torch.zeros_like(part)
    rows = torch.stack([part, zero, across, zero, part, down], dim=1).view(-1, 2, 3)
    grid = F.affine_grid(rows, [*images.shape[:2], size, size], align_corners=False)
    crops = F.grid_sample(images, grid, padding_mode="border", align_corners=False)
    return crops.contiguous(memory_format=torch.channels_last)


def without_geometry(views: Augment) -> Augment:
    """Changes of a local crop, which has a place and a size of its own: colour, blur, mirror."""
    kept = {"contrast", "brightness", "saturation", "hue", "jitter", "grey", "blur", "flip"}
    return Augment(**views.model_dump(include=kept))


def multi_crop(
    whole: Sequence[Tensor], local: Sequence[Tensor], temperature: float = TEMPERATURE
) -> Tensor:
    """NT-Xent of each view of the whole image with each other view, whole or local, averaged.

    Two local crops of an image may show nothing in common, so they are not compared. All are
    embeddings ``[n, d]`` of the same images.
    """
    pairs = [*combinations(whole, 2), *((a, b) for a in whole for b in local)]
    return torch.stack([nt_xent(a, b, temperature) for a, b in pairs]).mean()


class _Contrast(ImageSystem):
    def __init__(
        self, network: nn.Module, loss: ViewLoss, data: TrainingData, device: torch.device,
        views: Augment, crops: int, crop_size: int,
    ) -> None:  # fmt: skip
        super().__init__(data.images, device, views)
        self.network, self.loss, self.crops, self.crop_size = network, loss, crops, crop_size
        self.local_views = without_geometry(views)

    def forward(self, rows: Tensor) -> Tensor:
        batch = load_images(self.images, rows, self.device)
        views = [augment(batch, self.changes, self.rng) for _ in range(2)]
        crops = (local_crops(batch, self.crop_size, self.rng) for _ in range(self.crops))
        local_views = [augment(crop, self.local_views, self.rng) for crop in crops]
        whole = self._outputs(views)
        with _statistics_kept(self.network):
            local = self._outputs(local_views)
        with torch.autocast(self.device.type, enabled=False):
            return self.loss(whole, local)

    def _outputs(self, views: list[Tensor]) -> list[Tensor]:
        """Views of one size go through the network together."""
        if not views:
            return []
        together = torch.cat(views).contiguous(memory_format=torch.channels_last)
        return list(self.network(together).float().chunk(len(views)))


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


def train_network(
    network: nn.Module, loss: ViewLoss, spec: ModelSpec, data: TrainingData, trainer: Trainer,
    crops: int,
) -> Curve:  # fmt: skip
    """Train a network in place on views of images without their labels; as :func:`train`.

    The trainer's recipe is that of :meth:`~benchmark.config.recipes.Recipe.for_simclr`.
    """
    network.to(memory_format=torch.channels_last)
    # A transformer takes one size of image only.
    share = 1.0 if spec.is_transformer else LOCAL_SIZE
    size = max(1, round(share * data.images.shape[2]))
    views = trainer.recipe.augment
    system = _Contrast(network, loss, data, trainer.torch_device(), views, crops, size)
    return trainer.run(system, len(data), on_epoch=system.start, name="side")


def train(
    spec: ModelSpec, data: TrainingData, trainer: Trainer, *, dim: int, crops: int,
    loss: ViewLoss = multi_crop,
) -> tuple[Portable, Curve]:  # fmt: skip
    """Train the side-information model of a generation, with the old model's backbone.

    Its output has ``dim`` numbers. ``crops`` are the local ones of each image, which ``loss`` gets
    beside two views of the whole; labels are not read.
    """
    _, channels, height, _ = data.images.shape
    with drawing_from(trainer.seed, "init"):
        size = {} if spec.input_size is None else {"input_size": spec.input_size}
        encoder = SideEncoder(spec.backbone, channels, height, dim, **size)
    return encoder, train_network(encoder, loss, spec, data, trainer, crops)
