"""``places365``: Places365-Standard, 365 kinds of scenes (Zhou et al., 2017).

Reads the lists as they are published (``categories_places365.txt``,
``places365_train_standard.txt``, ``places365_val.txt``) beside the folders of their archives:
``data_256_standard`` (or ``data_large_standard``, and so on) and ``val_256`` or ``val_large``.
Classes are in the order of the numbers in the lists: "the first 182" of FCT and FastFill.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmark.config.declarations import Origin
from benchmark.data.files import Files, Labelled, data_root, first_of, matches
from benchmark.data.readers import PhotographDatasetReader
from benchmark.errors import BenchError

CATEGORIES = "categories_places365.txt"
TRAIN, VAL = "places365_train_standard.txt", "places365_val.txt"
_FOLDERS = {
    TRAIN: ("data_256_standard", "data_256", "data_large_standard", "data_large"),
    VAL: ("val_256", "val_large"),
}

_CATEGORY = re.compile(r"/[a-z]/([\w/-]+) (\d{1,9})")
_LISTED = re.compile(r"/?([\w./-]+\.jpg) (\d{1,9})")


@dataclass(frozen=True)
class Places365(PhotographDatasetReader):
    """Photographs of 365 kinds of scenes."""

    origin: ClassVar = Origin(
        "http://places2.csail.mit.edu/download.html",
        how="accept the terms there for Places365-Standard: the lists, and the small images "
        "(256 x 256) or the large ones",
        counts={
            "training classes": 365, "training images": 1_803_460, "smallest training class": 3_068,
            "largest training class": 5_000, "test classes": 365, "test images": 36_500,
            "smallest test class": 100, "largest test class": 100,
        },
        source="FastFill A.1; training images: Zhou et al., 2017",
    )  # fmt: skip

    def files(self, root: Path) -> list[Path]:
        """The lists, which stand for the images."""
        return [first_of(root, name) for name in (CATEGORIES, TRAIN, VAL)]

    def source(self, root: Path | None) -> dict[str, Any]:
        """All that determines the images, with the folders that hold them."""
        folders = [first_of(data_root(root, self.name), *f).name for f in _FOLDERS.values()]
        return {**super().source(root), "folders": folders}

    def parts(self, root: Path) -> tuple[Labelled, Labelled, tuple[str, ...]]:
        """Read the lists."""
        names = _categories(first_of(root, CATEGORIES))
        return _listed(root, TRAIN, len(names)), _listed(root, VAL, len(names)), names


def _categories(path: Path) -> tuple[str, ...]:
    """Names in the order of their numbers: ``/a/apartment_building/outdoor 8``."""
    names = {int(m[2]): m[1] for m in matches(path, _CATEGORY, "/a/airfield 0")}
    if sorted(names) != list(range(len(names))) or not names:
        raise BenchError(f"{path}: expected the numbers 0 to {max(names, default=0)}, each once")
    return tuple(names[i].replace("_", " ").replace("/", ", ") for i in range(len(names)))


def _listed(root: Path, name: str, n_classes: int) -> Labelled:
    """Images of a list and their classes."""
    path, folder = first_of(root, name), first_of(root, *_FOLDERS[name])
    names, labels = [], []
    for match in matches(path, _LISTED, "a file and its class number (/a/airfield/00000001.jpg 0)"):
        if int(match[2]) >= n_classes:
            raise BenchError(
                f"{path}: {match[1]}: expected a class number below {n_classes}, got {match[2]}"
            )
        names.append(f"{folder.name}/{match[1]}")
        labels.append(int(match[2]))
    if not names:
        raise BenchError(f"{path}: expected a file and its class number in each line, got none")
    return Files.checked(root, names), np.array(labels, np.int64)
