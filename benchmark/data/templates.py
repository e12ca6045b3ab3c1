"""The columns that verification and identification need. Not a dataset itself."""

from __future__ import annotations

import numpy as np

from benchmark.data.base import Evaluation, Images, Ints
from benchmark.data.seeding import generator


def enrol(
    classes: Ints, template_class: Ints, enrolled: Ints, seed: int
) -> tuple[Ints, tuple[Ints, Ints]]:
    """IJB-C's two galleries: one seeded half of the subjects each; all else is searched for.

    Args:
        classes: The subjects, ``[n_class]``.
        template_class: Subject of each template, ``[n_template]``; the row is the template's id.
        enrolled: For each subject the template that is enrolled, ``[n_class]``.
        seed: Decides the halves.

    Returns:
        Probe template ids ``[n_template - n_class]``, and the template ids of G1 and of G2.
    """
    probes = np.setdiff1d(np.arange(len(template_class)), enrolled)
    first = np.zeros(len(classes), np.bool_)
    first[generator(seed, len(classes), 1).permutation(len(classes))[: len(classes) // 2]] = True
    return probes, (np.sort(enrolled[first]), np.sort(enrolled[~first]))


def each_alone(
    images: Images, labels: Ints, *, seed: int, group: Ints | None = None,
    group_names: tuple[str, ...] = ("all",),
) -> Evaluation:  # fmt: skip
    """All items ask and are stored; each is a template, a medium and a camera of its own.

    Args:
        images: ``[n, c, h, w]``.
        labels: Class of each, ``[n]``.
        seed: Decides which item of a class is enrolled, and in which gallery.
        group: Group of each, ``[n]``; one for all by default.
        group_names: Name of each group.
    """
    rows = np.arange(len(labels))
    shuffled = generator(seed, 0).permutation(rows)
    subjects, first = np.unique(labels[shuffled], return_index=True)
    probes, galleries = enrol(subjects, labels, shuffled[first], seed)
    return Evaluation(
        images=images, labels=labels, ids=rows, query=rows, gallery=rows, camera=rows, media=rows,
        group=np.zeros(len(rows), np.int64) if group is None else group, template=rows,
        probes=probes, galleries=galleries, group_names=group_names,
    )  # fmt: skip
