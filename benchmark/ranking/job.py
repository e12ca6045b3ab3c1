"""Checked arguments of a ranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import arrays, engine, grouping
from benchmark.ranking.engine import Side
from benchmark.ranking.grouping import Rules


@dataclass(frozen=True)
class Job:
    """Checked arguments of a ranking."""

    query: Side
    gallery: Side
    query_labels: NDArray[np.int64]
    gallery_labels: NDArray[np.int64]
    rules: Rules
    l2: bool
    threads: int
    junk: NDArray[np.bool_] | None  # gallery items that do not count; None for none


def make_job(
    query: Any,
    gallery: Any,
    query_labels: Any,
    gallery_labels: Any,
    query_ids: Any,
    gallery_ids: Any,
    query_cameras: Any,
    gallery_cameras: Any,
    junk: Any,
    distance: str,
    threads: int | None,
) -> Job:
    """Check the arguments of :func:`benchmark.ranking.ranks.rank`."""
    if distance not in ("cosine", "l2"):
        raise ValueError(f"distance: expected 'cosine' or 'l2', got {distance!r}")
    l2, n_threads = distance == "l2", engine.n_threads(threads)
    q = engine.side("query", query, l2=l2, threads=n_threads)
    g = engine.side("gallery", gallery, l2=l2, dim=q.x.shape[1], threads=n_threads, keep=False)
    sizes = len(q.x), len(g.x)
    ql, gl = arrays.codes("labels", query_labels, sizes[0], gallery_labels, sizes[1])
    both = [
        arrays.both(name, left, sizes[0], right, sizes[1])
        for name, left, right in (
            ("ids", query_ids, gallery_ids),
            ("cameras", query_cameras, gallery_cameras),
        )
    ]
    (qi, gi), (qc, gc) = both
    if junk is not None:
        junk = arrays.one_per_row("junk", junk, sizes[1]).astype(bool, copy=False)
    return Job(q, g, ql, gl, grouping.Rules(qi, gi, qc, gc), l2, n_threads, junk)
