"""Cosines of vectors, always by one and the same chain of operations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def unit(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors scaled to length 1; a zero vector stays zero, so that it scores 0 with all."""
    norm = np.sqrt(np.einsum("nd,nd->n", x, x, dtype=np.float64))[:, None]
    return (x / np.where(norm == 0, 1, norm)).astype(np.float32)


def tiles(
    left: NDArray[np.float32], right: NDArray[np.float32], rows: int = 512
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Scores of all pairs, some rows at a time: (rows, scores ``[rows, n_right]``)."""
    for start in range(0, len(left), rows):
        block = slice(start, min(start + rows, len(left)))
        yield block, left[block] @ right.T
