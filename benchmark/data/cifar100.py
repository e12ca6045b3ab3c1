"""``cifar100``: 100 classes of 32 x 32 colour photographs (Krizhevsky, 2009).

Reads the binary version, as an archive or extracted. The Python version is a pickle, which can run
anything, and is refused. A class is a fine label, a group a coarse one.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.config.reading import build
from benchmark.data.base import Dataset, ImageSet, Ints
from benchmark.data.files import content_hash, root_of
from benchmark.data.templates import each_alone
from benchmark.errors import BenchError

FOLDER, ARCHIVE = "cifar-100-binary", "cifar-100-binary.tar.gz"
SIDE, CHANNELS = 32, 3
RECORD = 2 + CHANNELS * SIDE * SIDE
"""Coarse label, fine label, red, green and blue planes."""
READING = 1
"""Raised by whoever changes how files become pixels; part of every cache key."""

OFFERS = ("seen", "templates", "texts")
"""``test`` has other images of the training classes, as ``seen`` has; each is its own template."""

_FILES = ("train.bin", "test.bin", "fine_label_names.txt", "coarse_label_names.txt")
_MOST_BYTES = 2**29


@dataclass(frozen=True)
class Options:
    """What may be asked for.

    Attributes:
        seed: Decides who is enrolled in which gallery.
    """

    seed: int = 0


def source(data_root: Path | None, **options: object) -> dict[str, object]:
    """What determines the images: options, reading version, the files' hash."""
    root = root_of(data_root, "cifar100")
    place = _place(root)
    files = [place] if place.is_file() else [place / name for name in _FILES]
    return {
        **asdict(build(Options, options, "dataset cifar100")),
        "reading": READING,
        "files": content_hash(root, files),
    }


def load(data_root: Path | None, **options: object) -> Dataset:
    """Read both parts.

    Raises:
        BenchError: For a missing root or file, a broken archive, a label without a name.
    """
    chosen = build(Options, options, "dataset cifar100")
    place = _place(root_of(data_root, "cifar100"))
    read = _archived(place) if place.is_file() else _extracted(place)
    fine = _names(read("fine_label_names.txt"), place)
    coarse = _names(read("coarse_label_names.txt"), place)
    train, train_labels, _ = _part(read, "train.bin", place, len(fine), len(coarse))
    test, labels, groups = _part(read, "test.bin", place, len(fine), len(coarse))
    items = each_alone(test, labels, seed=chosen.seed, group=groups, group_names=coarse)
    return Dataset(
        name="cifar100",
        train=ImageSet(train, train_labels),
        evaluations={"test": items, "seen": items},
        class_names=fine,
        facts={
            **source(data_root, **options),
            "classes": len(fine),
            "train_classes": len(np.unique(train_labels)),
        },
    )


def _place(root: Path) -> Path:
    """The archive, or the folder that holds its files."""
    for place in (root / ARCHIVE, root / FOLDER, root):
        if place.is_file() or (place / "train.bin").is_file():
            return place
    if any(root.glob("cifar-100-python*")):
        raise BenchError(
            f"{root}: expected {ARCHIVE}, the binary version; the Python version is a pickle, "
            "which is never loaded"
        )
    raise BenchError(f"{root}: expected {ARCHIVE}, {FOLDER}/ or train.bin, found neither")


def _archived(path: Path) -> Callable[[str], bytes]:
    """The four files of the archive, read in one go: it is compressed as a whole."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = member.name.rpartition("/")[2]
                file = archive.extractfile(member) if name in _FILES and member.isfile() else None
                if file is not None:
                    if member.size > _MOST_BYTES:
                        raise BenchError(f"{path}: {member.name}: {member.size} bytes is too much")
                    found[name] = file.read()
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise BenchError(f"{path}: archive is broken: {error}") from error

    def read(name: str) -> bytes:
        if name not in found:
            raise BenchError(f"{path}: expected a member {FOLDER}/{name}, found none")
        return found[name]

    return read


def _extracted(folder: Path) -> Callable[[str], bytes]:
    def read(name: str) -> bytes:
        try:
            return (folder / name).read_bytes()
        except OSError as error:
            raise BenchError(f"{folder / name}: cannot be read: {error.strerror}") from error

    return read


def _names(raw: bytes, place: Path) -> tuple[str, ...]:
    """Labels in the order of their numbers; blank lines end the files."""
    try:
        names = tuple(line.strip() for line in raw.decode("ascii").split("\n") if line.strip())
    except UnicodeDecodeError as error:
        raise BenchError(f"{place}: label names: expected ASCII: {error}") from error
    if len(set(names)) < len(names) or not names:
        raise BenchError(f"{place}: label names: expected different ones, got {len(names)}")
    return names


def _part(
    read: Callable[[str], bytes], name: str, place: Path, n_fine: int, n_coarse: int
) -> tuple[NDArray[np.uint8], Ints, Ints]:
    """Images ``[n, 3, 32, 32]``, fine and coarse labels."""
    raw = read(name)
    if not raw or len(raw) % RECORD:
        raise BenchError(
            f"{place}: {name}: expected records of {RECORD} bytes, got {len(raw)} bytes in all"
        )
    rows = np.frombuffer(raw, np.uint8).reshape(-1, RECORD)
    for column, n, kind in ((0, n_coarse, "coarse"), (1, n_fine, "fine")):
        if rows[:, column].max() >= n:
            raise BenchError(
                f"{place}: {name}: expected {kind} labels below {n}, got {rows[:, column].max()}"
            )
    images = np.ascontiguousarray(rows[:, 2:]).reshape(-1, CHANNELS, SIDE, SIDE)
    return images, rows[:, 1].astype(np.int64), rows[:, 0].astype(np.int64)
