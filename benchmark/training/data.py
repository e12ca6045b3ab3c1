"""What a generation is trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from benchmark.data.base import Images


@dataclass(frozen=True)
class TrainingData:
    """What a generation is trained on.

    Attributes:
        images: ``[n, c, h, w]`` uint8.
        labels: Row of the new classifier for each image, ``[n]`` int64, 0 to C - 1.
        classes: Class of each row, ``[C]`` int64: the same numbers in every generation.
    """

    images: Images
    labels: Tensor
    classes: Tensor

    def __len__(self) -> int:
        return len(self.labels)
