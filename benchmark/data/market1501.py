"""``market1501``: 1,501 people seen by six cameras (Zheng et al., 2015).

Reads ``bounding_box_train``, ``bounding_box_test`` and ``query`` with names such as
``0002_c1s1_000451_03.jpg``: person, camera and sequence, frame, box. In the gallery person ``-1``
is junk, which counts neither for nor against, and ``0000`` a distractor, whom nobody asks for.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmark.config.reading import build
from benchmark.data.base import JUNK, Dataset, Evaluation, ImageSet, Ints
from benchmark.data.decode import View
from benchmark.data.encoded import images_of, listed
from benchmark.data.files import content_hash, decoder, first_of, names_in, root_of
from benchmark.errors import BenchError

READING = 1
"""Raised by whoever changes how files become pixels or classes; part of every cache key."""

OFFERS = ("cameras",)
"""What its items carry beside images and classes."""

_CAMERAS = "it would count junk and a person's images by the same camera; ask reidentification"
RULES_OUT = {"test": dict.fromkeys(("retrieval", "groups", "backfilling"), _CAMERAS)}
"""Tasks that score nonsense on an evaluation set, and why."""

UNSEEN = ("test",)
"""Evaluation sets without a class that is trained on."""

DISTRACTOR = 0
PARTS = ("bounding_box_train", "bounding_box_test", "query")
_NAME = re.compile(r"(-1|\d{4})_c([1-6])s\d_\d{6}_\d{2}\.jpg(?:\.jpg)?")


@dataclass(frozen=True)
class Options:
    """What may be asked for.

    Attributes:
        height: Of an image, pixels.
        width: Of an image, pixels; boxes are stretched to it.
    """

    height: int = 256
    width: int = 128


@dataclass(frozen=True)
class Part:
    """Images of a folder."""

    names: list[str]
    person: Ints
    camera: Ints


def source(data_root: Path | None, **options: object) -> dict[str, object]:
    """What determines the images: options, reading version, decoder, the files' hash."""
    root = _root(data_root)
    files = [root / name for part in PARTS for name in _part(root, part).names]
    return {
        **asdict(build(Options, options, "dataset market1501")),
        "reading": READING,
        "decoder": decoder(),
        "files": content_hash(root, files),
    }


def load(data_root: Path | None, **options: object) -> Dataset:
    """Read the three folders.

    Returns:
        People in the order of their numbers, those to train on first; the evaluation ``test``, in
        which junk has the label -1 and all distractors one class that no query has.

    Raises:
        BenchError: For a missing folder, a name of another form, a person in train and in test.
    """
    chosen = build(Options, options, "dataset market1501")
    root = _root(data_root)
    train, gallery, query = (_part(root, part) for part in PARTS)
    if not (train.person > 0).all():
        raise BenchError(
            f"{root / PARTS[0]}: expected people from 0001 on, got junk or distractors"
        )
    if not (query.person > 0).all():
        raise BenchError(
            f"{root / PARTS[2]}: expected people from 0001 on, got junk or distractors"
        )
    trained = np.unique(train.person)
    tested = np.unique(np.concatenate([gallery.person, query.person]))
    tested = tested[tested > 0]
    both = np.intersect1d(trained, tested)
    if len(both):
        raise BenchError(f"{root}: person {both[0]:04d} is in {PARTS[0]} and among those judged on")
    people = np.concatenate([trained, tested])
    names = [f"{p:04d}" for p in people]
    if (gallery.person == DISTRACTOR).any():
        people, names = np.append(people, DISTRACTOR), [*names, "distractors"]
    view = View(chosen.height, chosen.width, fit="whole")
    return Dataset(
        name="market1501",
        train=ImageSet(images_of(listed(root, train.names), view), _labels(train.person, people)),
        evaluations={"test": _evaluation(root, gallery, query, people, view)},
        class_names=tuple(names),
        facts={
            **source(data_root, **options),
            "classes": len(people),
            "train_classes": len(trained),
            "junk": int((gallery.person == JUNK).sum()),
            "distractors": int((gallery.person == DISTRACTOR).sum()),
        },
    )


def _root(data_root: Path | None) -> Path:
    root = root_of(data_root, "market1501")
    inside = sorted(p for p in root.glob("Market-1501*") if p.is_dir())
    return inside[0] if inside and not (root / PARTS[0]).is_dir() else root


def _part(root: Path, part: str) -> Part:
    folder = first_of(root, [part], "market1501")
    names = names_in(folder, lambda name: name.endswith(".jpg"))
    found = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            raise BenchError(f"{folder / name}: expected a name as 0002_c1s1_000451_03.jpg")
        found.append((int(match[1]), int(match[2])))
    if not found:
        raise BenchError(f"{folder}: expected images, found none")
    columns = np.array(found, np.int64)
    return Part([f"{part}/{name}" for name in names], columns[:, 0], columns[:, 1])


def _labels(person: Ints, people: Ints) -> Ints:
    """Places in ``people``; junk stays -1."""
    order = np.argsort(people)
    place = order[np.searchsorted(people, person, sorter=order).clip(max=len(people) - 1)]
    return np.where(person == JUNK, JUNK, place)


def _evaluation(root: Path, gallery: Part, query: Part, people: Ints, view: View) -> Evaluation:
    n_query, n = len(query.names), len(query.names) + len(gallery.names)
    rows = np.arange(n)
    return Evaluation(
        images=images_of(listed(root, query.names + gallery.names), view),
        labels=np.concatenate([_labels(query.person, people), _labels(gallery.person, people)]),
        ids=rows,
        query=rows[:n_query],
        gallery=rows[n_query:],
        camera=np.concatenate([query.camera, gallery.camera]),
        media=rows,
        group=np.zeros(n, np.int64),
        template=np.full(n, -1),
        probes=rows[:0],
        galleries=(),
        group_names=("all",),
    )
