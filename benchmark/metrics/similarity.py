"""How alike are two representations of the same items?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmark.ranking import arrays


class LinearCKA:
    """Linear centred kernel alignment on a stream of batches; memory is d x d, not n x n.

    Source:
        Kornblith et al., Similarity of Neural Network Representations Revisited, eq. 3 (feature
        form, centred).

    Example:
        >>> cka = LinearCKA()
        >>> x = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
        >>> cka.add(x, 3 * x + 1)
        >>> round(cka.value(), 12)
        1.0
    """

    def __init__(self) -> None:
        self._n = 0
        self._mean: Any = None
        self._moment: Any = None
        self._left = 0

    def add(self, left: Any, right: Any) -> None:
        """Take in vectors of the same items: ``left`` ``[n, d]``, ``right`` ``[n, e]``.

        Raises:
            ValueError: If the shapes do not fit each other or earlier batches, or hold NaN.
        """
        x = arrays.plain(left).astype(np.float64)
        y = arrays.plain(right).astype(np.float64)
        if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
            raise ValueError(f"right: expected as many rows as left, got {x.shape}, {y.shape}")
        both = np.concatenate([x, y], axis=1)
        arrays.finite("left and right", both)
        if self._mean is None:
            self._mean = np.zeros(both.shape[1])
            self._moment = np.zeros((both.shape[1], both.shape[1]))
            self._left = x.shape[1]
        if both.shape[1] != len(self._mean) or x.shape[1] != self._left:
            raise ValueError(
                f"left: expected dimensions {self._left} and {len(self._mean) - self._left}, "
                f"got {x.shape[1]} and {y.shape[1]}"
            )
        if not len(both):
            return
        # Centred within the batch, then moved to the joint mean: no cancellation on large offsets.
        mean = both.mean(0)
        centred = both - mean
        shift = mean - self._mean
        total = self._n + len(both)
        self._moment += centred.T @ centred
        self._moment += np.outer(shift, shift) * (self._n * len(both) / total)
        self._mean += shift * (len(both) / total)
        self._n = total

    def value(self) -> float:
        """The CKA in [0, 1]; 1 for representations equal up to rotation, scale and offset.

        Raises:
            ValueError: If nothing was added, or one side is constant.
        """
        if self._n < 2:
            raise ValueError(f"add: expected at least 2 items, got {self._n}")
        d = self._left
        xx, yy, xy = self._moment[:d, :d], self._moment[d:, d:], self._moment[:d, d:]
        scale = np.sqrt((xx * xx).sum()) * np.sqrt((yy * yy).sum())
        if scale == 0.0:
            raise ValueError("left, right: expected vectors that differ, got a constant side")
        return min(1.0, float((xy * xy).sum() / scale))


def linear_cka(batches: Iterable[tuple[Any, Any]]) -> float:
    """Linear CKA of a stream of (left, right) batches.

    Args:
        batches: Vectors of the same items by two models, ``[n, d]`` and ``[n, e]`` each.

    Returns:
        A value in [0, 1].

    Raises:
        ValueError: As :class:`LinearCKA`.
    """
    cka = LinearCKA()
    for left, right in batches:
        cka.add(left, right)
    return cka.value()
