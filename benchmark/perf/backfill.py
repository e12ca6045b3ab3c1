"""Backfilling curves against one full evaluation of the same size."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmark.metrics import backfill_curves, backfill_orders
from benchmark.perf import measure, problems
from benchmark.ranking import ranks


def rows(
    queries: int = 50_000, gallery: int = 50_000, dim: int = 128, classes: int = 1000
) -> list[dict[str, Any]]:
    """Time the 101-point curves of CMC@1, CMC@5 and mAP together.

    Args:
        queries: Queries.
        gallery: Items.
        dim: Dimension of the old and of the new vectors.
        classes: Classes.

    Returns:
        Rows, see ``benchmark.perf.run``.
    """
    rng = np.random.default_rng(0)
    centre = problems.centres(classes, dim, rng)
    nq, ql = problems.clusters(queries, centre, 1.5, rng)
    ng, gl = problems.clusters(gallery, centre, 1.5, rng)
    oq, og = (x + rng.standard_normal(x.shape, dtype=np.float32) for x in (nq, ng))
    order = backfill_orders.random(range(gallery), 0)
    warm = min(queries, gallery, 300)
    few = slice(0, warm)
    backfill_curves.curves(
        oq[few],
        og[few],
        nq[few],
        ng[few],
        ql[few],
        gl[few],
        backfill_orders.random(range(warm), 0),
    )
    ranks.rank(nq[few], ng[few], ql[few], gl[few])
    base = "one full evaluation (rank, new/new)"

    def all_curves() -> object:
        found = backfill_curves.curves(oq, og, nq, ng, ql, gl, order)
        return found.cmc(1).mean(1), found.cmc(5).mean(1), found.map().mean(1)

    found = measure.together({base: lambda: ranks.rank(nq, ng, ql, gl), "curves": all_curves}, 2)
    size = f"{queries} x {gallery} x {dim}, {gallery / classes:g} matches a query"
    return [
        measure.row(base, found[base], size),
        measure.row(
            "101 points of CMC@1, CMC@5, mAP", found["curves"], size, base, found[base].seconds
        ),
    ]
