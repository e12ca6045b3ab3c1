"""``cifar100``: 100 classes of 32 x 32 colour photographs (Krizhevsky, 2009).

Reads the binary version, as an archive or extracted. The Python version is a pickle, which can run
anything, and is refused. A class is a fine label, a group a coarse one.
"""

import gzip
import hashlib
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmark.config.checks import Seed
from benchmark.config.declarations import Download, Origin
from benchmark.config.files import digest, read_bytes
from benchmark.data.base import Dataset, ImageSet, Ints, Pixels
from benchmark.data.enrolment import single_item_templates
from benchmark.data.files import readable
from benchmark.data.readers import HeldOutDatasetReader
from benchmark.data.splits import divided_classes, place_in_class
from benchmark.errors import BenchError

FOLDER, ARCHIVE = "cifar-100-binary", "cifar-100-binary.tar.gz"
SIDE, CHANNELS = 32, 3
RECORD = 2 + CHANNELS * SIDE * SIDE
"""Coarse label, fine label, red, green and blue planes."""

_FILES = ("train.bin", "test.bin", "fine_label_names.txt", "coarse_label_names.txt")
_MOST_BYTES = 2**28
_MOST_NAMES = 2**16  # bytes; a label is a byte, so there are at most 256 names
_MOST_MEMBERS = 1000
_Part = tuple[Pixels, Ints, Ints]
"""Images, fine and coarse labels."""


@dataclass(frozen=True)
class Cifar100(HeldOutDatasetReader):
    """Small photographs, each a template; ``test`` and ``seen`` are both the test set.

    With classes held out ``test`` has all their images, ``seen`` the test images of the others.
    """

    columns: ClassVar = frozenset({"templates", "texts"})
    stores_queries: ClassVar = True
    decoder: ClassVar = ""
    origin: ClassVar = Origin(
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        downloads=(Download(
            ARCHIVE, f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}",
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec", 168_513_733,
        ),),
        counts={
            "training classes": 100, "training images": 50_000, "smallest training class": 500,
            "largest training class": 500, "test classes": 100, "test images": 10_000,
            "test groups": 20,
        },
        source="Krizhevsky, 2009",
    )  # fmt: skip

    # decides which items are enrolled, in which gallery, and which classes are held out
    seed: Seed = 0

    def files(self, root: Path) -> list[Path]:
        """The archive, or its four files."""
        place = _place(root)
        return [place] if place.is_file() else [place / name for name in _FILES]

    def files_hash(self, root: Path) -> str:
        """SHA-256 over the four files: however they are packed, and whenever, they are the same."""
        place = _place(root)
        with readable(place):
            stats = [path.stat() for path in self.files(root)]
        return _files_hash(place, tuple((stat.st_size, stat.st_mtime_ns) for stat in stats))

    def read(self, root: Path) -> Dataset:
        """Read both parts."""
        place = _place(root)
        files = _contents(place)
        fine, coarse = (_names(files[name], place) for name in _FILES[2:])
        train, test = (
            _part(files[name], f"{place}: {name}", len(fine), len(coarse)) for name in _FILES[:2]
        )
        fine, train, evaluated = self._split(fine, train, test)
        items = {
            part: single_item_templates(
                *evaluated[part][:2], seed=self.seed, group=evaluated[part][2], group_names=coarse
            )
            for part in ("test", "seen")
        }
        return Dataset(self.name, ImageSet(*train[:2]), items, fine)

    def _split(
        self, names: tuple[str, ...], train: _Part, test: _Part
    ) -> tuple[tuple[str, ...], _Part, dict[str, _Part]]:
        """Names of the classes, what trains, and what is evaluated.

        Classes keep their order but for those held out, which come last.
        """
        kept, held = divided_classes(names, self.seed, self.held_out, self.tuning)
        if self.tuning:
            train, test = _divided(*train)
        classes = np.concatenate([kept, held])
        evaluated = {"seen": _of_classes(test, classes, 0, len(kept))}
        evaluated["test"] = evaluated["seen"]
        if len(held):
            parts = [_of_classes(part, classes, len(kept), len(classes)) for part in (train, test)]
            images, fine, coarse = (np.concatenate(column) for column in zip(*parts, strict=True))
            evaluated["test"] = images, fine, coarse
        train = _of_classes(train, classes, 0, len(kept))
        return tuple(names[c] for c in classes), train, evaluated


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
    raise BenchError(f"{root}: expected {ARCHIVE}, {FOLDER}/ or train.bin, found none")


@cache
def _files_hash(place: Path, stats: tuple[tuple[int, int], ...]) -> str:  # noqa: ARG001
    """Hash of what lies there, for as long as sizes and times are those of ``stats``."""
    files = _contents(place)
    return digest({name: hashlib.sha256(files[name]).hexdigest() for name in _FILES})


def _contents(place: Path) -> dict[str, bytes]:
    """The four files by name, of the archive or of their folder."""
    with readable(place):
        if place.is_file():
            return _unpacked(place)
        return {name: read_bytes(place / name, _MOST_BYTES) for name in _FILES}


def _unpacked(path: Path) -> dict[str, bytes]:
    """The four files of the archive, read in one go: it is compressed as a whole."""
    files: dict[str, bytes] = {}
    with gzip.open(path) as unzipped:
        stream: Any = _Limited(unzipped, f"{path}: ")
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for number, member in enumerate(archive):
                if number > _MOST_MEMBERS or member.size < 0:
                    raise BenchError(f"{path}: expected at most {_MOST_MEMBERS} members")
                name = member.name.rpartition("/")[2]
                file = archive.extractfile(member) if name in _FILES and member.isreg() else None
                if file is not None:
                    files[name] = file.read()
    for name in _FILES:
        if name not in files:
            raise BenchError(f"{path}: expected a member {FOLDER}/{name}, found none")
    return files


class _Limited:
    """A stream that ends with an error where a small archive unpacks to a large one."""

    def __init__(self, stream: gzip.GzipFile, where: str) -> None:
        self.stream, self.where, self.left = stream, where, _MOST_BYTES

    def read(self, size: int) -> bytes:
        """The next bytes."""
        self.left -= size
        if self.left < 0:
            raise BenchError(f"{self.where}expected at most {_MOST_BYTES} unpacked bytes")
        return self.stream.read(size)


def _names(raw: bytes, place: Path) -> tuple[str, ...]:
    """Labels in the order of their numbers; blank lines end the files."""
    if len(raw) > _MOST_NAMES:
        raise BenchError(f"{place}: label names: expected at most {_MOST_NAMES} bytes")
    with readable(place):
        names = tuple(n.strip() for n in raw.decode("ascii").splitlines() if n.strip())
    if len(set(names)) < len(names) or not names:
        raise BenchError(f"{place}: label names: expected different ones, got {len(names)}")
    return names


def _divided(images: Pixels, fine: Ints, coarse: Ints) -> tuple[_Part, _Part]:
    """The first four fifths of each class's images, and the last; at least one each."""
    _, label, count = np.unique(fine, return_inverse=True, return_counts=True)
    last = place_in_class(label, count, None) >= (count - np.maximum(1, count // 5))[label]
    kept, held = ((images[rows], fine[rows], coarse[rows]) for rows in (~last, last))
    return kept, held


def _of_classes(part: _Part, classes: Ints, low: int, high: int) -> _Part:
    """Items of ``classes[low:high]``, labelled by their place in ``classes``."""
    images, fine, coarse = part
    number = np.full(max(fine.max(), classes.max()) + 1, -1)
    number[classes] = np.arange(len(classes))
    labels = number[fine]
    rows = (low <= labels) & (labels < high)
    return images[rows], labels[rows], coarse[rows]


def _part(raw: bytes, where: str, n_fine: int, n_coarse: int) -> _Part:
    """Images ``[n, 3, 32, 32]``, fine and coarse labels."""
    if not raw or len(raw) % RECORD:
        raise BenchError(f"{where}: expected records of {RECORD} bytes, got {len(raw)} in all")
    rows = np.frombuffer(raw, np.uint8).reshape(-1, RECORD)
    coarse, fine = rows[:, :2].astype(np.int64).T
    for labels, n, kind in ((coarse, n_coarse, "coarse"), (fine, n_fine, "fine")):
        if labels.max() >= n:
            raise BenchError(f"{where}: expected {kind} labels below {n}, got {labels.max()}")
    return np.ascontiguousarray(rows[:, 2:]).reshape(-1, CHANNELS, SIDE, SIDE), fine, coarse
