"""How far a torch device's ranking lies from the exact one of the CPU.

``python -m benchmark.perf.tolerance [device]`` prints the table of this folder's README. A device
may add a score's products in any order; a CPU's torch adds up to some hundred in the exact path's
own. So each row comes twice: the second time the device gets the dimensions in reverse, which
leaves every true score as it is and changes each sum's order.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np

from benchmark.metrics import retrieval
from benchmark.perf import problems
from benchmark.ranking import engine, ranks, torch_backend


def deviation(
    dim: int,
    spread: float | None,
    device: str = "cpu",
    *,
    turned: bool = False,
    queries: int = 2000,
    items: int = 20_000,
    classes: int = 400,
) -> dict[str, Any]:
    """Compare both paths on random vectors, by cosine.

    Args:
        dim: Dimension.
        spread: Noise around the classes' centres; None for vectors without classes.
        device: A torch device.
        turned: Give the device the dimensions in reverse.
        queries: Queries.
        items: Items.
        classes: Classes.

    Returns:
        ``score``: largest absolute difference of two scores; ``ranks`` and ``ap``: shares of the
        queries whose first rank or average precision differs; ``cmc_at_1``, ``cmc_at_5`` and
        ``map``: differences of the means.
    """
    rng = np.random.default_rng(0)
    centre = problems.centres(classes, dim, rng)
    (q, ql), (g, gl) = (problems.clusters(n, centre, spread or 1.0, rng) for n in (queries, items))
    if spread is None:
        q, g = (rng.normal(size=x.shape).astype(np.float32) for x in (q, g))
    left = ranks.rank(q, g, ql, gl)
    step = -1 if turned else 1
    right = ranks.rank(q[:, ::step], g[:, ::step], ql, gl, device=f"torch:{device}")
    ap = [retrieval.average_precision(side) for side in (left, right)]
    means = {
        f"cmc_at_{k}": abs(float(retrieval.cmc(left, k).mean() - retrieval.cmc(right, k).mean()))
        for k in (1, 5)
    }
    return {
        "score": _scores(q[:1024], g, device, step),
        "ranks": float((left.first_rank != right.first_rank).mean()),
        "ap": float((ap[0] != ap[1]).mean()),
        **means,
        "map": abs(float(ap[0].mean() - ap[1].mean())),
        "exact_map": float(ap[0].mean()),
    }


def _scores(q: Any, g: Any, device: str, step: int) -> float:
    """The largest difference of two scores of the same float32 unit vectors."""
    import torch

    scorer = engine.Scorer(q, g)
    rows = [np.arange(n) for n in scorer.shape]
    exact = engine.tile(scorer.queries(rows[0]), scorer.items(rows[1]), l2=False)
    parts = [
        side.part(some) for side, some in zip((scorer.query, scorer.gallery), rows, strict=True)
    ]
    unit = [(x * scale[:, None]).astype(np.float32) for x, _, scale in parts]
    a, b = (torch.from_numpy(x[:, ::step].copy()).to(device) for x in unit)
    theirs = torch_backend.product(a, b).cpu().numpy()
    return float(np.abs(theirs - exact).max())


def main(device: str = "cpu") -> None:
    """Print the table."""
    write = sys.stdout.write
    write("| d | vectors | order | score | ranks | AP | CMC@1 | CMC@5 | mAP | exact mAP |\n")
    write("|---|---|---|---|---|---|---|---|---|---|\n")
    rows = itertools.product(((64, 1.5), (128, 2.0), (512, 3.0)), (False, True), (False, True))
    for (dim, spread), clustered, turned in rows:
        x = deviation(dim, spread if clustered else None, device, turned=turned)
        names = "clustered" if clustered else "random", "reversed" if turned else "as given"
        shares = " | ".join(f"{100 * x[key]:.2f} %" for key in ("ranks", "ap"))
        means = " | ".join(f"{x[key]:.1e}" for key in ("cmc_at_1", "cmc_at_5", "map"))
        write(f"| {dim} | {' | '.join(names)} | {x['score']:.1e} | {shares} | {means} | ")
        write(f"{x['exact_map']:.3f} |\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
