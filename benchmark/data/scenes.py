"""``scenes``: the characters of ``glyphs`` in colour, with others behind them, and fewer classes.

Each option brings rendered pictures one step nearer to photographs, which shows what makes a track
order methods as photographs do.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from benchmark.data.base import DatasetReader, Pixels
from benchmark.data.glyphs import AMOUNTS, FACES, TRAIN_CLASSES, Glyphs
from benchmark.data.rendering import (
    MOST_CONTRAST,
    OUT,
    PARAMETERS,
    PLACE,
    Amounts,
    Floats,
    expose,
    warp,
)  # fmt: skip

BEHIND = 3
"""Characters behind each one."""
ANYWHERE = Amounts(rotation=180, shear=0.3, scale=0.7, aspect=0.3, shift=12)
"""Places where they may stand."""
TINT = np.float32(0.35)
"""Distance that ink goes from black or white towards another colour."""


@dataclass(frozen=True)
class Scenes(Glyphs, DatasetReader):
    """Characters in colour over clutter."""

    channels: ClassVar = 3

    # Training classes; those evaluated are the same for any number.
    classes: Annotated[int, Field(ge=10, le=TRAIN_CLASSES)] = TRAIN_CLASSES
    colour: bool = True  # else grey
    clutter: Annotated[float, Field(ge=0, le=1)] = 0.8  # share of the paper's colour that it hides

    def sizes(self) -> dict[str, int]:
        """Training classes and images, without drawing them."""
        n = min(self.classes, super().sizes()["train_classes"])
        return {"train_classes": n, "train_images": n * FACES * self.draws}

    def render(self, ink: Pixels, row: int, rng: np.random.Generator) -> Pixels:
        """Draw one character in every face over others: ``[12, 3, 32, 32]`` uint8.

        Grey without clutter is the picture of ``glyphs``, three times.
        """
        if not self.colour and not self.clutter:
            return np.repeat(super().render(ink, row, rng), 3, axis=1)
        amounts = AMOUNTS[self.version]
        draws = (rng.random((FACES, PARAMETERS), np.float32) * 2 - 1) * np.float32(self.strength)
        draws = draws.T[:, :, None, None]
        noise = rng.standard_normal((FACES, OUT, OUT), np.float32)
        paper = self._colours(rng)
        value = np.broadcast_to(paper, (3, FACES, OUT, OUT)).copy()
        for _ in range(BEHIND if self.clutter else 0):
            others = rng.integers(0, len(ink), FACES), rng.integers(0, FACES, FACES)
            places = rng.random((PLACE, FACES, 1, 1), np.float32) * 2 - 1
            cover = warp(ink[others], places, ANYWHERE) * np.float32(self.clutter)
            value += cover * (self._colours(rng) - value)
        # Ink differs from paper in brightness, either way.
        base = np.where(paper.mean(0) > 0.5, np.float32(0), np.float32(1))
        tone = base + (self._colours(rng) - base) * TINT
        contrast = 1 - np.minimum(np.abs(draws[PLACE]) * amounts.contrast, MOST_CONTRAST)
        value += warp(ink[row], draws[:PLACE], amounts) * contrast * (tone - value)
        return expose(value, draws[PLACE + 2 :], noise, amounts).swapaxes(0, 1)

    def _colours(self, rng: np.random.Generator) -> Floats:
        """A colour for each face, ``[3, 12, 1, 1]`` float32 in [0, 1)."""
        colours = rng.random((3, FACES, 1, 1), np.float32)
        return colours if self.colour else colours[:1]
