"""Two result lists as one ranking, and their backfilling curves, against one of each."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmark.contract.fusion import RankFusion, RankMerge, RescoredList, ScoreMerge
from benchmark.metrics import backfill_curves, backfill_orders
from benchmark.perf import measure, problems
from benchmark.ranking import ranks, two_lists
from benchmark.ranking.score_scale import Scale
from benchmark.ranking.two_lists import Merging

_RANK, _CURVES = "one full evaluation (rank, new/new)", "101 points, one query embedding"
_MOST = 10**7  # scores of a list that are merged block by block


def rows(
    queries: int = 50_000, gallery: int = 50_000, dim: int = 128, classes: int = 1000
) -> list[dict[str, Any]]:
    """Time what two lists take; see ``benchmark.perf.run``.

    Each item is scored in both lists. Merges that are not counted but ranked block by block are
    left out beyond a size.
    """
    rng = np.random.default_rng(0)
    nq, ng, ql, gl = problems.clustered((queries, gallery), dim, classes, 1.5, rng)
    oq, og = (x + rng.standard_normal(x.shape, dtype=np.float32) for x in (nq, ng))
    order = backfill_orders.random(range(gallery), 0)
    steps = Scale.checked(-1.0, 2 / 256, np.sort(rng.uniform(-1, 1, 257)))
    merges: dict[str, Merging] = {
        "raw scores": RankMerge(), "scaled scores": ScoreMerge.of(steps), "ranks": RankFusion()
    }  # fmt: skip

    def once(n: int, m: int) -> dict[str, Callable[[], object]]:
        old, new, labels = (oq[:n], og[:m]), (nq[:n], ng[:m]), (ql[:n], gl[:m])
        some = order[order < m]

        def half(merge: Merging) -> object:
            return backfill_curves.curves(*old, *new, *labels, some, points=3, merge=merge)

        def whole(merge: Merging) -> object:
            return two_lists.rank(old, new, labels, merge)

        calls: dict[str, Callable[[], object]] = {_RANK: lambda: ranks.rank(*new, *labels)}
        for name, merge in merges.items():
            calls[f"none, half, all filled, by {name}"] = partial(half, merge)
        calls["whole lists, sum of scores"] = partial(whole, ScoreMerge())
        if n * m <= _MOST:
            calls["whole lists, sum of bent scores"] = partial(whole, merges["scaled scores"])
            calls["whole lists, by ranks"] = partial(whole, merges["ranks"])
            calls["first 200 rescored"] = partial(whole, RescoredList(200))
        return calls

    def along(n: int, m: int) -> Mapping[str, Callable[[], object]]:
        sides = oq[:n], og[:m], nq[:n], ng[:m], ql[:n], gl[:m], order[order < m]
        curves = partial(backfill_curves.curves, *sides)
        names = {f"101 points, by {name}": merge for name, merge in merges.items()}
        return {_CURVES: curves} | {k: partial(curves, merge=m) for k, m in names.items()}

    few = min(queries, gallery, 300)
    for call in (*once(few, few).values(), *along(few, few).values()):
        call()
    size = f"{queries} x {gallery} x {dim}, {gallery / classes:g} matches a query"
    out = measure.rows(measure.together(once(queries, gallery), 2), size, _RANK)
    return out + measure.rows(measure.together(along(queries, gallery), 2), size, _CURVES)
