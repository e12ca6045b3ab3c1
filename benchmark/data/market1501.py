"""``market1501``: 1,501 people seen by six cameras (Zheng et al., 2015).

Reads ``bounding_box_train``, ``bounding_box_test`` and ``query`` with names such as
``0002_c1s1_000451_03.jpg``: person, camera and sequence, frame, box. In the gallery person ``-1``
is junk, which counts neither for nor against, and ``0000`` a distractor, which no query shows.

Names of DukeMTMC-reID (``0001_c2_f0046182.jpg``) are read alike, and those of MSMT17
(``0000_000_01_0303morning_0008_0.jpg``: person, number, camera, time), where people count from 0 on
anew for each side: there 10000 is added to those of the training, 20000 to the others.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmark.config.declarations import EvaluationSet, Origin
from benchmark.data.base import JUNK, Dataset, Evaluation, ImageSet, Ints
from benchmark.data.files import Files, first_of, names_in
from benchmark.data.images import Side, View, images_of
from benchmark.data.readers import FileDatasetReader
from benchmark.errors import BenchError

DISTRACTOR = 0
PARTS = ("bounding_box_train", "bounding_box_test", "query")
_NAMES = (
    re.compile(r"(-1|\d{4})_c([1-6])s\d_\d{6}_\d{2}\.jpg(?:\.jpg)?"),
    re.compile(r"(\d{4})_c([1-8])_f\d{7}\.jpg(?:\.jpg)?"),
)
_MSMT17 = re.compile(
    r"(\d{4})_\d{3}_(\d{2})_\d{4}(?:morning|noon|afternoon)_\d{4}_\d(?:_\w+)?\.jpg"
)
_TRAINED, _OTHERS = 10_000, 20_000
"""Numbers that are added to MSMT17's people of the training and of the others."""
_RANKED_WITHOUT_CAMERAS = dict.fromkeys(
    ("retrieval", "groups", "backfilling"),
    "it would count junk and a person's images by the same camera; use reidentification",
)


@dataclass(frozen=True)
class Market1501(FileDatasetReader):
    """People in front of six cameras."""

    columns: ClassVar = frozenset({"cameras"})
    evaluation_sets: ClassVar = {
        "test": EvaluationSet(unseen=True, rules_out=_RANKED_WITHOUT_CAMERAS)
    }
    origin: ClassVar = Origin(
        "https://zheng-lab.cecs.anu.edu.au/Project/project_reid.html",
        how="follow the links there for Market-1501-v15.09.15.zip",
        counts={
            "training classes": 751, "training images": 12_936, "query classes": 750,
            "test queries": 3_368, "test gallery": 19_732, "cameras": 6,
        },
        source="MixBCT C.3",
    )  # fmt: skip

    height: Side = 256  # of an image, pixels
    width: Side = 128  # boxes are stretched to it

    def folder(self, root: Path) -> Path:
        """The folder that the archive extracts to, or the root."""
        inside = sorted(p for p in root.glob("Market-1501*") if p.is_dir())
        return inside[0] if inside and not (root / PARTS[0]).is_dir() else root

    def files(self, root: Path) -> list[Path]:
        """Every image."""
        folder = self.folder(root)
        return [folder / name for part in PARTS for name in _part(folder, part)[0]]

    def read(self, root: Path) -> Dataset:
        """Read the three folders; people are in the order of their numbers.

        In ``test`` junk has the label -1, and all distractors one class that no query has.
        """
        root = self.folder(root)
        view = View(self.height, self.width, fit="whole")
        (train, train_people, _), (gallery, *shown), (query, *searched) = (
            _part(root, part) for part in PARTS
        )
        for part, numbers in ((PARTS[0], train_people), (PARTS[2], searched[0])):
            if not (numbers > 0).all():
                raise BenchError(f"{root / part}: expected people from 0001 on, got others")
        people, cameras = np.hstack([searched, shown])
        trained, tested = np.unique(train_people), np.unique(people[people > 0])
        both = np.intersect1d(trained, tested)
        if len(both):
            raise BenchError(f"{root}: person {both[0]:04d} is in {PARTS[0]} and evaluated")
        names = [f"{person:04d}" for person in (*trained.tolist(), *tested.tolist())]
        index = {int(name): i for i, name in enumerate(names)}
        index |= {DISTRACTOR: len(names), JUNK: JUNK}
        junk, distractors = (int((people == kind).sum()) for kind in (JUNK, DISTRACTOR))
        if distractors:
            names.append("distractors")
        images = images_of(Files.checked(root, query + gallery), view)
        rows = np.arange(len(people))
        items = Evaluation.of(
            images, np.array([index[person] for person in people.tolist()]), camera=cameras,
            query=rows[: len(query)], gallery=rows[len(query) :], template=np.full(len(rows), -1),
        )  # fmt: skip
        train_images = images_of(Files.checked(root, train), view)
        train_set = ImageSet(train_images, np.searchsorted(trained, train_people))
        facts = {"junk": junk, "distractors": distractors}
        return Dataset(self.name, train_set, {"test": items}, tuple(names), facts)


def _part(root: Path, part: str) -> tuple[list[str], Ints, Ints]:
    """Names of a folder's images, their people and cameras."""
    names = names_in(first_of(root, part), (".jpg",))
    columns = []
    apart = _TRAINED if part == PARTS[0] else _OTHERS
    for name in names:
        match = next(filter(None, (each.fullmatch(name) for each in (*_NAMES, _MSMT17))), None)
        if match is None:
            raise BenchError(
                f"{root / part / name}: expected a name as 0002_c1s1_000451_03.jpg, or as of "
                "DukeMTMC or MSMT17"
            )
        columns.append((int(match[1]) + apart * (match.re is _MSMT17), int(match[2])))
    if not names:
        raise BenchError(f"{root / part}: expected images, found none")
    person, camera = np.array(columns, np.int64).T
    return [f"{part}/{name}" for name in names], person, camera
