"""Templates: one vector for all images that one template holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics import arrays


def templates(
    vectors: Any, template: Any, media: Any, *, weights: Any = None, flipped: Any = None
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Template vectors: mean inside each media id, sum over the media, normalised.

    Args:
        vectors: Image embeddings, ``[n, d]``, not normalised.
        template: Template of each image, ``[n]``.
        media: Media id of each image, ``[n]``; ids mean something inside one template only.
        weights: Face score of each image, ``[n]``; 1 by default.
        flipped: Embeddings of the mirrored images, added to ``vectors``, ``[n, d]``.

    Returns:
        The template ids, ascending, and their unit vectors ``[n_template, d]``.

    Raises:
        ValueError: If an argument has the wrong shape, type or value.

    Source:
        IJB-C's protocol as evaluated by BCT and MixBCT.
    """
    x = arrays.vectors("vectors", vectors)
    n = len(x)
    ids, t = np.unique(arrays.one_per_row("template", template, n), return_inverse=True)
    _, m = np.unique(arrays.one_per_row("media", media, n), return_inverse=True)
    w = np.ones(n) if weights is None else arrays.scores("weights", weights).astype(np.float64)
    if len(w) != n:
        raise ValueError(f"weights: expected shape ({n},), got {w.shape}")
    y = x if flipped is None else arrays.vectors("flipped", flipped, dim=x.shape[1])
    if len(y) != n:
        raise ValueError(f"flipped: expected {n} rows, got {len(y)}")
    out = np.zeros((len(ids), x.shape[1]))
    order = np.lexsort((m, t))
    _, start, size = np.unique(
        np.stack([t[order], m[order]], 1), axis=0, return_index=True, return_counts=True
    )
    for a, k in zip(start.tolist(), size.tolist(), strict=True):
        rows = order[a : a + k]
        add = x[rows].astype(np.float64)
        if flipped is not None:
            add += y[rows]
        out[t[rows[0]]] += (add * w[rows, None]).sum(0) / k
    norm = np.sqrt((out * out).sum(1, keepdims=True))
    return ids, (out / np.where(norm == 0, 1, norm)).astype(np.float32)
