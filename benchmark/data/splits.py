"""Seeded orders, and from a generation's fractions to the rows of the images that it sees."""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from benchmark.config import registry
from benchmark.config.split_sizes import FEW_CLASSES, boundary
from benchmark.data.base import Evaluation, Ints
from benchmark.errors import BenchError

Order = Literal["seeded", "dataset"]
HeldOut = Annotated[float, Field(ge=0, le=0.8)]
"""Share of the classes that nobody trains on."""
Interval = tuple[float, float]


def generator(*key: int) -> np.random.Generator:
    """A stream of random numbers of its own for each key of non-negative integers."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))


def seeded_order(names: Sequence[str], seed: int) -> Ints:
    """A seeded permutation of distinct names, ``[len(names)]``.

    A name keeps its place relative to the others when some come or go.
    """
    keys = [hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=16).digest() for name in names]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def divided_classes(
    names: Sequence[str], seed: int, held_out: float, tuning: bool
) -> tuple[Ints, Ints]:  # fmt: skip
    """Classes that train, and the share of them that is held out; each in its own order.

    For ``tuning`` the classes held out are not there, and of those left as large a share is held
    out, so that nothing evaluated otherwise is looked at.
    """
    order = seeded_order(names, seed)
    if tuning:
        order = order[: boundary(1.0 - held_out, len(order))]
    kept, held = np.split(order, [boundary(1.0 - held_out, len(order))])
    return np.sort(kept), np.sort(held)


def in_folds(labels: Ints, n: int, seed: int) -> Ints:
    """Fold of each item among ``n``, ``[k]``; those of a class spread evenly."""
    _, label, count = np.unique(labels, return_inverse=True, return_counts=True)
    return place_in_class(label, count, seed) % n


def two_thirds(n: int) -> int:
    """Number of ``n`` classes that train where a dataset has no split of its own; two are left."""
    return min(boundary(2 / 3, n), n - 2)


def select(
    labels: Ints, *, classes: Interval = (0.0, 1.0), images: Interval = (0.0, 1.0),
    order: Order = "seeded", image_order: Order = "seeded", seed: int = 0,
    only: Ints | None = None, thinned: Sequence[tuple[Ints, float]] = (), every_class: bool = False,
) -> Ints:  # fmt: skip
    """Ascending rows of a fraction of the classes and, in each, a fraction of the images, ``[k]``.

    Adjacent intervals share their boundary, so [0, 0.3] and [0.3, 1] part the whole exactly. A
    fraction of the images rounds class by class: a class of one image may lose its only one.

    Args:
        labels: Class of each training image, ``[n]``; not every index needs to occur.
        classes: From and to, fractions of the classes that occur.
        images: From and to, fractions of each class's images.
        order: Which classes come first: a seeded permutation, or ascending index.
        image_order: Which images come first within a class: a seeded permutation, or row order.
        seed: Drives both permutations; the classes' does not depend on the images.
        only: Classes that may be taken; fractions count within them.
        thinned: Classes, and the fraction of those taken that stays, the first in the order.
        every_class: A class whose share of the images is none keeps the nearest one.

    Raises:
        BenchError: For an interval outside [0, 1], empty or reversed, or a split without a row.
    """
    for name, (low, high) in (("classes", classes), ("images", images)):
        if not 0 <= low < high <= 1:
            raise BenchError(f"{name}: expected 0 <= from < to <= 1, got [{low:g}, {high:g}]")
    for name, value in (("order", order), ("image_order", image_order)):
        if value not in get_args(Order):
            raise BenchError(f"{name}: expected seeded or dataset, got {value!r}")
    known, label, count = np.unique(labels, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(_taken(known, classes, order, seed, only, thinned)[label])
    if tuple(images) != (0.0, 1.0):
        place = place_in_class(label, count, None if image_order == "dataset" else seed)
        sizes, size = np.unique(count, return_inverse=True)
        ends = (np.array([boundary(share, n) for n in sizes.tolist()]) for share in images)
        first, end = (places[size][label] for places in ends)
        if every_class:
            first = np.minimum(first, count[label] - 1)
            end = np.maximum(end, first + 1)
        rows = rows[((place >= first) & (place < end))[rows]]
    if not len(rows):
        raise BenchError(
            f"classes [{classes[0]:g}, {classes[1]:g}] and images [{images[0]:g}, {images[1]:g}] "
            f"of {len(known)} classes, {len(labels)} images: expected at least one image, got none"
        )
    return rows


def rows_of(
    labels: Ints, split: Mapping[str, Any], class_ids: Callable[[Sequence[str]], Ints]
) -> Ints:
    """Rows of a generation's split, as stages have it.

    A split has arguments of :func:`select`, but ``groups`` for ``only``, and ``thinned`` by groups;
    ``class_ids`` maps names of groups to their classes. A BenchError says that there is no row, or
    a single class, which leaves a classifier nothing to tell apart.
    """
    options = dict(split)
    if "groups" in options:
        options["only"] = class_ids(options.pop("groups"))
    options["thinned"] = [(class_ids(names), share) for names, share in split.get("thinned", ())]
    rows = select(labels, **options)
    if (labels[rows] == labels[rows[0]]).all():
        raise BenchError(f"{FEW_CLASSES}: {len(rows):,} images of it")
    return rows


def _taken(
    known: Ints, classes: Interval, order: Order, seed: int, only: Ints | None = None,
    thinned: Sequence[tuple[Ints, float]] = (),
) -> NDArray[np.bool_]:  # fmt: skip
    """Mask of the classes that are taken, ``[n_class]``."""
    allowed = np.ones(len(known), np.bool_) if only is None else np.isin(known, only)
    n = int(allowed.sum())
    rank = np.full(len(known), -1)
    rank[allowed] = np.arange(n) if order == "dataset" else generator(seed, 0).permutation(n)
    low, high = (boundary(fraction, n) for fraction in classes)
    taken = (rank >= low) & (rank < high)  # low is at least 0
    for members, share in thinned:
        rows = np.flatnonzero(taken & np.isin(known, members))
        rows = rows[np.argsort(rank[rows])]
        taken[rows[boundary(share, len(rows)) :]] = False
    return taken


def narrow(
    items: Evaluation, trained: Ints, *, classes: Interval = (0.0, 1.0), order: Order = "seeded",
    seed: int = 0, groups: Sequence[str] = (), ranges: int = 0,
    against: tuple[str, Sequence[str]] | None = None,
) -> Evaluation:  # fmt: skip
    """Keep only some items as queries and in the gallery, and group them otherwise.

    Rows keep their places: only queries, galleries and templates become fewer.

    Args:
        items: All items of an evaluation set.
        trained: Labels of the training images, whose classes the fractions count.
        classes: Only items of this interval of the training classes.
        order: As in :func:`select`.
        seed: As in :func:`select`.
        groups: Only items of these groups.
        ranges: Group by this many ranges of the training classes.
        against: A name, and the groups that make up the one so named; all others are the other.

    Raises:
        BenchError: If no query or no gallery is left, or a group is unknown.
    """
    known = np.unique(trained)
    keep = np.ones(len(items.labels), np.bool_)
    if classes != (0.0, 1.0):
        keep &= np.isin(items.labels, known[_taken(known, classes, order, seed)])
    if groups:
        keep &= _in_groups(items, groups)
    template = np.where(keep, items.template, -1)
    left = np.unique(template[template >= 0])
    kept = dataclasses.replace(
        items,
        query=items.query[keep[items.query]],
        gallery=items.gallery[keep[items.gallery]],
        template=template,
        probes=items.probes[np.isin(items.probes, left)],
        galleries=tuple(g for all_ in items.galleries if len(g := all_[np.isin(all_, left)])),
    )
    if not len(kept.query) or not len(kept.gallery):
        among = f", groups {', '.join(groups)}" if groups else ""
        raise BenchError(
            f"classes [{classes[0]:g}, {classes[1]:g}] of those trained on{among}: expected "
            "queries and gallery items, got none"
        )
    if ranges:  # of the training classes; what was not trained on is a group of its own
        group, names = np.full(len(items.labels), ranges, np.int64), []
        for i in range(ranges):
            ends = (round(i / ranges, 6), round((i + 1) / ranges, 6))
            group[np.isin(items.labels, known[_taken(known, ends, order, seed)])] = i
            names.append(f"{100 * ends[0]:.4g}-{100 * ends[1]:.4g} %")
        return dataclasses.replace(kept, group=group, group_names=(*names, "not trained on"))
    if against is not None:
        name, members = against
        group = np.where(_in_groups(kept, members), 0, 1)
        return dataclasses.replace(kept, group=group, group_names=(name, "others"))
    return kept


def _in_groups(items: Evaluation, names: Sequence[str]) -> NDArray[np.bool_]:
    """Mask of the items that belong to some groups, ``[n]``."""
    ids = {name: i for i, name in enumerate(items.group_names)}
    return np.isin(items.group, [registry.known("group of the dataset", n, ids) for n in names])


def place_in_class(label: Ints, count: Ints, seed: int | None) -> Ints:
    """Place of each image within its class, ``[n]``: by row, or by a seeded permutation."""
    rows = np.arange(len(label)) if seed is None else generator(seed, 1).permutation(len(label))
    sorted_rows = rows[np.argsort(label[rows], kind="stable")]
    start = np.cumsum(count) - count
    place = np.empty(len(label), np.int64)
    place[sorted_rows] = np.arange(len(label)) - np.repeat(start, count)
    return place
