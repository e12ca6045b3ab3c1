"""Lists beside a dataset: the order that its classes count in, and captions of its images."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmark.data.base import Dataset, ImageSet
from benchmark.data.files import csv_lines, read_text
from benchmark.errors import BenchError, nearest

Items = TypeVar("Items", bound=ImageSet)
AS_TEXT = "as-text"
_MOST_ORDER, _MOST_CAPTIONS = 2**24, 2**30
_LONGEST_CAPTION = 10_000
_HEAD = ["file", "caption"]


def below(root: Path, name: str, option: str) -> Path:
    """A file below the data root; BenchError if it is elsewhere, or not there."""
    path = root / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise BenchError(f"data.{option}: expected a path below the data root, got '{name}'")
    if not path.is_file():
        raise BenchError(f"data.{option}: {path} does not exist")
    return path


def listed_order(path: Path, keys: Sequence[str]) -> list[int]:
    """Places of classes by a list that has each of them once, a line each.

    Raises:
        BenchError: If one is missing, unknown or there twice.
    """
    places = {key: i for i, key in enumerate(keys)}
    order: dict[int, None] = {}
    for number, line in enumerate(read_text(path, _MOST_ORDER).splitlines(), 1):
        name = line.strip()
        if not name:
            continue
        if name not in places:
            raise BenchError(f"{path}:{number}: unknown class '{name:.80}'{nearest(name, keys)}")
        if places[name] in order:
            raise BenchError(f"{path}:{number}: class '{name:.80}' comes twice")
        order[places[name]] = None
    missing = [key for i, key in enumerate(keys) if i not in order]
    if missing:
        raise BenchError(
            f"{path}: expected all {len(keys)} classes, '{missing[0]:.80}' is missing"
            + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
        )
    return list(order)


def in_order(dataset: Dataset, order: Sequence[int]) -> Dataset:
    """A dataset whose first classes, those of training, count in another order."""
    n = len(dataset.class_names)
    places = np.concatenate([np.asarray(order, np.int64), np.arange(len(order), n)])
    number = np.empty(n, np.int64)
    number[places] = np.arange(n)

    def moved(items: Items) -> Items:
        # Junk, which is of no class, stays so.
        labels = np.where(items.labels < 0, items.labels, number[items.labels])
        return dataclasses.replace(items, labels=labels)

    return dataclasses.replace(
        dataset, train=moved(dataset.train),
        evaluations={name: moved(items) for name, items in dataset.evaluations.items()},
        class_names=tuple(dataset.class_names[i] for i in places.tolist()),
        class_groups=tuple(dataset.class_groups[i] for i in places.tolist())
        if dataset.class_groups
        else (),
    )  # fmt: skip


def read_captions(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The caption of each image, from a CSV table ``file,caption``.

    A file is named by its path below the data root, or by its name alone.

    Raises:
        BenchError: Naming the line that is not as it should be, or an image without a caption.
    """
    found: dict[str, str] = {}
    lines = csv_lines(path, _MOST_CAPTIONS)
    if next(lines, (1, []))[1] != _HEAD:
        raise BenchError(f"{path}:1: expected the header file,caption")
    for number, row in lines:
        where = f"{path}:{number}"
        if len(row) != len(_HEAD):
            raise BenchError(f"{where}: expected a file and its caption, got {len(row)} cells")
        caption = " ".join(row[1].split())
        if not caption.isprintable() or not 0 < len(caption) <= _LONGEST_CAPTION:
            raise BenchError(f"{where}: expected a caption of printable letters")
        if found.setdefault(row[0], caption) != caption:
            raise BenchError(f"{where}: '{row[0]:.80}' has two captions")
    captions = []
    for name in names:
        own = found.get(name) or found.get(name.rpartition("/")[2])
        if own is None:
            raise BenchError(f"{path}: expected a caption of every image, '{name}' has none")
        captions.append(own)
    return tuple(captions)
