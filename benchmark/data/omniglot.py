"""``omniglot``: hand-drawn characters of many alphabets, 20 writers each (Lake et al. 2015).

Reads the original archives without extracting them, or extracted folders. A class is a character,
a camera a writer, a group an alphabet, a template two writers' drawings of a character. A character
that occurs in several archives is one class.
"""

import itertools
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import PIL

from benchmark.config.checks import Seed
from benchmark.config.declarations import Download, EvaluationSet, Origin
from benchmark.config.files import file_size, read_bytes
from benchmark.data.base import Dataset, Evaluation, ImageSet, Ints, Pixels
from benchmark.data.enrolment import templates_of_views
from benchmark.data.files import readable
from benchmark.data.images import View, decode_view
from benchmark.data.readers import FileDatasetReader
from benchmark.data.splits import generator, seeded_order, two_thirds
from benchmark.errors import BenchError

ARCHIVES = (
    "images_background", "images_evaluation", "images_background_small1", "images_background_small2"
)  # fmt: skip
SIZE = 32
SEEN_WRITERS = 4
WRITERS_PER_TEMPLATE = 2

_ADDRESS = "https://github.com/brendenlake/omniglot"
_FILES = (
    (9_464_212, "ad41ab679c8b5d90b271ef46be6987cc81211774a695c29dcc5367b2b26ee640"),
    (6_462_886, "1f61a8f3366785b057fc117d9228e78a16e3d976c8953b2a10fcc74cf0609cee"),
    (1_319_022, "f38eb80f801274ac2b4dff5b24289016bfaba4a7d5bb50deebf27104ad6cb8a4"),
    (1_580_917, "3ccaa407515a8778e5d0861875af38b17e418f301ad5bb3b5a6b65d901a41c7f"),
)
"""Bytes and SHA-256 of the archives."""

_NAME = re.compile(r"(?:images_\w+/)?([^/\\]+)/(character\d{2,})/(\d{4,})_(\d{2})\.png")
_STRAY = re.compile(r"(?:.*/)?(?:\.[^/]*|__MACOSX/.*|Thumbs\.db)")
_MOST_BYTES = 2**20
_MOST_ARCHIVE = 2**29
_MOST_MEMBERS = 200_000
_MOST_PIXELS = 2**20
_VIEW = View(SIZE, SIZE, channels=1, fit="whole")

Drawings = dict[tuple[str, str, int], Pixels]
"""Alphabet, character and writer -> ``[32, 32]`` uint8."""


@dataclass(frozen=True)
class Omniglot(FileDatasetReader):
    """Hand-drawn characters."""

    channels: ClassVar = 1

    columns: ClassVar = frozenset({"cameras", "templates", "groups"})
    pictures: ClassVar = True  # MIT licence
    stores_queries: ClassVar = True
    evaluation_sets: ClassVar = {"test": EvaluationSet(unseen=True), "seen": EvaluationSet()}
    origin: ClassVar = Origin(
        _ADDRESS,
        "MIT License, Copyright (c) 2015 Brenden Lake",
        downloads=tuple(
            Download(
                f"{stem}.zip",
                f"{_ADDRESS}/raw/master/python/{stem}.zip",
                sha256,
                n_bytes,
                part_of=f"{ARCHIVES[0]}.zip" if "small" in stem else "",
            )
            for stem, (n_bytes, sha256) in zip(ARCHIVES, _FILES, strict=True)
        ),
        counts={"classes": 1_623, "groups": 50, "cameras": 20},
        source="Lake et al., 2015",
    )

    seed: Seed = 0  # order of the classes, their split, the writers held out, the templates

    def files(self, root: Path) -> list[Path]:
        """The archives, or everything in the folders they extract to."""
        places = [place.rglob("*") if place.is_dir() else [place] for place in _places(root)]
        return [path for paths in places for path in paths if path.is_file()]

    @property
    def decoder(self) -> str:
        """Pillow alone: drawings are PNG."""
        return f"pillow {PIL.__version__}"

    def class_group(self, class_name: str) -> str:
        """The alphabet of a class."""
        return class_name.rpartition(" ")[0]

    def read(self, root: Path) -> Dataset:
        """Read the drawings and split them.

        Two thirds of the classes train, without four writers; ``test`` has the other classes by
        all writers, ``seen`` the training classes by the four.
        """
        drawings = _drawings(root)
        classes, writers = _complete(drawings, root)
        classes = [classes[i] for i in seeded_order([" ".join(key) for key in classes], self.seed)]
        pixels = np.array([[drawings[(*key, writer)] for writer in writers] for key in classes])
        train, test = np.split(np.arange(len(classes)), [two_thirds(len(classes))])
        everyone = np.arange(len(writers))
        held = np.sort(generator(self.seed, 0).permutation(everyone)[:SEEN_WRITERS])
        kept = np.setdiff1d(everyone, held)
        train_set = ImageSet(_rows(pixels, train, kept), np.repeat(train, len(kept)))
        names = tuple(" ".join(key) for key in classes)
        evaluations = {
            "test": self._items(pixels, names, test, everyone),
            "seen": self._items(pixels, names, train, held),
        }
        facts = {
            "writers": len(writers),
            "seen_writers": [writers[i] for i in held],
            "archives": [place.name for place in _places(root)],
        }
        return Dataset(self.name, train_set, evaluations, names, facts)

    def _items(
        self, pixels: Pixels, class_names: tuple[str, ...], classes: Ints, writers: Ints
    ) -> Evaluation:
        alphabets = [self.class_group(class_names[c]) for c in classes]
        names, group = np.unique(alphabets, return_inverse=True)
        n, rng = len(writers), generator(self.seed, 1, len(writers))
        return Evaluation.of(
            _rows(pixels, classes, writers), np.repeat(classes, n),
            camera=np.tile(writers, len(classes)), group=np.repeat(group, n),
            group_names=tuple(names.tolist()),
            **templates_of_views(classes, n, WRITERS_PER_TEMPLATE, rng, self.seed),
        )  # fmt: skip


def _rows(pixels: Pixels, classes: Ints, writers: Ints) -> Pixels:
    """``[n_class * n_writer, 1, 32, 32]`` uint8, class by class."""
    return np.ascontiguousarray(pixels[np.ix_(classes, writers)]).reshape(-1, 1, SIZE, SIZE)


def _complete(drawings: Drawings, root: Path) -> tuple[list[tuple[str, str]], list[int]]:
    """Classes and writers, sorted; every class must have been drawn by every writer."""
    classes = sorted({key[:2] for key in drawings})
    writers = sorted({writer for *_, writer in drawings})
    for key, writer in itertools.product(classes, writers):
        if (*key, writer) not in drawings:
            raise BenchError(
                f"{root}: class {'/'.join(key)}: expected {len(writers)} writers as in the "
                f"other classes, writer {writer:02d} is missing"
            )
    if len(writers) < SEEN_WRITERS + 2 or len(classes) < 4:
        raise BenchError(
            f"{root}: expected at least 4 classes by {SEEN_WRITERS + 2} writers, "
            f"got {len(classes)} by {len(writers)}"
        )
    return classes, writers


def _places(root: Path) -> list[Path]:
    """Archives and, where there is no archive, the folders they extract to; or else the root."""
    archives = [root / f"{stem}.zip" for stem in ARCHIVES]
    places = [p if p.exists() else p.with_suffix("") for p in archives]
    places = [place for place in places if place.exists()]
    if not places and not any(root.glob("*/character*")):
        raise BenchError(
            f"{root}: no class folder found: expected {ARCHIVES[0]}.zip or another of the original "
            "archives, or folders ALPHABET/characterNN/NNNN_WW.png"
        )
    return places or [root]


def _drawings(root: Path) -> Drawings:
    """Every drawing once."""
    drawings: Drawings = {}
    for place in _places(root):
        for name, raw in _zipped(place) if place.suffix == ".zip" else _extracted(place):
            where = f"{place}: {name}"
            match = _NAME.fullmatch(name)
            if match is None or match[1] in (".", ".."):
                raise BenchError(
                    f"{where}: unexpected name, expected ALPHABET/characterNN/NNNN_WW.png"
                )
            drawing = decode_view(raw, _VIEW, where, most_pixels=_MOST_PIXELS)[0]
            earlier = drawings.setdefault((match[1], match[2], int(match[4])), drawing)
            if not np.array_equal(earlier, drawing):
                raise BenchError(f"{where}: differs from the same writer's drawing read earlier")
    return drawings


def _zipped(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of an archive's files; nothing is written to disk."""
    file_size(path, _MOST_ARCHIVE)
    with readable(path), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if len(members) > _MOST_MEMBERS or size > _MOST_ARCHIVE:
            most = f"{_MOST_MEMBERS} members of {_MOST_ARCHIVE} bytes"
            raise BenchError(f"{path}: expected at most {most}, got {len(members)} of {size}")
        for member in sorted(members, key=lambda m: m.filename):
            if member.is_dir() or _STRAY.fullmatch(member.filename):
                continue
            if member.file_size > _MOST_BYTES:
                raise BenchError(
                    f"{path}: {member.filename}: expected at most {_MOST_BYTES} bytes, "
                    f"got {member.file_size}"
                )
            yield member.filename, archive.read(member)


def _extracted(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Relative names and bytes of a folder's drawings."""
    with readable(folder):
        for path in sorted(folder.glob("*/character*/*")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and not _STRAY.fullmatch(name):
                yield name, read_bytes(path, _MOST_BYTES)
