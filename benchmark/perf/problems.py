"""Floats to time with: clusters as an embedding makes them."""

import numpy as np

from benchmark.ranking.arrays import Floats, Ints


def clusters(n: int, centre: Floats, noise: float, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Floats around class centres ``[classes, dim]``, and their classes."""
    labels = np.arange(n, dtype=np.int64) % len(centre)
    rng.shuffle(labels)
    x = rng.standard_normal((n, centre.shape[1]), dtype=np.float32)
    x *= np.float32(noise)
    x += centre[labels]
    return x, labels


def clustered(
    sizes: tuple[int, int], dim: int, classes: int, noise: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Ints, Ints]:
    """Queries and gallery around the same class centres, and their classes."""
    centre = rng.standard_normal((classes, dim), dtype=np.float32)
    (q, ql), (g, gl) = (clusters(n, centre, noise, rng) for n in sizes)
    return q, g, ql, gl
