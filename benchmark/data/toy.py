"""``toy``: smooth random patterns, made in milliseconds, for ``bench check`` and tests only."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.config.reading import build
from benchmark.data.base import Dataset, Evaluation, ImageSet
from benchmark.data.seeding import generator
from benchmark.data.templates import enrol

OFFERS = ("seen", "cameras", "templates", "groups", "texts")
"""What its items carry beside images and classes, and the evaluation sets beside ``test``."""

UNSEEN = ("test",)
"""Evaluation sets without a class that is trained on."""

GROUPS = ("even", "odd")


@dataclass(frozen=True)
class Options:
    """What may be asked for.

    Attributes:
        classes: Training classes; half as many more are evaluated.
        images: Images of each class, a multiple of 4.
        size: Side of an image, pixels.
        noise: Standard deviation of the noise, as a share of the range.
        seed: Of everything.
    """

    classes: int = 40
    images: int = 8
    size: int = 16
    noise: float = 0.1
    seed: int = 0


def source(data_root: Path | None, **options: object) -> dict[str, object]:  # noqa: ARG001
    """What determines the images: the options."""
    return asdict(build(Options, options, "dataset toy"))


def numbers(**options: object) -> dict[str, int]:
    """What ``load`` would give to train on, without drawing it."""
    chosen = build(Options, options, "dataset toy")
    return {
        "train_classes": chosen.classes,
        "train_images": chosen.classes * chosen.images,
    }


def class_group(name: str) -> str:
    """Even and odd patterns are the groups."""
    return GROUPS[int(name.removeprefix("pattern ")) % 2]


def load(data_root: Path | None, **options: object) -> Dataset:  # noqa: ARG001
    """Draw the patterns: ``test`` classes are not trained on, ``seen`` are other draws of those."""
    chosen = build(Options, options, "dataset toy")
    n_test = max(4, chosen.classes // 2)
    n = chosen.classes + n_test
    images = _draw(n, chosen)
    labels = np.repeat(np.arange(n), chosen.images)
    train = labels < chosen.classes
    again = _draw(n, chosen, noise=1)
    return Dataset(
        name="toy",
        train=ImageSet(images[train], labels[train]),
        evaluations={
            "test": _evaluation(images[~train], labels[~train], chosen),
            "seen": _evaluation(again[train], labels[train], chosen),
        },
        class_names=tuple(f"pattern {i}" for i in range(n)),
    )


def _draw(n: int, chosen: Options, noise: int = 0) -> NDArray[np.uint8]:
    """A few low frequencies a class, noisy in each image; another stream of noise if not 0."""
    rng = generator(chosen.seed, 0)
    size, k = chosen.size, chosen.images
    spectrum = np.zeros((n, 1, size, size // 2 + 1), np.complex128)
    spectrum[:, :, :3, :3] = rng.standard_normal((n, 1, 3, 3)) + 1j * rng.standard_normal(
        (n, 1, 3, 3)
    )
    patterns = np.repeat(np.fft.irfft2(spectrum, s=(size, size)), k, axis=0)
    patterns /= np.abs(patterns).max(axis=(1, 2, 3), keepdims=True)
    if noise:
        rng = generator(chosen.seed, noise)
    patterns += chosen.noise * 2 * rng.standard_normal(patterns.shape)
    return np.clip(patterns * 100 + 128, 0, 255).astype(np.uint8)


def _evaluation(
    images: NDArray[np.uint8], labels: NDArray[np.int64], chosen: Options
) -> Evaluation:
    n, k = len(labels), chosen.images
    rows = np.arange(n)
    place = rows % k
    # Four templates a class: the first is enrolled, the others are searched for.
    template = 4 * (rows // k) + place % 4
    classes = np.unique(labels)
    enrolled = 4 * np.arange(len(classes))
    probes, galleries = enrol(classes, np.repeat(classes, 4), enrolled, chosen.seed)
    return Evaluation(
        images=images, labels=labels, ids=rows, query=rows, gallery=rows, camera=place,
        media=rows, group=labels % 2, template=template, probes=probes, galleries=galleries,
        group_names=GROUPS,
    )  # fmt: skip
