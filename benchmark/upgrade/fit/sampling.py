"""The sample that a study works on: items that maps are fitted on, and those held out.

What a map was fitted on is never a relevant item for it. Where most of the sample is relevant to
some query, maps are fitted twice, each time on another half of these, and each relevant item is
judged by maps that have not seen it.
"""

from collections.abc import Iterator

import numpy as np

from benchmark.errors import BenchError
from benchmark.ranking.arrays import Ints, Mask
from benchmark.upgrade.read.gallery import Sample
from benchmark.upgrade.read.inputs import Inputs
from benchmark.upgrade.search.lists import Relevant, possible_ranks

MOST_PAIRS = 20_000
"""Pairs that maps are fitted on, at most."""
MOST_HELD = 20_000
"""Held-out items of the smaller gallery, beside those that are relevant."""
MOST_BYTES = 2**30
"""Of vectors of relevant items that are judged; of more of them some are drawn."""


def make_samples(inputs: Inputs, seed: int) -> list[Sample]:
    """One sample, or two of the same items that differ in what maps are fitted on.

    Where few of the embedded items are relevant these are all held out, and a fifth of the others.
    Else each sample fits maps on one half of the relevant items and holds the other one out; by
    agreement with the new model there is one, and half of all items are held out.
    """
    gallery = inputs.gallery
    rng, s = np.random.default_rng([seed, 2]), len(gallery.embedded)
    relevant = np.isin(gallery.embedded, inputs.relevance.rows)
    splits = [np.zeros(s, bool)]  # relevant items that maps are fitted on
    if inputs.judge == "agreement":
        held = [rng.random(s) < 0.5]
    else:
        if relevant.sum() > s // 2:
            half = rng.random(s) < 0.5
            splits = [relevant & half, relevant & ~half]
        others = rng.random(s) < 0.2
        held = [np.where(relevant, ~seen, others) for seen in splits]
    fitted = [_some(~mask, MOST_PAIRS, rng) for mask in held]
    kept = _some(relevant, _most_relevant(inputs), rng)
    plain = _some(np.logical_and.reduce(held) & ~relevant, MOST_HELD, rng)
    keep = np.logical_or.reduce([*fitted, kept, plain])
    places = np.flatnonzero(keep)
    vectors = gallery.sample(places)
    rows, used = gallery.embedded[places], kept | plain
    return [
        Sample(rows, *vectors, fit[places], (mask & ~fit & used)[places])
        for mask, fit in zip(held, fitted, strict=True)
    ]


def _most_relevant(inputs: Inputs) -> int:
    gallery = inputs.gallery
    return max(MOST_BYTES // (4 * (gallery.stored.dim + gallery.new.dim)), MOST_HELD)


def _some(mask: Mask, most: int, rng: np.random.Generator) -> Mask:
    """At most so many of the items of a mask."""
    out = np.zeros(len(mask), bool)
    out[rng.permutation(np.flatnonzero(mask))[:most]] = True
    return out


def judged_pairs(inputs: Inputs, held: Ints) -> Relevant:
    """Pairs of queries and relevant items; those count whose item is one of ``held`` rows.

    Raises:
        BenchError: If none counts.
    """
    of = inputs.relevance
    query = np.repeat(np.arange(len(of.offset) - 1), np.diff(of.offset))
    rows, gains = of.rows, of.gains
    judged = np.isin(rows, held)
    if inputs.own is not None:
        other = rows != inputs.own[query]
        with_own = np.flatnonzero(inputs.own >= 0)
        query = np.concatenate([query[other], with_own])
        rows = np.concatenate([rows[other], inputs.own[with_own]])
        gains = np.concatenate([gains[other], np.ones(len(with_own))])
        judged = np.concatenate([judged[other], np.zeros(len(with_own), bool)])
        order = np.lexsort((rows, query))
        query, rows, gains, judged = query[order], rows[order], gains[order], judged[order]
    if of.known and not judged.any():
        raise BenchError(
            "relevance: expected new vectors of relevant items, got none: embed the items that "
            "are relevant to the queries, too"
        )
    return Relevant(len(of.offset) - 1, query, rows, gains, judged)


def joined_ranks(relevant: Relevant, folds: Iterator[tuple[Sample, Ints]]) -> Ints:
    """Ranks of the judged pairs, each of the sample that holds its item out.

    ``folds`` are samples, and the ranks that maps fitted on them give. Two items of a query may
    then have one rank, of two lists; the second one has the next.
    """
    query, row = relevant.query[relevant.judged], relevant.row[relevant.judged]
    out = np.zeros(len(row), np.int64)
    for sample, ranks in folds:
        mine = np.isin(row, sample.rows[sample.held])
        out[mine] = ranks[mine]
    return possible_ranks(out, query)
