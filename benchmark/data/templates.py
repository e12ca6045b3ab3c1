"""The columns that verification and identification need. Not a dataset itself."""

from __future__ import annotations

import hashlib

import numpy as np

from benchmark.data.base import Ints


def seeded_order(names: list[str], seed: int) -> Ints:
    """A seeded order that a name keeps relative to the others when some come or go.

    Args:
        names: Distinct names.
        seed: Another seed, another order.

    Returns:
        A permutation of the rows, ``[len(names)]``.
    """
    keys = [hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=16).digest() for name in names]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def generator(*key: int) -> np.random.Generator:
    """A stream of random numbers of its own for each key of non-negative integers."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))


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
