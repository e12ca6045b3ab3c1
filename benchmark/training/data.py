"""Training data of a generation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.data.base import Images


@dataclass(frozen=True)
class TrainingData:
    """Training data of a generation: images ``[n, c, h, w]`` and their classes."""

    images: Images
    labels: Tensor
    """Row of the new classifier for each image, ``[n]`` int64, 0 to C - 1."""
    classes: Tensor
    """Class of each row, ``[C]`` int64: the same numbers in every generation."""
    texts: Sequence[str] | None = None
    """Caption of each image, ``n`` of them; ``None`` where the classes' names are all there is."""

    def __len__(self) -> int:
        return len(self.labels)


def resized(data: TrainingData, shape: tuple[int, ...]) -> TrainingData:
    """The same data with images ``(c, h, w)``: colour becomes its mean, grey is repeated.

    Whole numbers are rounded to 0 to 255, floating-point ones stay float32.
    """
    channels, *size = shape
    n, images = data.images.shape[0], []
    for rows in np.array_split(np.arange(n), max(1, n // 2048)):
        read = torch.from_numpy(data.images[rows])
        pixels = read.float()
        if pixels.shape[1] != channels:
            pixels = pixels.mean(dim=1, keepdim=True).expand(-1, channels, -1, -1)
        if [*pixels.shape[2:]] != size:
            pixels = F.interpolate(pixels, size=size, mode="bilinear", antialias=True)
        if not read.is_floating_point():
            pixels = pixels.round().clamp(0, 255).to(torch.uint8)
        images.append(pixels.numpy())
    return replace(data, images=np.concatenate(images))
