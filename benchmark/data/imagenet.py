"""``imagenet``: ILSVRC 2012, 1,000 classes (Russakovsky et al., 2015).

Reads ``train/n01440764/*.JPEG`` and ``val/n01440764/*.JPEG``, or the competition's own layout
(``ILSVRC/Data/CLS-LOC/train``, ``val`` with all images in one folder and ``LOC_val_solution.csv``).
Classes are in the order of their synset numbers, which is the order of the common class indices:
"the first 500 classes" of FCT, BT2 and FastFill.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmark.config.reading import build
from benchmark.data.base import Dataset, ImageSet
from benchmark.data.decode import SUFFIXES, View
from benchmark.data.encoded import images_of, listed
from benchmark.data.files import (
    content_hash,
    decoder,
    first_of,
    matches,
    names_in,
    numbered,
    root_of,
)
from benchmark.data.templates import each_alone
from benchmark.errors import BenchError

READING = 1
"""Raised by whoever changes how files become pixels or classes; part of every cache key."""

OFFERS = ("seen", "templates", "texts")
"""``test`` has other images of the training classes, as ``seen`` has; each is its own template."""

_SYNSET = re.compile(r"n(\d{8})")
_MAPPING = re.compile(r"n(\d{8}) (.+)")
_SOLUTION = re.compile(r"(?:ImageId,PredictionString|(\w+),n(\d{8})(?: .*)?)")


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


@dataclass(frozen=True)
class Found:
    """Files of both parts and their synsets."""

    root: Path
    train: list[tuple[str, int]]
    val: list[tuple[str, int]]
    words: dict[int, str]

    @property
    def synsets(self) -> list[int]:
        """Synset numbers of the training classes, ascending."""
        return sorted({synset for _, synset in self.train})


def source(data_root: Path | None, **options: object) -> dict[str, object]:
    """What determines the images: options, reading version, decoder, the files' hash."""
    found = _found(root_of(data_root, "imagenet"))
    files = [found.root / name for name, _ in (*found.train, *found.val)]
    return {
        **asdict(build(Options, options, "dataset imagenet")),
        "reading": READING,
        "decoder": decoder(),
        "files": content_hash(found.root, files),
    }


def load(data_root: Path | None, **options: object) -> Dataset:
    """List the files; large sets are decoded while they are used.

    Raises:
        BenchError: For a missing folder, a name that is no synset, a class that was not trained on.
    """
    chosen = build(Options, options, "dataset imagenet")
    found = _found(root_of(data_root, "imagenet"))
    index = {synset: i for i, synset in enumerate(found.synsets)}
    for name, synset in found.val:
        if synset not in index:
            raise BenchError(
                f"{found.root / name}: synset n{synset:08d} is not among those of train"
            )
    view = View(chosen.image_size, chosen.image_size, keep=chosen.keep)
    sets = [
        ImageSet(
            images_of(listed(found.root, [name for name, _ in part]), view),
            np.array([index[synset] for _, synset in part], np.int64),
        )
        for part in (found.train, found.val)
    ]
    items = each_alone(sets[1].images, sets[1].labels, seed=chosen.seed)
    return Dataset(
        name="imagenet",
        train=sets[0],
        evaluations={"test": items, "seen": items},
        class_names=tuple(found.words.get(s, f"n{s:08d}") for s in found.synsets),
        facts={**source(data_root, **options), "classes": len(index), "train_classes": len(index)},
    )


def _found(root: Path) -> Found:
    base = root / "ILSVRC" / "Data" / "CLS-LOC"
    base = base if base.is_dir() else root
    train = _foldered(first_of(base, ["train"], "imagenet"), base)
    val = first_of(base, ["val"], "imagenet")
    solution = root / "LOC_val_solution.csv"
    held = _solved(val, solution, base) if solution.is_file() else _foldered(val, base)
    mapping = root / "LOC_synset_mapping.txt"
    expected = "a synset and its words (n01440764 tench)"
    words = (
        {int(m[1]): m[2].partition(",")[0] for m in matches(mapping, _MAPPING, expected)}
        if mapping.is_file()
        else {}
    )
    return Found(base, train, held, words)


def _foldered(folder: Path, base: Path) -> list[tuple[str, int]]:
    """Relative names and synsets of a folder of synset folders."""
    found = []
    for synset, place in numbered(folder, _SYNSET, "n01440764"):
        names = names_in(place, lambda name: Path(name).suffix.lower() in SUFFIXES)
        if not names:
            raise BenchError(f"{place}: class without an image")
        below = place.relative_to(base).as_posix()
        found += [(f"{below}/{name}", synset) for name in names]
    return found


def _solved(folder: Path, solution: Path, base: Path) -> list[tuple[str, int]]:
    """Relative names and synsets of images in one folder, from the competition's solution."""
    expected = "ILSVRC2012_val_00000001,n01440764 ..."
    below = folder.relative_to(base).as_posix()
    there = set(names_in(folder, lambda name: Path(name).suffix.lower() in SUFFIXES))
    found = []
    for match in matches(solution, _SOLUTION, expected):
        if match[1] is None:
            continue
        name = f"{match[1]}.JPEG"
        if name not in there:
            raise BenchError(f"{folder / name}: listed in {solution.name}, but not there")
        found.append((f"{below}/{name}", int(match[2])))
    return sorted(found)
