"""IJB-C as InsightFace distributes it: faces, templates, pairs, galleries. Not a dataset itself.

``loose_crop/1.jpg`` and, in ``meta``: ``ijbc_name_5pts_score.txt`` (image, five landmarks, how
much of a face it is), ``ijbc_face_tid_mid.txt`` (image, template, media),
``ijbc_template_pair_label.txt`` (two templates, 1 if they show one person),
``ijbc_1N_gallery_G1.csv``, ``ijbc_1N_gallery_G2.csv`` and ``ijbc_1N_probe_mixed.csv`` (template,
subject, and more that is not used).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.data.base import Evaluation, Ints
from benchmark.data.decode import View
from benchmark.data.encoded import images_of, listed
from benchmark.data.files import first_of, matches
from benchmark.errors import BenchError

TABLES = (
    "ijbc_name_5pts_score.txt",
    "ijbc_face_tid_mid.txt",
    "ijbc_template_pair_label.txt",
    "ijbc_1N_gallery_G1.csv",
    "ijbc_1N_gallery_G2.csv",
    "ijbc_1N_probe_mixed.csv",
)

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE]-?\d+)?"
_FACE = re.compile(rf"([\w.-]+) ((?:{_NUMBER} ){{10}})({_NUMBER})")
_MEMBER = re.compile(r"([\w.-]+) (\d+) (-?\d+)")
_LISTED = re.compile(r"(?:TEMPLATE_ID.*|(\d+),(\d+)(?:,.*)?)")


@dataclass(frozen=True)
class Tables:
    """The meta files, read.

    Attributes:
        names: Of the images.
        landmarks: x and y of five points of each, ``[n, 10]``.
        score: How much of a face each is, ``[n]``.
        template: Of each image, ``[n]``.
        media: Of each image, ``[n]``.
        pairs: Templates that are compared, ``[n_pair, 2]``.
        same: Does the pair show one person, ``[n_pair]``.
        galleries: Templates and subjects of G1 and G2.
        probes: Templates and subjects that are searched for.
    """

    names: list[str]
    landmarks: NDArray[np.float32]
    score: NDArray[np.float32]
    template: Ints
    media: Ints
    pairs: Ints
    same: NDArray[np.bool_]
    galleries: tuple[tuple[Ints, Ints], tuple[Ints, Ints]]
    probes: tuple[Ints, Ints]


def folder_of(root: Path, dataset: str) -> Path:
    """Where IJB-C lies below a data root."""
    return first_of(root, ["IJBC", "ijbc", "IJB-C", "IJB_release/IJBC"], dataset)


def files_of(folder: Path) -> list[Path]:
    """Every table."""
    return [folder / "meta" / name for name in TABLES]


def read_tables(folder: Path) -> Tables:
    """Read and compare the tables.

    Raises:
        BenchError: Naming file and line or key.
    """
    faces, members, pairs, first, second, mixed = files_of(folder)
    names, points, scores = [], [], []
    for m in matches(faces, _FACE, "1.jpg, ten coordinates and a score"):
        names.append(m[1])
        points.append([float(v) for v in m[2].split()])
        scores.append(float(m[3]))
    listed_, template, media = [], [], []
    for m in matches(members, _MEMBER, "1.jpg 1 69544"):
        listed_.append(m[1])
        template.append(int(m[2]))
        media.append(int(m[3]))
    if not names or names != listed_:
        raise BenchError(
            f"{members}: expected the {len(names)} images of {faces.name} in their order, "
            f"got {len(listed_)}, or others"
        )
    compared, same = _pairs(pairs, np.unique(template))
    return Tables(
        names, np.array(points, np.float32), np.array(scores, np.float32),
        np.array(template, np.int64), np.array(media, np.int64), compared, same,
        (_subjects(first), _subjects(second)), _subjects(mixed),
    )  # fmt: skip


def _pairs(path: Path, known: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    try:
        table: Ints = np.loadtxt(path, np.int64, ndmin=2)
    except (OSError, ValueError) as error:
        raise BenchError(f"{path}: expected two templates and a label a line: {error}") from error
    if not len(table) or table.shape[1] != 3 or not np.isin(table[:, 2], (0, 1)).all():
        raise BenchError(f"{path}: expected two templates and 0 or 1 in each line")
    missing = ~np.isin(table[:, :2], known)
    if missing.any():
        raise BenchError(f"{path}: template {table[:, :2][missing][0]} has no image")
    return np.ascontiguousarray(table[:, :2]), table[:, 2] == 1


def _subjects(path: Path) -> tuple[Ints, Ints]:
    """Templates and their subjects, each template once, as first listed."""
    found: dict[int, int] = {}
    for m in matches(path, _LISTED, "template and subject (2,1,img/...)"):
        if m[1] is None:
            continue
        template, subject = int(m[1]), int(m[2])
        if found.setdefault(template, subject) != subject:
            raise BenchError(
                f"{path}: template {template} has subjects {found[template]}, {subject}"
            )
    if not found:
        raise BenchError(f"{path}: expected templates and subjects, found none")
    return np.array(list(found), np.int64), np.array(list(found.values()), np.int64)


def evaluation(folder: Path, size: int, first_class: int) -> tuple[Evaluation, tuple[str, ...]]:
    """Faces to be judged on, and a name for each subject.

    Args:
        folder: Holds ``loose_crop`` and ``meta``.
        size: Side of an aligned face.
        first_class: Class of the first subject; the training classes come before.
    """
    tables = read_tables(folder)
    subject, known = _labels(tables, folder)
    rows = np.arange(len(tables.names))
    images = images_of(
        listed(folder, [f"loose_crop/{name}" for name in tables.names]),
        View(size, size, fit="align"), tables.landmarks,
    )  # fmt: skip
    made = Evaluation(
        images=images,
        labels=subject + first_class,
        ids=rows,
        query=rows,
        gallery=rows,
        camera=rows,
        media=tables.media,
        group=np.zeros(len(rows), np.int64),
        template=tables.template,
        probes=tables.probes[0],
        galleries=(tables.galleries[0][0], tables.galleries[1][0]),
        group_names=("all",),
        weight=tables.score,
        pairs=tables.pairs,
    )
    return made, tuple(f"subject {s}" for s in known)


def _labels(tables: Tables, folder: Path) -> tuple[Ints, list[str]]:
    """Number of each image's subject, and the subjects' names.

    The lists of 1:N name the subjects of their templates; the pairs must agree with them.
    """
    parts = (*tables.galleries, tables.probes)
    template = np.concatenate([t for t, _ in parts])
    subject = np.concatenate([s for _, s in parts])
    order = np.argsort(template, kind="stable")
    template, subject = template[order], subject[order]
    twice = np.flatnonzero((template[1:] == template[:-1]) & (subject[1:] != subject[:-1]))
    if len(twice):
        raise BenchError(f"{folder}: template {template[twice[0]]} has two subjects in the lists")

    def of(wanted: Ints) -> Ints:
        place = np.searchsorted(template, wanted).clip(max=len(template) - 1)
        return np.where(template[place] == wanted, subject[place], -1)

    images = of(tables.template)
    if (images < 0).any():
        missing = tables.template[images < 0][0]
        raise BenchError(f"{folder}: template {missing} is in no list of galleries or probes")
    absent = ~np.isin(template, tables.template)
    if absent.any():
        raise BenchError(f"{folder}: template {template[absent][0]} is listed, but has no image")
    wrong = (of(tables.pairs[:, 0]) == of(tables.pairs[:, 1])) != tables.same
    if wrong.any():
        one, other = tables.pairs[wrong][0]
        raise BenchError(
            f"{folder / 'meta' / TABLES[2]}: templates {one} and {other}: the label "
            "contradicts the lists of galleries and probes"
        )
    known, numbers = np.unique(images, return_inverse=True)
    return numbers.astype(np.int64), [str(s) for s in known]
