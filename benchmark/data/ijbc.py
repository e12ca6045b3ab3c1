"""IJB-C, on which models of faces are judged: base of the datasets that train on other faces.

Below the data root a folder ``IJBC`` as InsightFace distributes it: faces in ``loose_crop`` and, in
``meta``, ``ijbc_name_5pts_score.txt`` (image, five landmarks, how much of a face it is),
``ijbc_face_tid_mid.txt`` (image, template, media), ``ijbc_template_pair_label.txt`` (two templates,
1 if they show one person), ``ijbc_1N_gallery_G1.csv``, ``ijbc_1N_gallery_G2.csv`` and
``ijbc_1N_probe_mixed.csv`` (template, subject, and more that is not used).
"""

import re
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmark.config.declarations import EvaluationSet
from benchmark.data.base import Dataset, Evaluation, ImageSet, Ints
from benchmark.data.files import Files, first_of, matches, read_integers
from benchmark.data.images import Side, View, images_of
from benchmark.data.readers import FileDatasetReader
from benchmark.data.recordio import Records
from benchmark.errors import BenchError

TABLES = (
    "ijbc_name_5pts_score.txt", "ijbc_face_tid_mid.txt", "ijbc_template_pair_label.txt",
    "ijbc_1N_gallery_G1.csv", "ijbc_1N_gallery_G2.csv", "ijbc_1N_probe_mixed.csv",
)  # fmt: skip
_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE]-?\d+)?"
_FACE = re.compile(rf"([\w.-]+) ((?:{_NUMBER} ){{10}})({_NUMBER})")
_MEMBER = re.compile(r"([\w.-]+) (\d{1,18}) (-?\d{1,18})")
_LISTED = re.compile(r"(?:TEMPLATE_ID.*|(\d{1,18}),(\d{1,18})(?:,.*)?)")


@dataclass(frozen=True)
class IjbcDatasetReader(FileDatasetReader):
    """Base of a set of faces to train on, with IJB-C to evaluate on."""

    columns: ClassVar = frozenset({"templates"})
    evaluation_sets: ClassVar = {"test": EvaluationSet(unseen=True)}

    image_size: Side = 112  # of an aligned face, pixels

    @abstractmethod
    def faces(self, root: Path) -> tuple[Files | Records, Ints]:
        """The faces to train on, and the number of the person that each shows."""

    def read(self, root: Path) -> Dataset:
        """List the faces."""
        source, person = self.faces(root)
        images = images_of(source, View(self.image_size, self.image_size, fit="whole"))
        people, labels = np.unique(person, return_inverse=True)
        items, subjects = self._items(root, len(people))
        names = (*(f"person {p}" for p in people), *(f"subject {s}" for s in subjects))
        pairs = 0 if items.pairs is None else len(items.pairs)
        train = ImageSet(images, labels)
        return Dataset(self.name, train, {"test": items}, names, facts={"pairs": pairs})

    def _items(self, root: Path, first_class: int) -> tuple[Evaluation, Ints]:
        """Faces of IJB-C, whose classes count from ``first_class``, and the subjects' numbers."""
        face_table, member_table, pair_table, *lists = tables(root)
        faces = [*matches(face_table, _FACE, "1.jpg, ten coordinates and a score")]
        members = [*matches(member_table, _MEMBER, "1.jpg 1 69544")]
        names = [m[1] for m in faces]
        if not names or names != [m[1] for m in members]:
            raise BenchError(
                f"{member_table}: expected the {len(names)} images of {face_table.name} in their "
                f"order, got {len(members)}, or others"
            )
        template, media = np.array([m.groups()[1:] for m in members]).astype(np.int64).T
        subjects: dict[int, int] = {}
        first, second, probes = (_listed(path, subjects) for path in lists)
        unlisted = set(template.tolist()) ^ subjects.keys()
        if unlisted:
            raise BenchError(
                f"{member_table}: expected the templates of the lists of galleries and probes, "
                f"template {min(unlisted)} is missing in one of them"
            )
        view = View(self.image_size, self.image_size, fit="align")
        points = np.array([[float(v) for v in m[2].split()] for m in faces], np.float32)
        files = Files.checked(face_table.parents[1], [f"loose_crop/{name}" for name in names])
        known, labels = np.unique([subjects[t] for t in template.tolist()], return_inverse=True)
        items = Evaluation.of(
            images_of(files, view, points), labels + first_class,
            media=media, template=template, probes=probes, galleries=(first, second),
            weight=np.array([float(m[3]) for m in faces], np.float32),
            pairs=_pairs(pair_table, subjects),
        )  # fmt: skip
        return items, known


def tables(root: Path) -> list[Path]:
    """IJB-C's tables."""
    folder = first_of(root, "IJBC", "ijbc", "IJB-C", "IJB_release/IJBC")
    return [folder / "meta" / name for name in TABLES]


def _listed(path: Path, subjects: dict[int, int]) -> Ints:
    """Templates of a list, each once; their subjects are added to those of the other lists."""
    templates = {}
    for m in matches(path, _LISTED, "template and subject (2,1,img/...)"):
        if m[1] is not None:
            template, subject = int(m[1]), int(m[2])
            known = templates[template] = subjects.setdefault(template, subject)
            if known != subject:
                raise BenchError(f"{path}: template {template} has subjects {known}, {subject}")
    if not templates:
        raise BenchError(f"{path}: expected templates and subjects, found none")
    return np.array([*templates])


def _pairs(path: Path, subjects: dict[int, int]) -> Ints:
    """Templates that 1:1 verification compares, ``[n_pair, 2]``."""
    table = read_integers(path, 3, "two templates and 0 or 1")
    if not np.isin(table[:, 2], (0, 1)).all():
        raise BenchError(f"{path}: expected two templates and 0 or 1 in each line")
    known = np.array(sorted(subjects))
    pairs = np.ascontiguousarray(table[:, :2])
    missing = ~np.isin(pairs, known)
    if missing.any():
        raise BenchError(f"{path}: template {pairs[missing][0]} has no image")
    subject = np.array([subjects[t] for t in known.tolist()])[np.searchsorted(known, pairs)]
    wrong = (subject[:, 0] == subject[:, 1]) != (table[:, 2] == 1)
    if wrong.any():
        one, other = pairs[wrong][0]
        raise BenchError(
            f"{path}: templates {one} and {other}: the label contradicts the lists of galleries "
            "and probes"
        )
    return pairs
