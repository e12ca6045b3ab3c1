"""``folder``: anybody's images, from folders named after their classes.

Either ``train/CLASS/...``, ``gallery/CLASS/...`` and ``query/CLASS/...``, or one folder a class
directly under the data root; then two thirds of the classes train, and every image of the others is
both a query and a gallery item. Any size, mode and orientation: the middle square is resized.
Cameras are unknown, so each item counts as its own; groups are unknown, so there is one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmark.config.checks import in_range
from benchmark.data.base import Dataset, Evaluation, ImageSet, Ints
from benchmark.data.decode import View
from benchmark.data.encoded import EncodedImages
from benchmark.data.enrolment import each_alone
from benchmark.data.files import IMAGES, Files
from benchmark.data.readers import FileDatasetReader
from benchmark.data.splits import seeded_order, two_thirds
from benchmark.errors import BenchError

PARTS = ("train", "gallery", "query")

_BESIDE = frozenset((".txt", ".json", ".csv", ".tsv", ".xml", ".yaml", ".yml", ".md", ".html"))
_STRAY = frozenset(("thumbs.db", "desktop.ini"))

Classes = dict[str, list[Path]]


@dataclass(frozen=True)
class Folder(FileDatasetReader):
    """Anybody's images; each item is a template of its own.

    Attributes:
        image_size: Side of the square that the middle of each image is resized to.
        channels: 3 for colour, 1 for grey.
        seed: Order of the classes, their split, the enrolled items.
    """

    columns: ClassVar = frozenset({"templates"})

    image_size: int = 64
    channels: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        in_range(self, image_size="[8, 1024]", seed="[0, inf)")
        if self.channels not in (1, 3):
            raise ValueError(f"channels: expected 1 or 3, got {self.channels}")

    def files(self, root: Path) -> list[Path]:
        """Every image."""
        parts = _layout(root).values()
        return [path for classes in parts for paths in classes.values() for path in paths]

    def read(self, root: Path) -> Dataset:
        """Decode the images and split them.

        Args:
            root: A folder in one of the two layouts.

        Returns:
            Classes in a seeded order; the evaluation set ``test``, where equal files of one class
            are one item, so that a photograph in both gallery/ and query/ does not find itself.

        Raises:
            BenchError: For whatever a person may have got wrong, in one line that names it.
        """
        parts = _layout(root)
        layout = "one folder a class" if "all" in parts else "train, gallery, query"
        if "all" in parts:
            _need_two(root, _counts(parts["all"]), "")
            parts = self._divided(root, parts["all"])
        train, gallery, query = (parts[name] for name in PARTS)
        if not gallery.keys() & query.keys():
            raise BenchError(
                f"{root}: gallery and query have no class in common: gallery has {_some(gallery)}, "
                f"query has {_some(query)}"
            )
        _need_two(root, _counts(train), " to train on")
        for name in ("train", "gallery"):
            if len(parts[name]) < 2:
                n = len(parts[name])
                raise BenchError(f"{root}: {name}: expected at least 2 classes, got {n}")
        names = self._ordered(train)
        names += [name for name in self._ordered(gallery | query) if name not in train]
        paths = [path for name in names for path in train.get(name, ())]
        labels = np.repeat(np.arange(len(names)), [len(train.get(name, ())) for name in names])
        items = self._items(root, names, gallery, query)
        return Dataset(
            self.name, ImageSet(self._images(root, paths), labels), {"test": items}, tuple(names),
            facts={"layout": layout},
        )  # fmt: skip

    def _ordered(self, classes: Classes) -> list[str]:
        names = sorted(classes)
        return [names[i] for i in seeded_order(names, self.seed)]

    def _divided(self, root: Path, classes: Classes) -> dict[str, Classes]:
        """Two thirds of the classes to train on, the others, two or more, to evaluate."""
        n = len(classes)
        if n < 4:
            raise BenchError(
                f"{root}: expected at least 4 classes to split, got {n}: {_some(classes)}"
            )
        names = self._ordered(classes)
        train = {name: classes[name] for name in names[: two_thirds(n)]}
        test = {name: classes[name] for name in names[two_thirds(n) :]}
        return {"train": train, "gallery": test, "query": test}

    def _images(self, root: Path, paths: Iterable[Path]) -> NDArray[np.uint8]:
        """``[n, channels, size, size]`` uint8."""
        files = Files(root, tuple(path.relative_to(root).as_posix() for path in paths))
        view = View(self.image_size, self.image_size, self.channels)
        return EncodedImages(files, view).decoded()

    def _items(self, root: Path, names: list[str], gallery: Classes, query: Classes) -> Evaluation:
        """The photographs to evaluate, equal files of a class once, by path of the first."""
        paths: dict[tuple[int, str], Path] = {}
        members: list[set[tuple[int, str]]] = [set(), set()]
        for label, name in enumerate(names):
            for part, classes in zip(members, (gallery, query), strict=True):
                for path in classes.get(name, ()):
                    key = label, _digest(path)
                    paths.setdefault(key, path)
                    part.add(key)
        counts = Counter(names[label] for label, _ in paths)
        _need_two(root, counts, " to evaluate (equal files count once)")
        labels: Ints = np.array([label for label, _ in paths], np.int64)
        stored, searched = (np.flatnonzero([key in part for key in paths]) for part in members)
        images = self._images(root, paths.values())
        return each_alone(images, labels, seed=self.seed, gallery=stored, query=searched)


def _layout(root: Path) -> dict[str, Classes]:
    """The classes of ``train``, ``gallery`` and ``query``, or of ``all``."""
    try:
        present = [name for name in PARTS if (root / name).is_dir() and _folders(root / name)]
        if not present:
            return {"all": _classes(root)}
        for name in PARTS:
            if name not in present:
                raise BenchError(
                    f"{root}: {name}: no class folder found: expected {name}/CLASS/... "
                    f"beside {' and '.join(present)}"
                )
        return {name: _classes(root / name) for name in PARTS}
    except OSError as error:
        raise BenchError(f"{error.filename}: cannot be read: {error.strerror}") from error


def _classes(folder: Path) -> Classes:
    loose = _sifted(p for p in folder.iterdir() if p.is_file() and p.suffix.lower() in IMAGES)
    if loose:
        raise BenchError(f"{loose[0]}: expected inside a folder named after its class")
    classes = {f.name: _sifted(p for p in f.rglob("*") if p.is_file()) for f in _folders(folder)}
    if not classes:
        raise BenchError(
            f"{folder}: no class folder found: expected train/CLASS/..., gallery/CLASS/... and "
            "query/CLASS/..., or CLASS/..."
        )
    for name, paths in classes.items():
        if not paths:
            raise BenchError(f"{folder / name}: class without an image")
    return classes


def _folders(folder: Path) -> list[Path]:
    return sorted(f for f in folder.iterdir() if f.is_dir() and not f.name.startswith("."))


def _sifted(paths: Iterable[Path]) -> list[Path]:
    """Images, sorted; hidden files and notes are passed over, anything else is refused."""
    images = []
    for path in sorted(paths):
        suffix = path.suffix.lower()
        if path.name.startswith(".") or path.name.lower() in _STRAY or suffix in _BESIDE:
            continue
        if suffix not in IMAGES:
            raise BenchError(
                f"{path}: unexpected file: expected an image ({' '.join(sorted(IMAGES))})"
            )
        images.append(path)
    return images


def _counts(classes: Classes) -> dict[str, int]:
    return {name: len(paths) for name, paths in classes.items()}


def _need_two(root: Path, counts: Mapping[str, int], purpose: str) -> None:
    for name, n in counts.items():
        if n < 2:
            raise BenchError(f"{root}: class {name}: expected at least 2 images{purpose}, got 1")


def _some(classes: Classes) -> str:
    names = sorted(classes)
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BenchError(f"{path}: cannot be read: {error.strerror}") from error
