"""Templates: one vector for all images that one template holds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import arrays
from benchmark.ranking.arrays import Floats


def templates(
    vectors: Any, template: Any, media: Any, *, weights: Any = None, flipped: Any = None,
    threads: int | None = None,
) -> tuple[NDArray[Any], Floats]:  # fmt: skip
    """Template ids, ascending, and unit vectors: mean inside each media id, sum over the media.

    The vectors are float32, ``[n_template, d]``. A ValueError names an argument of the wrong shape,
    type or value. Source: IJB-C's protocol as evaluated by BCT and MixBCT.

    Args:
        vectors: Image embeddings, ``[n, d]``, not normalised.
        template: Template of each image, ``[n]``.
        media: Media id of each image, ``[n]``; ids mean something inside one template only.
        weights: Face score of each image, ``[n]``; 1 by default.
        flipped: Embeddings of the mirrored images, added to ``vectors``, ``[n, d]``.
        threads: CPU threads; all by default.
    """
    from benchmark.ranking import engine, pair_kernels

    x = arrays.vectors("vectors", vectors)
    n = len(x)
    ids, t = np.unique(arrays.one_per_row("template", template, n), return_inverse=True)
    _, m = np.unique(arrays.one_per_row("media", media, n), return_inverse=True)
    w = np.ones(n) if weights is None else arrays.scores("weights", weights).astype(np.float64)
    if len(w) != n:
        raise ValueError(f"weights: expected shape ({n},), got {w.shape}")
    mirrored = x[:0]
    if flipped is not None:
        mirrored = arrays.vectors("flipped", flipped, dim=x.shape[1])
        if len(mirrored) != n:
            raise ValueError(f"flipped: expected {n} rows, got {len(mirrored)}")
    order = np.lexsort((m, t))
    start = np.searchsorted(t[order], np.arange(len(ids) + 1))
    out = np.empty((len(ids), x.shape[1]), np.float32)
    engine.share(
        lambda a, b: pair_kernels.templates(x, mirrored, w, order, m, start, a, b, out),
        engine.spans(len(ids), 256),
        engine.n_threads(threads),
    )
    return ids, out
