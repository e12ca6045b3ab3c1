"""``folder``: anybody's images, from folders named after their classes.

Either ``train/CLASS/...``, ``gallery/CLASS/...`` and ``query/CLASS/...``, or one folder a class
directly under the data root; then two thirds of the classes train, and every image of the others is
both a query and a gallery item. Any size, mode and orientation: the middle square is resized.
Cameras are unknown, so each item counts as its own; groups are unknown, so there is one.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from benchmark.config.checks import Seed
from benchmark.config.files import read_bytes
from benchmark.data.base import Dataset, Evaluation, ImageSet, Ints, Pixels
from benchmark.data.enrolment import single_item_templates
from benchmark.data.files import IMAGES, Files, check_names, readable
from benchmark.data.images import MOST_BYTES, EncodedImages, Side, View
from benchmark.data.readers import FileDatasetReader
from benchmark.data.splits import seeded_order, two_thirds
from benchmark.errors import BenchError

PARTS = ("train", "gallery", "query")

_BESIDE = frozenset((".txt", ".json", ".csv", ".tsv", ".xml", ".yaml", ".yml", ".md", ".html"))
_STRAY = frozenset(("thumbs.db", "desktop.ini"))

Listing = list[tuple[str, Path]]
"""Class and path of each image, class by class."""


@dataclass(frozen=True)
class Folder(FileDatasetReader):
    """Anybody's images; each item is a template of its own."""

    columns: ClassVar = frozenset({"templates"})

    image_size: Annotated[Side, Field(le=1024)] = 64  # of the square in the middle of each image
    channels: Literal[1, 3] = 3  # 3 for colour, 1 for grey
    seed: Seed = 0  # order of the classes, their split, the enrolled items

    def files(self, root: Path) -> list[Path]:
        """Every image."""
        return [path for listing in _layout(root).values() for _, path in listing]

    def read(self, root: Path) -> Dataset:
        """Decode the images and split them; classes are in a seeded order.

        Equal files of one class are one item of ``test``, so that a photograph in both gallery/
        and query/ does not find itself.
        """
        parts = _layout(root)
        facts = {"layout": "one folder a class" if "all" in parts else "train, gallery, query"}
        if "all" in parts:
            parts = self._divided(root, parts["all"])
        train, gallery, query = (parts[name] for name in PARTS)
        if not {name for name, _ in gallery} & {name for name, _ in query}:
            raise BenchError(
                f"{root}: gallery and query have no class in common: gallery has {_some(gallery)}, "
                f"query has {_some(query)}"
            )
        _need_two(root, train, " to train on")
        for part in ("train", "gallery"):
            n = len({name for name, _ in parts[part]})
            if n < 2:
                raise BenchError(f"{root}: {part}: expected at least 2 classes, got {n}")
        names = dict.fromkeys([*self._ordered(train), *self._ordered(gallery + query)])
        index = {name: i for i, name in enumerate(names)}
        images = ImageSet(*self._images(root, index, train))
        items = self._items(root, index, gallery, query)
        return Dataset(self.name, images, {"test": items}, tuple(names), facts)

    def _ordered(self, listing: Listing) -> list[str]:
        names = sorted({name for name, _ in listing})
        return [names[i] for i in seeded_order(names, self.seed)]

    def _divided(self, root: Path, listing: Listing) -> dict[str, Listing]:
        """Two thirds of the classes to train on, the others, two or more, to evaluate."""
        _need_two(root, listing, "")
        names = self._ordered(listing)
        if len(names) < 4:
            raise BenchError(
                f"{root}: expected at least 4 classes to split, got {len(names)}: {_some(listing)}"
            )
        trained = set(names[: two_thirds(len(names))])
        test = [item for item in listing if item[0] not in trained]
        train = [item for item in listing if item[0] in trained]
        return {"train": train, "gallery": test, "query": test}

    def _images(self, root: Path, index: dict[str, int], listing: Listing) -> tuple[Pixels, Ints]:
        """Images by class ``[n, channels, size, size]`` uint8, and their labels ``[n]``."""
        listing = sorted(listing, key=lambda item: index[item[0]])
        files = Files(root, tuple(path.relative_to(root).as_posix() for _, path in listing))
        view = View(self.image_size, self.image_size, self.channels)
        labels = np.array([index[name] for name, _ in listing], np.int64)
        return EncodedImages(files, view)[np.arange(len(files))], labels

    def _items(
        self, root: Path, index: dict[str, int], gallery: Listing, query: Listing
    ) -> Evaluation:
        """The photographs to evaluate, equal files of a class once, by path of the first."""
        keys = {}
        first: dict[tuple[str, str], Path] = {}
        for name, path in sorted(gallery + query, key=lambda item: index[item[0]]):
            with readable(path):
                raw = read_bytes(path, MOST_BYTES)
                key = keys[name, path] = name, hashlib.sha256(raw).hexdigest()
            first.setdefault(key, path)
        listing = [(name, path) for (name, _), path in first.items()]
        _need_two(root, listing, " to evaluate (equal files count once)")
        members = [{keys[item] for item in part} for part in (gallery, query)]
        rows = [np.flatnonzero([key in part for key in first]) for part in members]
        images, labels = self._images(root, index, listing)
        return single_item_templates(images, labels, seed=self.seed, gallery=rows[0], query=rows[1])


def _some(listing: Listing) -> str:
    names = sorted({name for name, _ in listing})
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _need_two(root: Path, listing: Listing, purpose: str) -> None:
    for name, n in Counter(name for name, _ in listing).items():
        if n < 2:
            raise BenchError(f"{root}: class {name}: expected at least 2 images{purpose}, got 1")


def _layout(root: Path) -> dict[str, Listing]:
    """The images of ``train``, ``gallery`` and ``query``, or of ``all``."""
    with readable(root):
        present = [name for name in PARTS if (root / name).is_dir() and _folders(root / name)]
        if not present:
            return {"all": _listed(root)}
        for name in PARTS:
            if name not in present:
                raise BenchError(
                    f"{root}: {name}: no class folder found: expected {name}/CLASS/... "
                    f"beside {' and '.join(present)}"
                )
        return {name: _listed(root / name) for name in PARTS}


def _listed(folder: Path) -> Listing:
    loose = _sifted(p for p in folder.iterdir() if p.suffix.lower() in IMAGES)
    if loose:
        raise BenchError(f"{loose[0]}: expected inside a folder named after its class")
    listing: Listing = []
    for place in _folders(folder):
        check_names([place.name], str(place))
        images = _sifted(place.rglob("*"))
        if not images:
            raise BenchError(f"{place}: class without an image")
        listing += [(place.name, path) for path in images]
    if not listing:
        raise BenchError(
            f"{folder}: no class folder found: expected train/CLASS/..., gallery/CLASS/... and "
            "query/CLASS/..., or CLASS/..."
        )
    return listing


def _folders(folder: Path) -> list[Path]:
    return sorted(f for f in folder.iterdir() if f.is_dir() and not f.name.startswith("."))


def _sifted(paths: Iterable[Path]) -> list[Path]:
    """Images, sorted; hidden files and notes are passed over, anything else is refused."""
    images = []
    for path in sorted(p for p in paths if p.is_file() and not p.name.startswith(".")):
        suffix = path.suffix.lower()
        if suffix in IMAGES:
            images.append(path)
        elif path.name.lower() not in _STRAY and suffix not in _BESIDE:
            raise BenchError(
                f"{path}: unexpected file: expected an image ({' '.join(sorted(IMAGES))})"
            )
    return images
