"""Augmentation of whole batches: one affine map and one contrast an image, drawn together."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.config.recipes import Augment


def augment(images: Tensor, how: Augment, rng: torch.Generator) -> Tensor:
    """Change each image of a batch at random.

    Args:
        images: ``[n, c, h, w]`` float in [-1, 1].
        how: Largest changes.
        rng: Source of the draws, on the CPU, so that every device sees the same ones.

    Returns:
        Images of the same shape; what enters at the border repeats the border.
    """
    # All numbers are drawn whatever is switched on: turning one off leaves the others as they are.
    draws = torch.rand(7, len(images), generator=rng).to(images.device) * 2.0 - 1.0
    if how.rotate or how.scale or how.shift or how.crop:
        images = _affine(images, how, draws)
    if how.flip:
        images = torch.where(draws[6, :, None, None, None] > 0, images.flip(3), images)
    if how.contrast or how.brightness:
        gain = 1.0 + how.contrast * draws[4]
        offset = 2.0 * how.brightness * draws[5]
        images = images * gain[:, None, None, None] + offset[:, None, None, None]
    return images


def _affine(images: Tensor, how: Augment, draws: Tensor) -> Tensor:
    angle = math.radians(how.rotate) * draws[0]
    size = torch.exp(math.log1p(how.scale) * draws[1])
    if how.crop:  # the same draws say how large the crop is, and where
        side = (how.crop + (1.0 - how.crop) * (draws[1] + 1.0) / 2.0).sqrt()
        size = size / side
    cos, sin = torch.cos(angle) / size, torch.sin(angle) / size
    # Coordinates run from -1 to 1, so a shift by a fraction of the side is twice that.
    shift = 2.0 * how.shift * draws[2:4]
    if how.crop:
        shift = shift + (1.0 - side) * draws[2:4]
    rows = torch.stack([cos, -sin, shift[0], sin, cos, shift[1]], dim=1).view(-1, 2, 3)
    grid = F.affine_grid(rows, list(images.shape), align_corners=False)
    moved = F.grid_sample(images, grid, padding_mode="border", align_corners=False)
    return moved.contiguous(memory_format=torch.channels_last)
