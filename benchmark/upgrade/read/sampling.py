"""The sample that a study works on: items that maps are fitted on, and those held out.

A map ranks what it was fitted on too high. So no relevant item is one that its maps have seen; and
where most of the sample is relevant to some query, or maps see much of the gallery, they are fitted
some more times, each time without another part of the sample: every item of the gallery is then
scored by maps that have not seen it. Items that are queries are fitted on only where they are most
of the sample.
"""

import numpy as np

from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.upgrade.read.gallery import Gallery
from benchmark.upgrade.read.qrels import Criterion

FOLDS = 4
"""Fits that each leave out another quarter of the sample: with fewer of them maps are fitted on
less, and differ more from each other."""
MUCH = 0.1
"""Share of the gallery from which on what maps have seen moves their scores."""
_DISTINCT = 50  # different vectors, at least, that copies are kept together for
MOST_PAIRS = 20_000
"""Pairs that maps are fitted on, at most."""
MOST_HELD = 20_000
"""Held-out items of the smaller gallery, beside those that are relevant."""
MOST_BYTES = 2**30
"""Of vectors of relevant items that are counted; of more of them some are drawn."""


def split(
    gallery: Gallery, relevant_rows: Ints, own: Ints | None, criterion: Criterion, seed: int
) -> tuple[Ints, list[tuple[Mask, Mask]]]:
    """Split embedded items into one sample, or more of the same items that differ in ``fitted``.

    The first holds out the relevant ones, or half of them where most items are, and a fifth of the
    others; by agreement with the new model half of all. Others, where there are, hold out another
    part of all items each.

    ``relevant_rows`` are relevant to some query, ``own`` are those of the queries' own items, if
    queries are items.

    Returns:
        Places among the embedded rows, ascending, ``[c]``; of each sample the items that maps are
        fitted on, and those that are held out, ``[c]`` each.
    """
    rng, s = np.random.default_rng([seed, 2]), len(gallery.embedded)
    relevant = np.isin(gallery.embedded, relevant_rows)
    asked = np.isin(gallery.embedded, [] if own is None else own)
    if asked.sum() > s // 2:
        asked[:] = False
    if criterion == "agreement":
        held = [rng.random(s) < 0.5]
    else:
        crowded = relevant.sum() > s // 2
        half = relevant & (rng.random(s) < 0.5) if crowded else relevant
        held = [half | (~relevant & (rng.random(s) < 0.2))]
        if crowded or min(int((~held[0]).sum()), MOST_PAIRS) >= MUCH * gallery.rows:
            part = _parts(relevant, rng)
            held += [part == k for k in range(FOLDS)]
    held = [np.where(asked & ~relevant, True, mask) for mask in held]
    fits = [at_most(~mask & ~asked, MOST_PAIRS, rng) for mask in held]
    most = max(MOST_BYTES // (4 * (gallery.stored.dim + gallery.new.dim)), MOST_HELD)
    kept = at_most(relevant, most, rng)
    plain = at_most(held[0] & ~relevant, MOST_HELD, rng)
    places = np.flatnonzero(np.logical_or.reduce([*fits, kept, plain]))
    masks = zip(fits, held, strict=True)
    return places, [(fit[places], (mask & ~fit & (kept | plain))[places]) for fit, mask in masks]


def together(
    old: Floats, relevant: Mask, masks: list[tuple[Mask, Mask]]
) -> list[tuple[Mask, Mask]]:
    """Masks of a sample that equal items have in common: those of a relevant one, else the first's.

    A map that has seen an item has seen its copies. Where few differ all stays as it is.
    """
    first, take = dict[bytes, int](), np.empty(len(old), np.int64)
    for i in np.argsort(~relevant, kind="stable").tolist():
        take[i] = first.setdefault(old[i].tobytes(), i)
    if len(first) < _DISTINCT:
        return masks
    return [(fitted[take], held[take]) for fitted, held in masks]


def _parts(relevant: Mask, rng: np.random.Generator) -> Ints:
    """A part for each item, of ``FOLDS`` parts that are equal in relevant items and in others."""
    part = np.empty(len(relevant), np.int64)
    for kind in (relevant, ~relevant):
        part[kind] = rng.permutation(np.arange(int(kind.sum())) % FOLDS)
    return part


def at_most(mask: Mask, most: int, rng: np.random.Generator) -> Mask:
    """The items of a mask, or so many of them, drawn at random, where it has more."""
    out = np.zeros(len(mask), bool)
    out[rng.permutation(np.flatnonzero(mask))[:most]] = True
    return out
