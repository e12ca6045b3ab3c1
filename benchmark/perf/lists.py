"""Two result lists as one ranking, and their backfilling curves, against one of each."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmark.contract.fusion import RankFusion, RankMerge, RescoredList, ScoreMerge
from benchmark.metrics import backfill_curves, backfill_orders
from benchmark.perf import measure
from benchmark.ranking import engine, ranks, two_lists
from benchmark.ranking.score_scale import Scale
from benchmark.ranking.two_lists import Merging

_RANK, _CURVES = "one full evaluation (rank, new/new)", "101 points, one query embedding"
_SORTED = 200  # queries whose scores are sorted, to compare with


def rows(
    queries: int = 2_000, gallery: int = 20_000, dim: int = 128, classes: int = 400
) -> list[dict[str, Any]]:
    """Time what two lists take; see ``benchmark.perf.run``.

    Each item is scored in both lists. Ranks of all items are usually had by sorting: what NumPy
    takes for that alone, without any score product, stands beside them, for some queries.
    """
    rng = np.random.default_rng(0)
    nq, ng, ql, gl = measure.clustered((queries, gallery), dim, classes, 1.5, rng)
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

        def alone(merge: Merging) -> object:
            filled = np.isin(np.arange(m), some[: m // 2])
            return two_lists.rank(old, new, labels, merge, filled=filled)

        def whole(merge: Merging) -> object:
            return two_lists.rank(old, new, labels, merge)

        calls: dict[str, Callable[[], object]] = {_RANK: lambda: ranks.rank(*new, *labels)}
        for name, merge in merges.items():
            calls[f"none, half, all filled, by {name}"] = partial(half, merge)
            if merge.places_by == "score":
                calls[f"half filled alone, by {name}"] = partial(alone, merge)
        calls["whole lists, sum of scores"] = partial(whole, ScoreMerge())
        calls["whole lists, sum of bent scores"] = partial(whole, merges["scaled scores"])
        calls["whole lists, by ranks"] = partial(whole, merges["ranks"])
        for top in (200, 1000):
            calls[f"first {top} rescored"] = partial(whole, RescoredList(top))
        return calls

    def along(n: int, m: int) -> Mapping[str, Callable[[], object]]:
        sides = oq[:n], og[:m], nq[:n], ng[:m], ql[:n], gl[:m], order[order < m]
        curves = partial(backfill_curves.curves, *sides)
        both = merges | {"first 200 rescored": RescoredList(200)}
        names = {f"101 points, by {name}": merge for name, merge in both.items()}
        return {_CURVES: curves} | {k: partial(curves, merge=m) for k, m in names.items()}

    few = min(queries, gallery, 300)
    for call in (*once(few, few).values(), *along(few, few).values()):
        call()
    size = f"{queries} x {gallery} x {dim}, {gallery / classes:g} matches a query"
    timings = measure.together(once(queries, gallery))
    out = measure.rows(timings, size, _RANK) + _sorting(oq, og, nq, ng, timings[_RANK])
    return out + measure.rows(measure.together(along(queries, gallery), 2), size, _CURVES)


def _sorting(oq: Any, og: Any, nq: Any, ng: Any, whole: measure.Timing) -> list[dict[str, Any]]:
    """Time the order of all items in both lists, for some queries, from their scores."""
    some = [q[:_SORTED] @ g.T for q, g in ((oq, og), (nq, ng))]

    def sort() -> object:
        def work(first: int, last: int) -> None:
            for scores in some:
                np.argsort(scores[first:last], axis=1)

        engine.share(work, engine.spans(len(some[0]), 10), engine.n_threads(None))
        return None

    base = f"{_RANK} (as many queries)"
    part = measure.Timing(whole.seconds * len(some[0]) / len(oq), None)
    timings = {base: part, "argsort of both lists' scores": measure.once(sort)}
    return measure.rows(timings, f"{len(some[0])} x {len(og)}", base)[1:]
