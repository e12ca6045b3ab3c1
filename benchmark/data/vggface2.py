"""``vggface2``: 3.31 million photographs of 9,131 people (Cao et al., 2018).

Reads ``train/n000002/0001_01.jpg`` and ``test/n000001/...``; if they are there,
``bb_landmark/loose_bb_train.csv`` and ``loose_bb_test.csv`` (the faces' boxes, enlarged by 0.3 as
the authors do) and ``identity_meta.csv`` (gender: the groups of FastFill's study of bias). People
are in the order of their numbers: "the first 863" of FCT and FastFill.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from benchmark.config.checks import Seed
from benchmark.config.declarations import EvaluationSet, Origin
from benchmark.data.base import Dataset, Images, ImageSet, Ints
from benchmark.data.enrolment import single_item_templates
from benchmark.data.files import Files, Labelled, images_by_class, matches
from benchmark.data.images import Side, View, images_of
from benchmark.data.readers import FileDatasetReader
from benchmark.data.splits import generator
from benchmark.errors import BenchError

GENDERS = {"f": "female", "m": "male", "": "unknown"}
_BOX_ENLARGED = 1.3

_PERSON = re.compile(r"n(\d{6})")
_META = re.compile(r'(?:Class_ID.*|n(\d{6}), *".*", *\d+, *[01], *([fm]))')
_BOX = re.compile(r'(?:NAME_ID.*|"?(n\d{6}/\w+)"?,(-?\d+),(-?\d+),(\d+),(\d+))')


@dataclass(frozen=True)
class VggFace2(FileDatasetReader):
    """Photographs of people; each item is a template of its own."""

    columns: ClassVar = frozenset({"templates", "groups"})
    evaluation_sets: ClassVar = {"test": EvaluationSet(unseen=True)}
    origin: ClassVar = Origin(
        "https://www.robots.ox.ac.uk/~vgg/data/vgg_face2/",
        how="its authors no longer hand it out; a lab that has it names the folder",
        counts={
            "training classes": 8_631, "training images": 3_141_890, "test classes": 500,
            "test images": 25_000, "smallest test class": 50, "largest test class": 50,
        },
        source="FCT 4.1; training images: Cao et al., 2018",
    )  # fmt: skip

    image_size: Side = 224  # pixels; FCT found it better than the usual 112
    # images of each test subject that are evaluated (FCT 4.1)
    per_person: Annotated[int, Field(ge=1, le=10**6)] = 50
    seed: Seed = 0  # draws these, and decides which are enrolled in which gallery

    def files(self, root: Path) -> list[Path]:
        """Every image and table."""
        tables = [path for path in _tables(root) if path is not None]
        return [*_people(root, "train")[0].paths, *_people(root, "test")[0].paths, *tables]

    def class_group(self, class_name: str) -> str:
        """The gender of a person, as far as the meta file has it."""
        return GENDERS[class_name.partition(" ")[2]]

    def read(self, root: Path) -> Dataset:
        """List the files."""
        (train, numbers), (test, test_numbers) = (_people(root, p) for p in ("train", "test"))
        trained, labels = np.unique(numbers, return_inverse=True)
        tested = np.unique(test_numbers)
        if len(np.intersect1d(trained, tested)):
            raise BenchError(f"{root}: expected other people in test than in train")
        rows = self._drawn(test_numbers, tested)
        test, test_labels = test.take(rows), np.searchsorted(tested, test_numbers[rows])
        boxes, test_boxes, meta = _tables(root)
        lines = () if meta is None else matches(meta, _META, 'n000002, "Name", 321, 1, f')
        gender = {int(m[1]): m[2] for m in lines if m[1] is not None}
        people = [*trained.tolist(), *tested.tolist()]
        names = tuple(f"n{p:06d} {gender.get(p, '')}".strip() for p in people)
        groups = [self.class_group(name) for name in names]
        group_names, group = np.unique(groups, return_inverse=True)
        item_labels = test_labels + len(trained)
        items = single_item_templates(
            self._images(test, test_boxes), item_labels, seed=self.seed,
            group=group[item_labels], group_names=tuple(group_names.tolist()),
        )  # fmt: skip
        train_set = ImageSet(self._images(train, boxes), labels)
        facts = {"boxes": boxes is not None}
        return Dataset(self.name, train_set, {"test": items}, names, facts)

    def _drawn(self, numbers: Ints, people: Ints) -> Ints:
        """Rows of some images of each person; the same whatever others there are."""
        rows = [
            generator(self.seed, person).permutation(np.flatnonzero(numbers == person))
            for person in people.tolist()
        ]
        return np.concatenate([np.sort(r[: self.per_person]) for r in rows])

    def _images(self, files: Files, boxes: Path | None) -> Images:
        if boxes is None:
            return images_of(files, View(self.image_size, self.image_size))
        view = View(self.image_size, self.image_size, fit="box", keep=_BOX_ENLARGED)
        return images_of(files, view, _boxes(boxes, files.names))


def _people(root: Path, part: str) -> Labelled:
    return images_by_class(root, part, _PERSON, "n000002")


def _tables(root: Path) -> list[Path | None]:
    """Boxes of train and of test, and the people's meta data, where they are there."""
    return [
        next((p for f in (".", "bb_landmark", "meta") if (p := root / f / name).is_file()), None)
        for name in ("loose_bb_train.csv", "loose_bb_test.csv", "identity_meta.csv")
    ]


def _boxes(path: Path, names: tuple[str, ...]) -> NDArray[np.float32]:
    """``x, y, width, height`` of each image."""
    known = {m[1]: m.groups()[1:] for m in matches(path, _BOX, '"n000002/0001_01",161,140,224,324')}
    keys = [name.partition("/")[2].rpartition(".")[0] for name in names]
    for key in keys:
        if key not in known:
            raise BenchError(f"{path}: expected a box of {key}, found none")
    return np.array([[float(v) for v in known[key]] for key in keys], np.float32)
