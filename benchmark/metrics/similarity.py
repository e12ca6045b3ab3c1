"""Similarity of two representations of the same items."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.catalog import metric
from benchmark.ranking import arrays

Floats = NDArray[np.float32]


def unit(vectors: Floats, distance: str) -> Floats:
    """Directions of vectors ``[n, d]`` where a cosine compares; else they stay as they are."""
    if distance != "cosine":
        return vectors
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


_ROUNDING = 1e-24  # of squares of float64, against those of a constant value


@metric("cka", "CKA", "Linear, centred; not defined where one side is constant.", higher=None)
def linear_cka(batches: Iterable[tuple[Any, Any]]) -> float:
    """Linear centred kernel alignment of a stream of batches; memory is d x d, not n x n.

    Each batch has vectors of the same items by two models, ``[n, d]`` and ``[n, e]``. The value in
    [0, 1] is 1 for representations equal up to rotation, scale and offset. A ValueError says that
    the shapes do not fit each other or earlier batches, a value is not finite, there are fewer than
    two items, or one side is constant. Source: Kornblith et al., Similarity of Neural Network
    Representations Revisited, eq. 3 (feature form, centred).

    Example:
        >>> x = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
        >>> round(linear_cka([(x, 3 * x + 1)]), 12)
        1.0
    """
    n, d = 0, 0
    mean, moment = np.zeros(0), np.zeros((0, 0))
    for left, right in batches:
        x, y = (arrays.plain(side).astype(np.float64) for side in (left, right))
        if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
            raise ValueError(f"right: expected as many rows as left, got {x.shape}, {y.shape}")
        both = np.concatenate([x, y], axis=1)
        arrays.finite("left and right", both)
        if not len(mean):
            d, mean, moment = x.shape[1], np.zeros(both.shape[1]), np.zeros((both.shape[1],) * 2)
        if both.shape[1] != len(mean) or x.shape[1] != d:
            got = f"{x.shape[1]} and {y.shape[1]}"
            raise ValueError(f"left: expected dimensions {d} and {len(mean) - d}, got {got}")
        if not len(both):
            continue
        # Centred within the batch, then moved to the joint mean: no cancellation on large offsets.
        middle = both.mean(0)
        centred, shift = both - middle, middle - mean
        total = n + len(both)
        moment += centred.T @ centred
        moment += np.outer(shift, shift) * (n * len(both) / total)
        mean += shift * (len(both) / total)
        n = total
    if n < 2:
        raise ValueError(f"batches: expected at least 2 items, got {n}")
    xx, yy, xy = moment[:d, :d], moment[d:, d:], moment[:d, d:]
    scale = np.sqrt((xx * xx).sum()) * np.sqrt((yy * yy).sum())
    sides = (xx, mean[:d]), (yy, mean[d:])
    if any(np.trace(about) <= _ROUNDING * n * (at @ at) for about, at in sides):
        raise ValueError("left, right: expected vectors that differ, got a constant side")
    return min(1.0, float((xy * xy).sum() / scale))
