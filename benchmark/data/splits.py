"""From a generation's fractions to the rows of the training images that it sees."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np

from benchmark.data.base import Ints
from benchmark.data.seeding import generator
from benchmark.errors import BenchError

Order = Literal["seeded", "dataset"]
Interval = tuple[float, float]


def boundary(fraction: float, n: int) -> int:
    """How many of ``n`` lie before a fraction: its decimal digits times ``n``, halves to even.

    >>> [boundary(0.3, 93431), 93431 - boundary(0.3, 93431)]
    [28029, 65402]
    >>> [boundary(0.5, 365), boundary(0.1, 8631), boundary(0.5, 1000)]
    [182, 863, 500]
    """
    return round(Fraction(repr(float(fraction))) * n)


def select(
    labels: Ints,
    *,
    classes: Interval = (0.0, 1.0),
    images: Interval = (0.0, 1.0),
    order: Order = "seeded",
    image_order: Order = "seeded",
    seed: int = 0,
) -> Ints:
    """Rows of a fraction of the classes and, within each of them, a fraction of the images.

    Adjacent intervals share their boundary, so [0, 0.3] and [0.3, 1] part the whole exactly. A
    fraction of the images rounds class by class: a class of one image may lose its only one.

    Args:
        labels: Class of each training image, ``[n]``; not every index needs to occur.
        classes: From and to, fractions of the classes that occur.
        images: From and to, fractions of each class's images.
        order: Which classes come first: a seeded permutation, or ascending class index.
        image_order: Which images come first within a class: a seeded permutation, or row order.
        seed: Drives both permutations; the classes' does not depend on the images.

    Returns:
        Rows, ascending, ``[k]`` int64.

    Raises:
        BenchError: For an interval outside [0, 1], empty or reversed, or a split without a row.
    """
    for name, (low, high) in (("classes", classes), ("images", images)):
        if not 0 <= low < high <= 1:
            raise BenchError(f"{name}: expected 0 <= from < to <= 1, got [{low:g}, {high:g}]")
    for name, value in (("order", order), ("image_order", image_order)):
        if value not in ("seeded", "dataset"):
            raise BenchError(f"{name}: expected seeded or dataset, got {value!r}")
    _, label, count = np.unique(labels, return_inverse=True, return_counts=True)
    n = len(count)
    rank = np.arange(n) if order == "dataset" else generator(seed, 0).permutation(n)
    taken = (rank >= boundary(classes[0], n)) & (rank < boundary(classes[1], n))
    rows = np.flatnonzero(taken[label])
    if images != (0.0, 1.0):
        place = _place_in_class(label, count, None if image_order == "dataset" else seed)
        first, end = (_boundaries(fraction, count)[label] for fraction in images)
        rows = rows[((place >= first) & (place < end))[rows]]
    if not len(rows):
        raise BenchError(
            f"classes [{classes[0]:g}, {classes[1]:g}] and images [{images[0]:g}, {images[1]:g}] "
            f"of {n} classes, {len(labels)} images: expected at least one image, got none"
        )
    return rows


def _place_in_class(label: Ints, count: Ints, seed: int | None) -> Ints:
    """Place of each image within its class, ``[n]``: by row, or by a seeded permutation."""
    rows = np.arange(len(label)) if seed is None else generator(seed, 1).permutation(len(label))
    sorted_rows = rows[np.argsort(label[rows], kind="stable")]
    start = np.cumsum(count) - count
    place = np.empty(len(label), np.int64)
    place[sorted_rows] = np.arange(len(label)) - np.repeat(start, count)
    return place


def _boundaries(fraction: float, count: Ints) -> Ints:
    """``boundary(fraction, n)`` for every class, ``[n_class]``."""
    sizes, which = np.unique(count, return_inverse=True)
    found: Ints = np.array([boundary(fraction, int(n)) for n in sizes], np.int64)[which]
    return found
