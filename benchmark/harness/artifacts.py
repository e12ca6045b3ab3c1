"""Files that stages write: their names, and reading them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MODEL = "model.safetensors"
HEAD = "head.safetensors"
IMAGES = "images"
"""The image encoder of a generation whose queries are texts."""
VECTORS = "vectors.npy"
FROZEN = "frozen"
"""Roles of features that stand in place of images begin so: ``frozen0.1``, backbone and view."""
CASES = "cases.json"
BACKFILLING = "backfilling.json"
DETAILS = "details.gz"

Inputs = Mapping[str, Path]
"""Role -> folder of a stage's output."""
Stored = tuple[NDArray[np.float32], NDArray[np.float32] | None]
"""Vectors of a gallery: embeddings and side-information of all items."""


def load_vectors(folder: Path) -> NDArray[np.float32]:
    """Embeddings of all items, ``[n, d]``."""
    vectors: NDArray[np.float32] = np.load(folder / VECTORS)
    return vectors


def n_generations(inputs: Iterable[str]) -> int:
    """Number of generations that an evaluation has embeddings of."""
    return sum(role.startswith("vectors") for role in inputs)


def load_stored(inputs: Inputs, i: int) -> Stored:
    """Vectors of a gallery of generation ``i``; its embeddings are also its queries."""
    side = inputs.get(f"side{i}")
    return load_vectors(inputs[f"vectors{i}"]), None if side is None else load_vectors(side)
