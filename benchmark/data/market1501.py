"""``market1501``: 1,501 people seen by six cameras (Zheng et al., 2015).

Reads ``bounding_box_train``, ``bounding_box_test`` and ``query`` with names such as
``0002_c1s1_000451_03.jpg``: person, camera and sequence, frame, box. In the gallery person ``-1``
is junk, which counts neither for nor against, and ``0000`` a distractor, which no query shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmark.config.declarations import EvaluationSet
from benchmark.data.base import JUNK, Dataset, Evaluation, ImageSet, Ints
from benchmark.data.decode import View
from benchmark.data.encoded import images_of
from benchmark.data.files import Files, first_of, names_in
from benchmark.data.readers import FileDatasetReader
from benchmark.errors import BenchError

DISTRACTOR = 0
PARTS = ("bounding_box_train", "bounding_box_test", "query")
_NAME = re.compile(r"(-1|\d{4})_c([1-6])s\d_\d{6}_\d{2}\.jpg(?:\.jpg)?")
_CAMERAS = "it would count junk and a person's images by the same camera; use reidentification"


@dataclass(frozen=True)
class Market1501(FileDatasetReader):
    """People in front of six cameras.

    Attributes:
        height: Of an image, pixels.
        width: Of an image, pixels; boxes are stretched to it.
    """

    columns: ClassVar = frozenset({"cameras"})
    evaluation_sets: ClassVar = {
        "test": EvaluationSet(
            unseen=True,
            rules_out=dict.fromkeys(("retrieval", "groups", "backfilling"), _CAMERAS),
        )
    }

    height: int = 256
    width: int = 128

    def folder(self, root: Path) -> Path:
        """The folder that the archive extracts to, or the root."""
        inside = sorted(p for p in root.glob("Market-1501*") if p.is_dir())
        return inside[0] if inside and not (root / PARTS[0]).is_dir() else root

    def files(self, root: Path) -> list[Path]:
        """Every image."""
        folder = self.folder(root)
        return [folder / name for part in PARTS for name in _part(folder, part)[0]]

    def read(self, root: Path) -> Dataset:
        """Read the three folders.

        Returns:
            People in the order of their numbers, those to train on first; the evaluation set
            ``test``, in which junk has the label -1 and all distractors one class that no query
            has.

        Raises:
            BenchError: For a missing folder, a name of another form, a person in train and in test.
        """
        root = self.folder(root)
        view = View(self.height, self.width, fit="whole")
        (train, person, _), (gallery, *shown), (query, *asked) = (_part(root, p) for p in PARTS)
        for part, people in ((PARTS[0], person), (PARTS[2], asked[0])):
            if not (people > 0).all():
                raise BenchError(f"{root / part}: expected people from 0001 on, got others")
        persons, cameras = (np.concatenate(pair) for pair in zip(asked, shown, strict=True))
        trained, tested = np.unique(person), np.unique(persons[persons > 0])
        both = np.intersect1d(trained, tested)
        if len(both):
            raise BenchError(f"{root}: person {both[0]:04d} is in {PARTS[0]} and in {PARTS[1]}")
        people = np.concatenate([trained, tested])
        names = [f"{p:04d}" for p in people]
        distractors, junk = ((shown[0] == kind).sum() for kind in (DISTRACTOR, JUNK))
        if distractors:
            people, names = np.append(people, DISTRACTOR), [*names, "distractors"]
        rows = np.arange(len(persons))
        items = Evaluation.of(
            images_of(Files.checked(root, query + gallery), view), _labels(persons, people),
            query=rows[: len(query)], gallery=rows[len(query) :], camera=cameras,
            template=np.full(len(rows), -1),
        )  # fmt: skip
        images = images_of(Files.checked(root, train), view)
        return Dataset(
            self.name, ImageSet(images, _labels(person, people)), {"test": items}, tuple(names),
            facts={"junk": int(junk), "distractors": int(distractors)},
        )  # fmt: skip


def _part(root: Path, part: str) -> tuple[list[str], Ints, Ints]:
    """Names of a folder's images, their people and cameras."""
    names = names_in(first_of(root, part), (".jpg",))
    columns = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            raise BenchError(f"{root / part / name}: expected a name as 0002_c1s1_000451_03.jpg")
        columns.append((int(match[1]), int(match[2])))
    if not names:
        raise BenchError(f"{root / part}: expected images, found none")
    person, camera = np.array(columns, np.int64).T
    return [f"{part}/{name}" for name in names], person, camera


def _labels(person: Ints, people: Ints) -> Ints:
    """Places in ``people``; junk stays -1."""
    order = np.argsort(people)
    place = order[np.searchsorted(people, person, sorter=order).clip(max=len(people) - 1)]
    return np.where(person == JUNK, JUNK, place)
