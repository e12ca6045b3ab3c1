"""Inputs where the items are gone: maps are fitted on other texts, and judged in the old index."""

from dataclasses import dataclass, replace

import numpy as np

from benchmark.errors import BenchError
from benchmark.ranking.arrays import Floats
from benchmark.upgrade.formats.joining import Rearranged, join
from benchmark.upgrade.formats.rows import Rows, gather_directions
from benchmark.upgrade.read.gallery import Cluster, EmbeddedSample, GalleryBlock
from benchmark.upgrade.read.inputs import (
    LEAST,
    Inputs,
    of_queries,
    open_rows,
    read_queries,
    require_dims,
)
from benchmark.upgrade.read.order import SameOrder
from benchmark.upgrade.read.request import UpgradeRequest
from benchmark.upgrade.read.sampling import MOST_PAIRS

MOST_HELD = 1_000
"""Pairs that are held out, at most, and vectors that each of them is looked for among; items beside
queries."""
MOST_UNPAIRED = 4_000
"""Vectors of either side, where no pair is known: it takes minutes with as many."""
_LOOKED = 5_000
"""Stored vectors that are looked at."""


@dataclass(frozen=True)
class Apart:
    """Inputs without new vectors of items."""

    # its one sample has the other texts: pairs, or vectors of the gallery and of other
    # texts in no order, all of them fitted
    inputs: Inputs
    paired: bool
    known: GalleryBlock  # the relevant items, and those that are queries
    others: Floats  # stored vectors of some random items, [k, d_old]


def read_apart(request: UpgradeRequest, cluster: Cluster | None = None) -> Apart:
    """Read and check stored vectors, other texts, queries and relevance.

    Raises:
        BenchError: If something is missing, damaged or does not fit.
    """
    old, other, queries = (
        open_rows(request, name) for name in ("old_gallery", "pairs_new", "queries")
    )
    old_queries, pairs_old = (
        None if getattr(request, name) is None else open_rows(request, name)
        for name in ("old_queries", "pairs_old")
    )
    require_dims((queries, other), (old_queries, old), (pairs_old, old))
    none = np.empty(0, np.int64)
    inputs = read_queries(
        request, old, Rearranged(other, none), none, queries, old_queries, cluster
    )
    rng, relevant = np.random.default_rng([request.seed, 8]), np.unique(inputs.qrels.rows)
    if inputs.own is not None:
        relevant = np.union1d(relevant, inputs.own[inputs.own >= 0])
    most = MOST_HELD if pairs_old is not None else MOST_UNPAIRED
    order = rng.permutation(old.rows)
    some, seen = np.sort(order[:most]), np.sort(order[:_LOOKED])
    rows = np.union1d(relevant, seen)
    stored = inputs.gallery.stored_rows(rows)
    known, others, looked = (stored[np.searchsorted(rows, each)] for each in (relevant, some, seen))
    told = [line for each in (old, other, queries, old_queries, pairs_old) if each
            for line in each.told]  # fmt: skip
    if pairs_old is None:
        sample = _unpaired(others, other, inputs.distance, rng)
    else:
        sample, signs = _paired(pairs_old, other, inputs.distance, rng)
        told += signs
    if old_queries is not None:
        told += of_queries(queries, old_queries, inputs)
    sides = [(old, looked), (other, sample.new)]
    if pairs_old is not None:
        sides.insert(1, (pairs_old, sample.old))
    inputs = replace(inputs, samples=[sample], told=(*told, *inputs.told), looked=sides)
    block = GalleryBlock(relevant, known, none, np.empty((0, other.dim), np.float32))
    return Apart(inputs, pairs_old is not None, block, others[:MOST_HELD])


def _paired(
    old: Rows, new: Rows, distance: str, rng: np.random.Generator
) -> tuple[EmbeddedSample, list[str]]:
    """Pairs, of which a fifth is held out, a thousand at most; and warnings about their order."""
    joined = join(new, old)
    n = len(joined.left)
    if n < LEAST:
        raise BenchError(f"{new.name}: expected at least {LEAST} pairs, got {n}")
    order = rng.permutation(n)[: MOST_PAIRS + MOST_HELD]
    order.sort()
    left = gather_directions(old, joined.right[order], distance)
    right = gather_directions(new, joined.left[order], distance)
    same = SameOrder.of(joined, joined.right[order], left, right)
    if not same.holds:
        raise BenchError(
            f"{new.name}: expected the texts of {old.name}, row by row or by id, got vectors that "
            "are no more alike than shuffled ones"
        )
    held = np.zeros(len(order), bool)
    held[rng.permutation(len(order))[: min(MOST_HELD, len(order) // 5)]] = True
    return EmbeddedSample(np.arange(len(order)), left, right, ~held, held), same.warnings()


def _unpaired(
    stored: Floats, other: Rows, distance: str, rng: np.random.Generator
) -> EmbeddedSample:
    """As many stored vectors as vectors of other texts, none of which belongs to another."""
    n = min(len(stored), other.rows)
    if n < LEAST:
        raise BenchError(f"{other.name}: expected at least {LEAST} vectors of either side, got {n}")
    rows = np.sort(rng.permutation(other.rows)[:n])
    new = gather_directions(other, rows, distance)
    every = np.ones(n, bool)
    some = np.sort(rng.permutation(len(stored))[:n])
    return EmbeddedSample(np.arange(n), stored[some], new, every, ~every)
