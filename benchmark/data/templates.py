"""The columns that verification and identification need. Not a dataset itself."""

from __future__ import annotations

import numpy as np

from benchmark.data.base import Ints
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
