"""``places365``: Places365-Standard, 365 kinds of scenes (Zhou et al., 2017).

Reads the lists as they are published (``categories_places365.txt``,
``places365_train_standard.txt``, ``places365_val.txt``) beside the folders of their archives:
``data_256_standard`` (or ``data_large_standard``, and so on) and ``val_256`` or ``val_large``.
Classes are in the order of the numbers in the lists: "the first 182" of FCT and FastFill.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmark.config.reading import build
from benchmark.data.base import Dataset, ImageSet, Ints
from benchmark.data.decode import View
from benchmark.data.encoded import images_of, listed
from benchmark.data.files import content_hash, decoder, first_of, matches, root_of
from benchmark.data.templates import each_alone
from benchmark.errors import BenchError

READING = 1
"""Raised by whoever changes how files become pixels or classes; part of every cache key."""

OFFERS = ("seen", "templates", "texts")
"""``test`` has other images of the training classes, as ``seen`` has; each is its own template."""

CATEGORIES = "categories_places365.txt"
TRAIN, VAL = "places365_train_standard.txt", "places365_val.txt"
_TRAIN_FOLDERS = ("data_256_standard", "data_256", "data_large_standard", "data_large")
_VAL_FOLDERS = ("val_256", "val_large")

_CATEGORY = re.compile(r"/[a-z]/([\w/-]+) (\d+)")
_LISTED = re.compile(r"/?([\w./-]+\.jpg) (\d+)")


@dataclass(frozen=True)
class Options:
    """What may be asked for.

    Attributes:
        image_size: Side of an image, pixels.
        keep: Share of the short side that is kept: 224 of 256.
        seed: Decides who is enrolled in which gallery.
    """

    image_size: int = 224
    keep: float = 0.875
    seed: int = 0


def source(data_root: Path | None, **options: object) -> dict[str, object]:
    """What determines the images: options, reading version, decoder, the hash of the lists."""
    root = root_of(data_root, "places365")
    lists = [first_of(root, [name], "places365") for name in (CATEGORIES, TRAIN, VAL)]
    return {
        **asdict(build(Options, options, "dataset places365")),
        "reading": READING,
        "decoder": decoder(),
        "folders": [_folder(root, names).name for names in (_TRAIN_FOLDERS, _VAL_FOLDERS)],
        "files": content_hash(root, lists),
    }


def load(data_root: Path | None, **options: object) -> Dataset:
    """List the files; large sets are decoded while they are used.

    Raises:
        BenchError: For a missing list or folder, a line or number that cannot be.
    """
    chosen = build(Options, options, "dataset places365")
    root = root_of(data_root, "places365")
    names = _categories(first_of(root, [CATEGORIES], "places365"))
    view = View(chosen.image_size, chosen.image_size, keep=chosen.keep)
    train, val = (
        _listed(
            root, first_of(root, [list_], "places365"), _folder(root, folders), len(names), view
        )
        for list_, folders in ((TRAIN, _TRAIN_FOLDERS), (VAL, _VAL_FOLDERS))
    )
    items = each_alone(val.images, val.labels, seed=chosen.seed)
    return Dataset(
        name="places365",
        train=train,
        evaluations={"test": items, "seen": items},
        class_names=names,
        facts={
            **source(data_root, **options),
            "classes": len(names),
            "train_classes": len(np.unique(train.labels)),
        },
    )


def _folder(root: Path, names: tuple[str, ...]) -> Path:
    return first_of(root, names, "places365")


def _categories(path: Path) -> tuple[str, ...]:
    """Names in the order of their numbers: ``/a/apartment_building/outdoor 8``."""
    found = {int(m[2]): m[1] for m in matches(path, _CATEGORY, "/a/airfield 0")}
    if sorted(found) != list(range(len(found))) or not found:
        raise BenchError(f"{path}: expected the numbers 0 to {max(found, default=0)}, each once")
    return tuple(found[i].replace("_", " ").replace("/", ", ") for i in range(len(found)))


def _listed(root: Path, path: Path, folder: Path, n: int, view: View) -> ImageSet:
    names, labels = [], []
    for match in matches(path, _LISTED, "a file and its class number (/a/airfield/00000001.jpg 0)"):
        if int(match[2]) >= n:
            raise BenchError(
                f"{path}: {match[1]}: expected a class number below {n}, got {match[2]}"
            )
        names.append(f"{folder.name}/{match[1]}")
        labels.append(int(match[2]))
    if not names:
        raise BenchError(f"{path}: expected a file and its class number in each line, got none")
    made: Ints = np.array(labels, np.int64)
    return ImageSet(images_of(listed(root, names), view), made)
