"""``imagenet``: ILSVRC 2012, 1,000 classes (Russakovsky et al., 2015).

Reads ``train/n01440764/*.JPEG`` and ``val/n01440764/*.JPEG``, or the competition's own layout
(``ILSVRC/Data/CLS-LOC/train``, ``val`` with all images in one folder and ``LOC_val_solution.csv``).
Classes are in the order of their synset numbers, which is the order of the common class indices:
"the first 500 classes" of FCT, BT2 and FastFill.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmark.config.declarations import Origin
from benchmark.data.base import Dataset
from benchmark.data.files import Files, Labelled, first_of, images_by_class, matches, names_in
from benchmark.data.readers import PhotographDatasetReader
from benchmark.errors import BenchError

_SYNSET = re.compile(r"n(\d{8})")
_MAPPING = re.compile(r"n(\d{8}) (.+)")
_SOLUTION = re.compile(r"(?:ImageId,PredictionString|(\w+),n(\d{8})(?: .*)?)")


@dataclass(frozen=True)
class ImageNet(PhotographDatasetReader):
    """Photographs of 1,000 classes."""

    origin: ClassVar = Origin(
        "https://www.image-net.org/download.php",
        how="register there for ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar, or on Kaggle "
        "for imagenet-object-localization-challenge",
        counts={
            "training classes": 1_000, "training images": 1_281_167, "test classes": 1_000,
            "test images": 50_000, "smallest test class": 50, "largest test class": 50,
        },
        source="FastFill A.1; images a test class: Russakovsky et al., 2015",
    )  # fmt: skip

    def folder(self, root: Path) -> Path:
        """The competition's folder, or the root."""
        inside = root / "ILSVRC" / "Data" / "CLS-LOC"
        return inside if inside.is_dir() else root

    def class_keys(self, dataset: Dataset, root: Path) -> Sequence[str]:  # noqa: ARG002
        """Synsets, as words may stand for several."""
        folders = first_of(self.folder(root), "train").iterdir()
        return sorted(each.name for each in folders if _SYNSET.fullmatch(each.name))

    def parts(self, root: Path) -> tuple[Labelled, Labelled, tuple[str, ...]]:
        """Images of the synsets' folders; labels of ``val`` may come from the solution."""
        folder, solution = self.folder(root), root / "LOC_val_solution.csv"
        train, numbers = images_by_class(folder, "train", _SYNSET, "n01440764")
        if solution.is_file():
            val, val_numbers = _solved(folder, solution)
        else:
            val, val_numbers = images_by_class(folder, "val", _SYNSET, "n01440764")
        synsets, labels = np.unique(numbers, return_inverse=True)
        unknown = np.flatnonzero(~np.isin(val_numbers, synsets))
        if len(unknown):
            synset, path = val_numbers[unknown[0]], val.paths[unknown[0]]
            raise BenchError(f"{path}: synset n{synset:08d} is not among those of train")
        mapping = root / "LOC_synset_mapping.txt"
        lines = matches(mapping, _MAPPING, "a synset and its words (n01440764 tench)")
        words = {int(m[1]): m[2].partition(",")[0] for m in lines} if mapping.is_file() else {}
        names = tuple(words.get(s, f"n{s:08d}") for s in synsets.tolist())
        return (train, labels), (val, np.searchsorted(synsets, val_numbers)), names


def _solved(root: Path, solution: Path) -> Labelled:
    """Images in one folder, their synsets from the competition's solution."""
    present = set(names_in(first_of(root, "val")))
    images = []
    for match in matches(solution, _SOLUTION, "ILSVRC2012_val_00000001,n01440764 ..."):
        if match[1] is not None:
            name = f"{match[1]}.JPEG"
            if name not in present:
                raise BenchError(f"{root / 'val' / name}: listed in {solution.name}, but missing")
            images.append((f"val/{name}", int(match[2])))
    names, synsets = zip(*sorted(images), strict=True)
    return Files.checked(root, names), np.array(synsets, np.int64)
