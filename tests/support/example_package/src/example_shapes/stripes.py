"""``stripes``: waves of a direction and a length each, with noise."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmark.config.declarations import EvaluationSet
from benchmark.data.base import Dataset, DatasetReader, ImageSet
from benchmark.data.enrolment import single_item_templates


@dataclass(frozen=True)
class Stripes(DatasetReader):
    """Waves; of every three classes one is evaluated and never trained on."""

    columns: ClassVar = frozenset({"templates"})  # each image is one
    evaluation_sets: ClassVar = {"test": EvaluationSet(unseen=True)}

    classes: int = 30
    images: int = 8

    def source(self, root: Path | None) -> dict[str, Any]:
        """The options determine the images."""
        return asdict(self)

    def load(self, root: Path | None) -> Dataset:
        """Draw them."""
        rng = np.random.default_rng(0)
        labels = np.repeat(np.arange(self.classes), self.images)
        y, x = np.mgrid[:16, :16] / 16
        angle, length = np.pi * labels / self.classes, 1 + labels % 4
        along = np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y
        waves = np.sin(2 * np.pi * length[:, None, None] * along)
        noisy = 128 + 80 * waves + 20 * rng.standard_normal(waves.shape)
        images = np.clip(noisy, 0, 255).astype(np.uint8)[:, None]
        test = labels % 3 == 0
        names = tuple(f"stripe {i}" for i in range(self.classes))
        evaluations = {"test": single_item_templates(images[test], labels[test], seed=0)}
        return Dataset(self.name, ImageSet(images[~test], labels[~test]), evaluations, names)
