"""``vggface2``: 3.31 million photographs of 9,131 people (Cao et al., 2018).

Reads ``train/n000002/0001_01.jpg`` and ``test/n000001/...``; if they are there,
``bb_landmark/loose_bb_train.csv`` and ``loose_bb_test.csv`` (the faces' boxes, enlarged by 0.3 as
the authors do) and ``identity_meta.csv`` (gender: the groups of FastFill's study of bias). People
are in the order of their numbers: "the first 863" of FCT and FastFill.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.config.reading import build
from benchmark.data.base import Dataset, Images, ImageSet, Ints
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
from benchmark.data.seeding import generator
from benchmark.data.templates import each_alone
from benchmark.errors import BenchError

READING = 1
"""Raised by whoever changes how files become pixels or classes; part of every cache key."""

OFFERS = ("templates", "groups")
"""What its items carry beside images and classes: each image is a template of its own."""

UNSEEN = ("test",)
"""Evaluation sets without a class that is trained on."""

GENDERS = {"f": "female", "m": "male", "": "unknown"}
_BOX_ENLARGED = 1.3

_PERSON = re.compile(r"n(\d{6})")
_META = re.compile(r'(?:Class_ID.*|n(\d{6}), *".*", *\d+, *[01], *([fm]))')
_BOX = re.compile(r'(?:NAME_ID.*|"?(n\d{6}/\w+)"?,(-?\d+),(-?\d+),(\d+),(\d+))')


@dataclass(frozen=True)
class Options:
    """What may be asked for.

    Attributes:
        image_size: Side of an image, pixels; FCT found 224 better than the usual 112.
        per_person: Images of each test subject that judge, drawn once (FCT 4.1: 50).
        seed: Of that draw, and who is enrolled in which gallery.
    """

    image_size: int = 224
    per_person: int = 50
    seed: int = 0


def source(data_root: Path | None, **options: object) -> dict[str, object]:
    """What determines the images: options, reading version, decoder, the files' hash."""
    root = root_of(data_root, "vggface2")
    files = [root / name for part in ("train", "test") for name, _ in _people(root, part)]
    files += [path for path in _tables(root) if path is not None]
    return {
        **asdict(build(Options, options, "dataset vggface2")),
        "reading": READING,
        "decoder": decoder(),
        "files": content_hash(root, files),
    }


def class_group(name: str) -> str:
    """The gender of a person, as far as the meta file tells."""
    return GENDERS[name.partition(" ")[2]]


def load(data_root: Path | None, **options: object) -> Dataset:
    """List the files; large sets are decoded while they are used.

    Raises:
        BenchError: For a missing folder, a name that is none of theirs, a box that is missing.
    """
    chosen = build(Options, options, "dataset vggface2")
    root = root_of(data_root, "vggface2")
    train, test = _people(root, "train"), _people(root, "test")
    people = sorted({p for _, p in train}) + sorted({p for _, p in test})
    if len(set(people)) < len(people):
        raise BenchError(f"{root}: expected other people in test than in train")
    index = {person: i for i, person in enumerate(people)}
    gender = _genders(_tables(root)[2])
    names = tuple(f"n{p:06d} {gender.get(p, '')}".strip() for p in people)
    test = _drawn(test, chosen)
    images = [
        _images(root, part, boxes, chosen)
        for part, boxes in zip((train, test), _tables(root)[:2], strict=True)
    ]
    labels: list[Ints] = [np.array([index[p] for _, p in part], np.int64) for part in (train, test)]
    groups = tuple(sorted({class_group(name) for name in names}))
    group = np.array([groups.index(class_group(names[i])) for i in labels[1]], np.int64)
    return Dataset(
        name="vggface2",
        train=ImageSet(images[0], labels[0]),
        evaluations={
            "test": each_alone(
                images[1], labels[1], seed=chosen.seed, group=group, group_names=groups
            )
        },
        class_names=names,
        facts={
            **source(data_root, **options),
            "classes": len(people),
            "train_classes": len({p for _, p in train}),
            "boxes": _tables(root)[0] is not None,
        },
    )


def _people(root: Path, part: str) -> list[tuple[str, int]]:
    """Relative names and person numbers, both in the order of their numbers."""
    found = []
    for person, place in numbered(first_of(root, [part], "vggface2"), _PERSON, "n000002"):
        names = names_in(place, lambda name: Path(name).suffix.lower() in SUFFIXES)
        if not names:
            raise BenchError(f"{place}: person without an image")
        found += [(f"{part}/{place.name}/{name}", person) for name in names]
    return found


def _tables(root: Path) -> tuple[Path | None, Path | None, Path | None]:
    """Boxes of train and of test, and the people's meta data, where they are there."""
    found = []
    for name in ("loose_bb_train.csv", "loose_bb_test.csv", "identity_meta.csv"):
        places = [root / name, root / "bb_landmark" / name, root / "meta" / name]
        found.append(next((p for p in places if p.is_file()), None))
    return found[0], found[1], found[2]


def _genders(path: Path | None) -> dict[int, str]:
    if path is None:
        return {}
    expected = 'n000002, "Name", 321, 1, f'
    return {int(m[1]): m[2] for m in matches(path, _META, expected) if m[1] is not None}


def _drawn(test: list[tuple[str, int]], chosen: Options) -> list[tuple[str, int]]:
    """So many images of each person; the same whatever others there are."""
    by_person: dict[int, list[str]] = {}
    for name, person in test:
        by_person.setdefault(person, []).append(name)
    return [
        (names[i], person)
        for person, names in by_person.items()
        for i in np.sort(
            generator(chosen.seed, person).permutation(len(names))[: chosen.per_person]
        )
    ]


def _images(root: Path, part: list[tuple[str, int]], boxes: Path | None, chosen: Options) -> Images:
    names = [name for name, _ in part]
    if boxes is None:
        return images_of(listed(root, names), View(chosen.image_size, chosen.image_size))
    view = View(chosen.image_size, chosen.image_size, fit="box", keep=_BOX_ENLARGED)
    return images_of(listed(root, names), view, _boxes(boxes, names))


def _boxes(path: Path, names: list[str]) -> NDArray[np.float32]:
    """``x, y, width, height`` of each image."""
    known = {m[1]: m.groups()[1:] for m in matches(path, _BOX, '"n000002/0001_01",161,140,224,324')}
    rows = []
    for name in names:
        key = name.partition("/")[2].rpartition(".")[0]
        if key not in known:
            raise BenchError(f"{path}: expected a box of {key}, found none")
        rows.append([float(v) for v in known[key]])
    return np.array(rows, np.float32)
