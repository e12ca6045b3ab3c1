"""Seeded distortion of drawings, vectorised over images. Not a dataset itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

OUT = 32


@dataclass(frozen=True)
class Amounts:
    """How far each distortion reaches at strength 1; all grow in proportion to the strength.

    Attributes:
        rotation: Degrees, either way.
        shear: Horizontal, either way.
        scale: Logarithm of the size, either way.
        aspect: Logarithm of width over height, either way.
        shift: Pixels of the 32, either way, in each direction.
        contrast: Share of the ink's darkness that may be lost.
        paper: Share of the paper's brightness that may be lost.
        slope: Brightness between the middle and an edge, either way, in each direction.
        bowl: Brightness between the middle and a corner, either way.
        noise: Largest standard deviation of a pixel's noise, brightness in [0, 1].
    """

    rotation: float = 15.0
    shear: float = 0.15
    scale: float = 0.15
    aspect: float = 0.08
    shift: float = 2.0
    contrast: float = 0.4
    paper: float = 0.15
    slope: float = 0.12
    bowl: float = 0.08
    noise: float = 0.08


PARAMETERS = 12


def distort(
    ink: NDArray[np.uint8],
    uniform: Floats,
    noise: Floats,
    strength: float,
    amounts: Amounts,
) -> NDArray[np.uint8]:
    """Warp, downscale and light drawings: dark ink on light paper.

    Args:
        ink: ``[k, h, h]`` uint8, 255 fully covered.
        uniform: What is drawn for each image, in [-1, 1), ``[k, PARAMETERS]`` float32.
        noise: Standard normal, ``[k, 32, 32]`` float32.
        strength: Multiplies every amount; 0 only downscales.
        amounts: How far each distortion reaches at strength 1.

    Returns:
        ``[k, 32, 32]`` uint8.
    """
    a, draws = amounts, (uniform * np.float32(strength)).T[:, :, None, None]  # [12, k, 1, 1]
    covered = _warp(ink, draws[:6], a)
    contrast, paper, slope_x, slope_y, bowl, grain = draws[6:]
    unit = ((np.arange(OUT, dtype=np.float32) + np.float32(0.5)) * 2 / OUT - 1)[None]
    x, y = unit[:, None, :], unit[:, :, None]
    bright = PAPER - np.minimum(np.abs(paper) * a.paper, MOST_PAPER)
    dark = (bright - INK) * (1 - np.minimum(np.abs(contrast) * a.contrast, MOST_CONTRAST))
    value: Floats = bright - dark * covered
    value += slope_x * a.slope * x + slope_y * a.slope * y
    value += bowl * a.bowl * (x * x + y * y - 1)
    value += np.abs(grain) * a.noise * noise
    return np.clip(np.rint(value * 255), 0, 255).astype(np.uint8)


PAPER, INK = np.float32(0.95), np.float32(0.05)
MOST_PAPER, MOST_CONTRAST = np.float32(0.4), np.float32(0.75)
"""However strong, paper stays lighter than ink."""


def _warp(ink: NDArray[np.uint8], draws: Floats, a: Amounts) -> Floats:
    """Share of each output pixel that ink covers, ``[k, 32, 32]``."""
    rotation, shear, scale, aspect, shift_x, shift_y = draws
    k, size = ink.shape[:2]
    step = np.float32(size / OUT)
    grid = np.arange(OUT, dtype=np.float32) - np.float32((OUT - 1) / 2)
    x, y = grid[None, None, :] - shift_x * a.shift, grid[None, :, None] - shift_y * a.shift
    angle = np.deg2rad(rotation * a.rotation)
    cos, sin = np.cos(angle), np.sin(angle)
    # Output to source: turn back, undo the shear, undo the scales.
    turned_y = cos * y - sin * x
    turned_x = cos * x + sin * y - shear * a.shear * turned_y
    inverse = step * np.exp(-scale * a.scale)
    half = np.exp(aspect * a.aspect / 2)
    middle = np.float32((size - 1) / 2 + 1)  # in the padded source
    last = np.float32(size + 1 - 1e-3)
    source_x = np.clip(turned_x * (inverse / half) + middle, 0, last)
    source_y = np.clip(turned_y * (inverse * half) + middle, 0, last)
    left, top = source_x.astype(np.int32), source_y.astype(np.int32)
    right_part, low_part = source_x - left, source_y - top
    width = size + 2
    flat = _blurred(ink).reshape(-1)
    corner = top * width + left + (np.arange(k, dtype=np.int32) * (width * width))[:, None, None]
    upper, lower = flat[corner], flat[corner + width]
    upper += right_part * (flat[corner + 1] - upper)
    lower += right_part * (flat[corner + (width + 1)] - lower)
    covered: Floats = upper + low_part * (lower - upper)
    return covered


def _blurred(ink: NDArray[np.uint8]) -> Floats:
    """Ink in [0, 1] within a border of one pixel, blurred by [1 2 1] each way: antialiasing."""
    wide = np.pad(ink, ((0, 0), (2, 2), (2, 2))).astype(np.float32)
    tall = wide[:, :-2] + 2 * wide[:, 1:-1] + wide[:, 2:]
    blurred: Floats = (tall[:, :, :-2] + 2 * tall[:, :, 1:-1] + tall[:, :, 2:]) / np.float32(4080)
    return blurred
