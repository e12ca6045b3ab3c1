"""``toy``: smooth random patterns, drawn in milliseconds, for ``bench check`` and tests only."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from benchmark.config.checks import Seed
from benchmark.config.declarations import EvaluationSet
from benchmark.data.base import Dataset, DatasetReader, Evaluation, ImageSet, Pixels
from benchmark.data.enrolment import enrol
from benchmark.data.splits import generator

GROUPS = ("even", "odd")
_MOST_PIXELS = 2**28

Count = Annotated[int, Field(ge=1, le=100_000)]


@dataclass(frozen=True)
class Toy(DatasetReader):
    """Smooth random patterns."""

    columns: ClassVar = frozenset({"cameras", "templates", "groups", "texts"})
    pictures: ClassVar = True  # rendered here
    channels: ClassVar = 1
    stores_queries: ClassVar = True
    evaluation_sets: ClassVar = {"test": EvaluationSet(unseen=True), "seen": EvaluationSet()}

    classes: Count = 40  # to train on; half as many more are evaluated
    images: Annotated[Count, Field(multiple_of=4)] = 8  # of each class
    size: Annotated[int, Field(ge=4, le=512)] = 16  # side of an image, pixels
    noise: Annotated[float, Field(ge=0, le=10)] = 0.1  # its deviation, as a share of the range
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Refuse more patterns than memory holds."""
        pixels = self.classes * self.images * self.size**2
        if pixels > _MOST_PIXELS:
            raise ValueError(f"expected at most {_MOST_PIXELS} pixels in all, got {pixels}")

    def source(self, root: Path | None) -> dict[str, Any]:  # noqa: ARG002
        """The options determine the images."""
        return asdict(self)

    def sizes(self) -> dict[str, int]:
        """Training classes and images, without drawing them."""
        return {"train_classes": self.classes, "train_images": self.classes * self.images}

    def class_group(self, class_name: str) -> str:
        """Even and odd patterns are the groups."""
        return GROUPS[int(class_name.removeprefix("pattern ")) % 2]

    def load(self, root: Path | None) -> Dataset:  # noqa: ARG002
        """Draw the patterns: ``test`` has classes not trained on, ``seen`` other draws."""
        n = self.classes + max(4, self.classes // 2)
        images = _draw(n, self)
        labels = np.repeat(np.arange(n), self.images)
        train = labels < self.classes
        again = _draw(n, self, noise=1)
        evaluations = {
            "test": _evaluation(images[~train], labels[~train], self),
            "seen": _evaluation(again[train], labels[train], self),
        }
        names = tuple(f"pattern {i}" for i in range(n))
        return Dataset(self.name, ImageSet(images[train], labels[train]), evaluations, names)


def _draw(n: int, options: Toy, noise: int = 0) -> Pixels:
    """A few low frequencies a class, noisy in each image; another stream of noise if not 0."""
    rng, size = generator(options.seed, 0), options.size
    spectrum = np.zeros((n, 1, size, size // 2 + 1), np.complex128)
    real, imaginary = (rng.standard_normal((n, 1, 3, 3)) for _ in range(2))
    spectrum[:, :, :3, :3] = real + 1j * imaginary
    patterns = np.repeat(np.fft.irfft2(spectrum, s=(size, size)), options.images, axis=0)
    patterns /= np.abs(patterns).max(axis=(1, 2, 3), keepdims=True)
    if noise:
        rng = generator(options.seed, noise)
    patterns += options.noise * 2 * rng.standard_normal(patterns.shape)
    return np.clip(patterns * 100 + 128, 0, 255).astype(np.uint8)


def _evaluation(images: Pixels, labels: NDArray[np.int64], options: Toy) -> Evaluation:
    subject, camera = np.divmod(np.arange(len(labels)), options.images)
    # Four templates a class: the first is enrolled, the others are searched for.
    classes = np.unique(labels)
    enrolled = 4 * np.arange(len(classes))
    probes, galleries = enrol(classes, np.repeat(classes, 4), enrolled, options.seed)
    return Evaluation.of(
        images, labels, camera=camera, group=labels % 2, group_names=GROUPS,
        template=4 * subject + camera % 4, probes=probes, galleries=galleries,
    )  # fmt: skip
