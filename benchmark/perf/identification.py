"""Open-set 1:N identification at IJB-C's shape."""

from typing import Any

import numpy as np

from benchmark.metrics import identification
from benchmark.perf import measure


def rows(
    queries: int = 19_593, gallery: int = 3_531, dim: int = 512, classes: int = 3_531
) -> list[dict[str, Any]]:
    """Time TPIR@FPIR, rank-1 and rank-5 on two galleries of one template a subject."""
    rng = np.random.default_rng(0)
    centre = rng.standard_normal((max(classes, gallery), dim), dtype=np.float32)
    probe, subject = measure.clusters(queries, centre, 2.0, rng)
    enrolled = centre[:gallery] + rng.standard_normal((gallery, dim), dtype=np.float32)
    half = -(-gallery * 1772 // 3531)
    parts = [np.arange(0, half), np.arange(half, gallery)]

    def both() -> object:
        points: list[Any] = []
        for part in parts:
            result = identification.search(probe, subject, enrolled[part], part)
            unmated = int((~result.mated).sum())
            targets = [target for target in (1e-3, 1e-2, 1e-1) if target * unmated >= 1]
            points += identification.tpir_at_fpir(result, targets)
            points += [identification.rank_k(result, k).mean() for k in (1, 5)]
        return points

    both()
    sizes = " + ".join(str(len(part)) for part in parts)
    timings = measure.together({"TPIR@FPIR and rank-k, both galleries": both}, 3)
    return measure.rows(timings, f"{queries} probes on {sizes} x {dim}")
