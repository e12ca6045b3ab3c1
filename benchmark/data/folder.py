"""``folder``: anybody's images, from folders named after their classes.

Either ``train/CLASS/...``, ``gallery/CLASS/...`` and ``query/CLASS/...``, or one folder a class
directly under the data root; then two thirds of the classes train, and every image of the others is
both a query and a gallery item. Any size, mode and orientation: the middle square is resized.
Cameras are unknown, so each item counts as its own; groups are unknown, so there is one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.config.reading import build
from benchmark.config.split_sizes import boundary
from benchmark.data.base import Dataset, Evaluation, ImageSet, Ints
from benchmark.data.decode import SUFFIXES, decode
from benchmark.data.files import content_hash, decoder, root_of
from benchmark.data.seeding import generator, seeded_order
from benchmark.data.templates import enrol
from benchmark.errors import BenchError

TRAIN_SHARE = 2 / 3
PARTS = ("train", "gallery", "query")
READING = 1
"""Raised by whoever changes how files become pixels or splits; part of every cache key."""

_BESIDE = frozenset((".txt", ".json", ".csv", ".tsv", ".xml", ".yaml", ".yml", ".md", ".html"))
_STRAY = frozenset(("thumbs.db", "desktop.ini"))

Classes = dict[str, list[Path]]


@dataclass(frozen=True)
class Options:
    """What may be asked for.

    Attributes:
        image_size: Side of the square that the middle of each image is resized to.
        channels: 3 for colour, 1 for grey.
        seed: Order of the classes, their split, the enrolled items.
    """

    image_size: int = 64
    channels: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if not 8 <= self.image_size <= 1024:
            raise ValueError(f"image_size: expected 8 to 1024, got {self.image_size}")
        if self.channels not in (1, 3):
            raise ValueError(f"channels: expected 1 or 3, got {self.channels}")
        if self.seed < 0:
            raise ValueError(f"seed: expected 0 or more, got {self.seed}")


def source(data_root: Path | None, **options: object) -> dict[str, object]:
    """What determines the images: options, reading version, decoder, the files' hash."""
    root = root_of(data_root, "folder")
    files = [f for classes in _layout(root).values() for found in classes.values() for f in found]
    return {
        **asdict(build(Options, options, "dataset folder")),
        "reading": READING,
        "decoder": decoder(),
        "files": content_hash(root, files),
    }


def load(data_root: Path | None, **options: object) -> Dataset:
    """Decode the images and split them.

    Args:
        data_root: A folder in one of the two layouts.
        **options: See ``Options``.

    Returns:
        Classes in a seeded order; the evaluation ``test``, where equal files of one class are one
        item, so that a photograph in both gallery/ and query/ does not find itself.

    Raises:
        BenchError: For whatever a person may have got wrong, in one line that names it.
    """
    chosen = build(Options, options, "dataset folder")
    root = root_of(data_root, "folder")
    parts = _layout(root)
    if "all" in parts:
        _need_two(root, parts["all"], "")
        train, gallery = _divided(root, parts["all"], chosen.seed)
        query = gallery
    else:
        train, gallery, query = (parts[name] for name in PARTS)
    if not gallery.keys() & query.keys():
        raise BenchError(
            f"{root}: gallery and query have no class in common: gallery has {_some(gallery)}, "
            f"query has {_some(query)}"
        )
    _need_two(root, train, " to train on")
    for name, classes in (("train", train), ("gallery", gallery)):
        if len(classes) < 2:
            raise BenchError(f"{root}: {name}: expected at least 2 classes, got {len(classes)}")
    names = _ordered(train, chosen.seed)
    names += [n for n in _ordered(gallery | query, chosen.seed) if n not in train]
    items = [item for name in names for item in _items(name, gallery, query)]
    evaluated: dict[str, list[Path]] = {}
    for item in items:
        evaluated.setdefault(item.name, []).append(item.path)
    _need_two(root, evaluated, " to evaluate (equal files count once)")
    return Dataset(
        name="folder",
        train=ImageSet(
            _images([path for name in names for path in train.get(name, ())], chosen),
            np.repeat(np.arange(len(names)), [len(train.get(name, ())) for name in names]),
        ),
        evaluations={"test": _evaluation(items, names, chosen)},
        class_names=tuple(names),
        facts={
            **source(data_root, **options),
            "classes": len(names),
            "train_classes": len(train),
            "layout": "one folder a class" if "all" in parts else "train, gallery, query",
        },
    )


OFFERS = ("templates",)
"""What its items carry beside images and classes: each image is a template of its own."""


@dataclass(frozen=True)
class Item:
    """A photograph to be judged on, and whether it is stored, searched with, or both."""

    name: str
    path: Path
    in_gallery: bool
    in_query: bool


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
    loose = _sifted(p for p in folder.iterdir() if p.is_file() and p.suffix.lower() in SUFFIXES)
    if loose:
        raise BenchError(f"{loose[0]}: expected inside a folder named after its class")
    found = {f.name: _sifted(p for p in f.rglob("*") if p.is_file()) for f in _folders(folder)}
    if not found:
        raise BenchError(
            f"{folder}: no class folder found: expected train/CLASS/..., gallery/CLASS/... and "
            "query/CLASS/..., or CLASS/..."
        )
    for name, files in found.items():
        if not files:
            raise BenchError(f"{folder / name}: class without an image")
    return found


def _folders(folder: Path) -> list[Path]:
    return sorted(f for f in folder.iterdir() if f.is_dir() and not f.name.startswith("."))


def _sifted(files: Iterable[Path]) -> list[Path]:
    """Images, sorted; hidden files and notes are passed over, anything else is refused."""
    images = []
    for path in sorted(files):
        suffix = path.suffix.lower()
        if path.name.startswith(".") or path.name.lower() in _STRAY or suffix in _BESIDE:
            continue
        if suffix not in SUFFIXES:
            raise BenchError(
                f"{path}: unexpected file: expected an image ({' '.join(sorted(SUFFIXES))})"
            )
        images.append(path)
    return images


def _need_two(root: Path, classes: Classes, purpose: str) -> None:
    for name, files in classes.items():
        if len(files) < 2:
            raise BenchError(f"{root}: class {name}: expected at least 2 images{purpose}, got 1")


def _some(classes: Classes) -> str:
    names = sorted(classes)
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _ordered(classes: Classes, seed: int) -> list[str]:
    names = sorted(classes)
    return [names[i] for i in seeded_order(names, seed)]


def _divided(root: Path, classes: Classes, seed: int) -> tuple[Classes, Classes]:
    """Two thirds of the classes to train on, the others, two or more, to evaluate."""
    n = len(classes)
    if n < 4:
        raise BenchError(f"{root}: expected at least 4 classes to split, got {n}: {_some(classes)}")
    names = _ordered(classes, seed)
    n_train = min(boundary(TRAIN_SHARE, n), n - 2)
    train, test = names[:n_train], names[n_train:]
    return {name: classes[name] for name in train}, {name: classes[name] for name in test}


def _items(name: str, gallery: Classes, query: Classes) -> list[Item]:
    """A class's photographs, equal files once, by path of the first."""
    paths: dict[str, Path] = {}
    stored, asked = (
        {_content(path, paths) for path in part.get(name, ())} for part in (gallery, query)
    )
    return [Item(name, path, key in stored, key in asked) for key, path in paths.items()]


def _content(path: Path, paths: dict[str, Path]) -> str:
    try:
        key = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BenchError(f"{path}: cannot be read: {error.strerror}") from error
    paths.setdefault(key, path)
    return key


def _images(paths: Sequence[Path], chosen: Options) -> NDArray[np.uint8]:
    """``[n, channels, size, size]`` uint8, decoded in parallel."""
    size = chosen.image_size
    images = np.empty((len(paths), chosen.channels, size, size), np.uint8)

    def fill(row: int) -> None:
        images[row] = decode(paths[row], size, chosen.channels)

    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        try:
            for _ in pool.map(fill, range(len(paths))):
                pass
        except BenchError:
            pool.shutdown(cancel_futures=True)
            raise
    return images


def _evaluation(items: Sequence[Item], names: list[str], chosen: Options) -> Evaluation:
    index = {name: i for i, name in enumerate(names)}
    labels: Ints = np.array([index[item.name] for item in items], np.int64)
    rows = np.arange(len(items))
    gallery = np.flatnonzero([item.in_gallery for item in items])
    shuffled = generator(chosen.seed, 0).permutation(gallery)
    subjects, first = np.unique(labels[shuffled], return_index=True)
    probes, galleries = enrol(
        subjects, template_class=labels, enrolled=shuffled[first], seed=chosen.seed
    )
    return Evaluation(
        images=_images([item.path for item in items], chosen),
        labels=labels,
        ids=rows,
        query=np.flatnonzero([item.in_query for item in items]),
        gallery=gallery,
        camera=rows,
        media=rows,
        group=np.zeros(len(items), np.int64),
        template=rows,
        probes=probes,
        galleries=galleries,
        group_names=("all",),
    )
