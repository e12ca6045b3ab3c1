"""The sample that a study works on: items that maps are fitted on, and those held out.

What a map was fitted on is never a relevant item for it. Where most of the sample is relevant to
some query, maps are fitted twice, each time on another half of these, and each relevant item is
evaluated by maps that have not seen it. Items that are queries are fitted on only where they are
most of the sample.
"""

import numpy as np

from benchmark.ranking.arrays import Ints, Mask
from benchmark.upgrade.read.gallery import Gallery
from benchmark.upgrade.read.qrels import Criterion

MOST_PAIRS = 20_000
"""Pairs that maps are fitted on, at most."""
MOST_HELD = 20_000
"""Held-out items of the smaller gallery, beside those that are relevant."""
MOST_BYTES = 2**30
"""Of vectors of relevant items that are counted; of more of them some are drawn."""


def split(
    gallery: Gallery, relevant_rows: Ints, own: Ints | None, criterion: Criterion, seed: int
) -> tuple[Ints, list[tuple[Mask, Mask]]]:
    """Split embedded items into one sample, or two of the same items that differ in ``fitted``.

    Where few of the embedded items are relevant these are all held out, and a fifth of the others.
    Else each sample fits maps on one half of the relevant items and holds the other one out; by
    agreement with the new model there is one, and half of all items are held out.

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
    seen = [np.zeros(s, bool)]  # relevant items that maps are fitted on
    if criterion == "agreement":
        held = [rng.random(s) < 0.5]
    else:
        if relevant.sum() > s // 2:
            half = rng.random(s) < 0.5
            seen = [relevant & half, relevant & ~half]
        others = rng.random(s) < 0.2
        held = [np.where(relevant, ~each, others) for each in seen]
    held = [np.where(asked & ~relevant, True, mask) for mask in held]
    fitted = [_some(~mask & ~asked, MOST_PAIRS, rng) for mask in held]
    most = max(MOST_BYTES // (4 * (gallery.stored.dim + gallery.new.dim)), MOST_HELD)
    kept = _some(relevant, most, rng)
    plain = _some(np.logical_and.reduce(held) & ~relevant, MOST_HELD, rng)
    places = np.flatnonzero(np.logical_or.reduce([*fitted, kept, plain]))
    masks = zip(fitted, held, strict=True)
    return places, [(fit[places], (mask & ~fit & (kept | plain))[places]) for fit, mask in masks]


def _some(mask: Mask, most: int, rng: np.random.Generator) -> Mask:
    """At most so many of the items of a mask."""
    out = np.zeros(len(mask), bool)
    out[rng.permutation(np.flatnonzero(mask))[:most]] = True
    return out
