"""Images of one dataset in the shape of another's, for side-information from another domain."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional as F

if TYPE_CHECKING:
    from benchmark.data.base import Ints
    from benchmark.training.data import TrainingData


def shaped(data: TrainingData, shape: tuple[int, ...]) -> TrainingData:
    """The same data with images of another size and number of channels.

    Args:
        data: Any training data.
        shape: ``(c, h, w)``. Colour becomes its mean where one channel is wanted; grey is repeated.
    """
    rows = np.arange(data.images.shape[0])
    parts = [_shaped(data.images[chunk], shape) for chunk in _chunks(rows)]
    return replace(data, images=np.concatenate(parts))


def _chunks(rows: Ints) -> list[Ints]:
    return np.array_split(rows, max(1, len(rows) // 2048))


def _shaped(images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    channels, height, width = shape
    pixels = torch.from_numpy(images).float()
    if pixels.shape[1] != channels:
        pixels = pixels.mean(dim=1, keepdim=True).expand(-1, channels, -1, -1)
    if pixels.shape[2:] != (height, width):
        pixels = F.interpolate(pixels, size=(height, width), mode="bilinear", antialias=True)
    return pixels.round().clamp(0, 255).to(torch.uint8).numpy()
