"""Backfilling curves against one full evaluation of the same size."""

from typing import Any

import numpy as np

from benchmark.metrics import backfill_curves, backfill_orders
from benchmark.perf import measure
from benchmark.ranking import ranks


def rows(
    queries: int = 50_000, gallery: int = 50_000, dim: int = 128, classes: int = 1000
) -> list[dict[str, Any]]:
    """Time the 101-point curves of CMC@1, CMC@5 and mAP together; see ``benchmark.perf.run``."""
    rng = np.random.default_rng(0)
    nq, ng, ql, gl = measure.clustered((queries, gallery), dim, classes, 1.5, rng)
    oq, og = (x + rng.standard_normal(x.shape, dtype=np.float32) for x in (nq, ng))
    order = backfill_orders.random(range(gallery), 0)
    warm = min(queries, gallery, 300)
    few = slice(0, warm)
    new = nq[few], ng[few], ql[few], gl[few]
    backfill_curves.curves(oq[few], og[few], *new, range(warm))
    ranks.rank(*new)

    def all_curves() -> object:
        result = backfill_curves.curves(oq, og, nq, ng, ql, gl, order)
        return result.cmc(1).mean(1), result.cmc(5).mean(1), result.map().mean(1)

    base = "one full evaluation (rank, new/new)"
    calls = {
        base: lambda: ranks.rank(nq, ng, ql, gl),
        "101 points of CMC@1, CMC@5, mAP": all_curves,
    }
    size = f"{queries} x {gallery} x {dim}, {gallery / classes:g} matches a query"
    return measure.rows(measure.together(calls, 2), size, base)
