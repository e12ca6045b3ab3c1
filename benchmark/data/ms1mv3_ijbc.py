"""``ms1mv3_ijbc``: trained on MS1MV3, judged on IJB-C (BCT, MixBCT).

Below the data root: ``train.rec`` and ``train.idx`` (InsightFace's packing, also inside a folder
``ms1m-retinaface-t1``), or one folder a person named by its number; and ``IJBC`` with
``loose_crop`` and ``meta``. People are in the order of their numbers.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmark.config.reading import build
from benchmark.data import ijbc
from benchmark.data.base import Dataset, Images, ImageSet, Ints
from benchmark.data.decode import SUFFIXES, View
from benchmark.data.encoded import Records, images_of, listed
from benchmark.data.files import content_hash, decoder, names_in, numbered, root_of
from benchmark.data.recordio import read_faces
from benchmark.errors import BenchError

READING = 1
"""Raised by whoever changes how files become pixels or classes; part of every cache key."""

OFFERS = ("templates",)
"""What its items carry beside images and classes."""

UNSEEN = ("test",)
"""Evaluation sets without a class that is trained on."""

_FOLDERS = (".", "ms1m-retinaface-t1", "ms1mv3", "MS1MV3", "train")
_PERSON = re.compile(r"(?:\d+_)?(\d+)")


@dataclass(frozen=True)
class Options:
    """What may be asked for.

    Attributes:
        image_size: Side of an aligned face, pixels.
    """

    image_size: int = 112


def source(data_root: Path | None, **options: object) -> dict[str, object]:
    """What determines the images: options, reading version, decoder, the files' hash."""
    root = root_of(data_root, "ms1mv3_ijbc")
    rec, folder = _training(root)
    files = [rec, rec.with_suffix(".idx")] if rec is not None else _files(root, folder)[0]
    files = [*files, *ijbc.files_of(ijbc.folder_of(root, "ms1mv3_ijbc"))]
    return {
        **asdict(build(Options, options, "dataset ms1mv3_ijbc")),
        "reading": READING,
        "decoder": decoder(),
        "files": content_hash(root, files),
    }


def load(data_root: Path | None, **options: object) -> Dataset:
    """List the faces; large sets are decoded while they are used.

    Raises:
        BenchError: For a missing file, a record or a line that cannot be.
    """
    chosen = build(Options, options, "dataset ms1mv3_ijbc")
    root = root_of(data_root, "ms1mv3_ijbc")
    images, person = _faces(root, chosen.image_size)
    people, labels = np.unique(person, return_inverse=True)
    judged, subjects = ijbc.evaluation(
        ijbc.folder_of(root, "ms1mv3_ijbc"), chosen.image_size, len(people)
    )
    return Dataset(
        name="ms1mv3_ijbc",
        train=ImageSet(images, labels.astype(np.int64)),
        evaluations={"test": judged},
        class_names=(*(f"person {p}" for p in people), *subjects),
        facts={
            **source(data_root, **options),
            "classes": len(people) + len(subjects),
            "train_classes": len(people),
            "pairs": 0 if judged.pairs is None else len(judged.pairs),
        },
    )


def _training(root: Path) -> tuple[Path | None, Path]:
    """The file of records, or else the folder of people's folders."""
    for name in _FOLDERS:
        rec = root / name / "train.rec"
        if rec.is_file():
            if not rec.with_suffix(".idx").is_file():
                raise BenchError(f"{rec}: expected train.idx beside it")
            return rec, rec.parent
    for name in _FOLDERS[1:]:
        if (root / name).is_dir():
            return None, root / name
    raise BenchError(
        f"dataset ms1mv3_ijbc: {root}: expected train.rec and train.idx, or folders of people in "
        f"{' or '.join(_FOLDERS[1:])}"
    )


def _faces(root: Path, size: int) -> tuple[Images, Ints]:
    rec, folder = _training(root)
    view = View(size, size, fit="whole")
    if rec is not None:
        found = read_faces(rec, rec.with_suffix(".idx"))
        return images_of(Records(rec, found.places), view), found.person
    paths, person = _files(root, folder)
    names = [path.relative_to(root).as_posix() for path in paths]
    return images_of(listed(root, names), view), np.array(person, np.int64)


def _files(root: Path, folder: Path) -> tuple[list[Path], list[int]]:
    """Images and people, both in the order of their numbers."""
    paths: list[Path] = []
    person: list[int] = []
    for number, place in numbered(folder, _PERSON, "17, or 0_17"):
        names = names_in(place, lambda name: Path(name).suffix.lower() in SUFFIXES)
        if not names:
            raise BenchError(f"{place.relative_to(root)}: person without an image")
        paths += [place / name for name in names]
        person += [number] * len(names)
    return paths, person
