"""Files that stages write: their names, and reading them."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.harness.work import EvaluationWork

MODEL = "model.safetensors"
HEAD = "head.safetensors"
IMAGES = "images"
"""The image encoder of a generation whose queries are texts."""
VECTORS = "vectors.npy"
CASES = "cases.json"
BACKFILLING = "backfilling.json"
DETAILS = "details.gz"

Stored = tuple[NDArray[np.float32], NDArray[np.float32] | None]
"""Vectors of a gallery: embeddings and side-information of all items."""


def load_vectors(folder: Path) -> NDArray[np.float32]:
    """Embeddings of all items, ``[n, d]``."""
    vectors: NDArray[np.float32] = np.load(folder / VECTORS)
    return vectors


def load_stored(work: EvaluationWork[Path], i: int) -> Stored:
    """Vectors of a gallery of generation ``i``; its embeddings are also its queries."""
    side = work.sides[i]
    return load_vectors(work.vectors[i]), None if side is None else load_vectors(side)
