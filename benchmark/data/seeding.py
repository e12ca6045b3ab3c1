"""Seeded orders and streams of random numbers. Not a dataset itself."""

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
