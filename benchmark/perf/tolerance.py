"""Distance of a torch device's ranking from the exact one of the CPU.

A device may add a score's products in any order; a CPU's torch adds up to some hundred in the exact
path's own. So each row comes twice, the second time with the dimensions in reverse, which changes
only each sum's order. ``python -m benchmark.perf.tolerance cuda`` prints another device's rows.
"""

import itertools
import sys
from typing import Any

import numpy as np
import torch

from benchmark.metrics import retrieval
from benchmark.perf import measure, readme
from benchmark.ranking import engine, ranks, torch_backend
from benchmark.report import render


def rows(
    queries: int = 2000, gallery: int = 20_000, classes: int = 400, device: str = "cpu"
) -> list[dict[str, Any]]:
    """Compare both paths by cosine, on clusters and on vectors without classes.

    ``score``: largest absolute difference of two scores, of the first 1,024 queries; ``ranks`` and
    ``ap``: shares of the queries whose first rank or average precision differs; ``cmc_at_1``,
    ``cmc_at_5`` and ``map``: differences of the means; ``exact_map``.
    """
    out = []
    kinds = itertools.product(((64, 1.5), (128, 2.0), (512, 3.0)), ("random", "clustered"))
    for (dim, spread), kind in kinds:
        rng = np.random.default_rng(0)
        q, g, ql, gl = measure.clustered((queries, gallery), dim, classes, spread, rng)
        if kind == "random":
            q, g = (rng.normal(size=x.shape).astype(np.float32) for x in (q, g))
        exact = ranks.rank(q, g, ql, gl)
        for order, step in (("as given", 1), ("reversed", -1)):
            a, b = q[:, ::step], g[:, ::step]
            other = ranks.rank(a, b, ql, gl, device=f"torch:{device}")
            ap = [retrieval.average_precision(side) for side in (exact, other)]
            cmc_1, cmc_5 = ([retrieval.cmc(side, k) for side in (exact, other)] for k in (1, 5))
            out.append({
                "dim": dim, "vectors": kind, "order": order,
                "score": _scores(q[:1024], g, device, step),
                "ranks": float((exact.first_rank != other.first_rank).mean()),
                "ap": float((ap[0] != ap[1]).mean()),
                "cmc_at_1": abs(float(cmc_1[0].mean() - cmc_1[1].mean())),
                "cmc_at_5": abs(float(cmc_5[0].mean() - cmc_5[1].mean())),
                "map": abs(float(ap[0].mean() - ap[1].mean())),
                "exact_map": float(ap[0].mean()),
            })  # fmt: skip
    return out


def _scores(q: Any, g: Any, device: str, step: int) -> float:
    """The largest difference of two scores of the same float32 unit vectors."""
    scorer = engine.Scorer(q, g)
    each = [np.arange(n) for n in scorer.shape]
    exact = engine.tile(scorer.queries(each[0]), scorer.items(each[1]), l2=False)
    parts = [side.part(r) for side, r in zip((scorer.query, scorer.gallery), each, strict=True)]
    units = [(x * scale[:, None]).astype(np.float32)[:, ::step].copy() for x, _, scale in parts]
    theirs = torch_backend.product(*(torch.from_numpy(x).to(device) for x in units))
    return float(np.abs(theirs.cpu().numpy() - exact).max())


if __name__ == "__main__":
    sys.stdout.write(render(readme.table(rows(device=sys.argv[1]))))
