"""Backfilling: how the scores rise while a gallery is refilled, item by item in a given order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmark.metrics import backfill_curves
from benchmark.metrics.backfill_orders import is_oracle
from benchmark.tasks.base import Options, Refill, key, template_vectors

if TYPE_CHECKING:
    from numpy import float32, float64, int64
    from numpy.typing import NDArray

    from benchmark.data.base import Evaluation

PARTIAL = True
"""This task judges galleries between two cases, not a case."""

POINTS = 101
"""Every percent of the gallery."""

COARSE = 5
"""Flips and groups are kept at every so many points."""


def evaluate(
    refill: Refill, orders: Mapping[str, NDArray[int64]], items: Evaluation, options: Options
) -> dict[str, Any]:
    """Scores along the refilling of a gallery, for each order.

    Args:
        refill: Vectors of all items.
        orders: Name -> all items, the first one to be refilled first; oracles, by their
            names, are those whose agreement with the others is reported.
        items: Which of them ask, which are stored, their classes, templates and groups.
        options: ``distance``, ``fpir`` and ``tasks``: without ``retrieval`` among them items are
            not ranked, only templates are searched for.

    Returns:
        ``offline``: metric -> score ``before`` (old queries, old gallery), ``after`` and ``area``
        of a deployment that waits until all is refilled. ``orders``: name -> ``area``,
        ``intervals``, ``curves``, ``flips``, ``groups`` and ``tau``. ``groups``: their names.
        ``counts``. Curves are not rounded.

    Note:
        A template counts as refilled when its last item is: its vector is a sum over its items,
        which two models with different spaces do not share.

    Source:
        FastFill section 5.1 (eq. 6), appendices D, E and F.
    """
    run = _Run(refill, items, options)
    found = {name: run.order(rows) for name, rows in orders.items()}
    places = {name: _places(rows)[items.gallery] for name, rows in orders.items()}
    for name, each in found.items():
        each["tau"] = {
            oracle: _tau(places[name], places[oracle])
            for oracle in orders
            if is_oracle(oracle) and oracle != name
        }
    return {
        "points": POINTS, "every": COARSE, "groups": run.group_names, "counts": run.counts,
        "offline": run.offline(), "orders": found,
    }  # fmt: skip


_UNRANKED: dict[str, Any] = {
    "intervals": {}, "curves": {}, "flips": {"positive": [], "negative": []}, "groups": {},
}  # fmt: skip
"""Of an order, where items are not ranked."""

_Search = tuple[Any, Any, Any, Any, Any, Any]
"""Probes and gallery with stored and with new vectors, and the subjects of both."""


class _Run:
    """What all orders of one update share."""

    def __init__(self, refill: Refill, items: Evaluation, options: Options) -> None:
        q, g = items.query, items.gallery
        self.refill, self.items, self.options = refill, items, options
        self.given = (refill.view[q], refill.stored[g], refill.new[q], refill.new[g])
        self.ranked = "retrieval" in options.get("tasks", ("retrieval",))
        used = np.unique(items.group[np.concatenate([q, g])])
        self.groups = used if len(used) > 1 else used[:0]
        self.group_names = [items.group_names[i] for i in self.groups]
        self.searches = list(_searches(refill, items)) if len(items.galleries) else []
        self.counts = {"n_query": len(q), "n_gallery": len(g)}

    def order(self, rows: NDArray[int64]) -> dict[str, Any]:
        """Everything about one order."""
        place = _places(rows)
        made = self._retrieval(place) if self.ranked else dict(_UNRANKED)
        found = self._identification(place)
        curves = {**made["curves"], **{name: curve.tolist() for name, curve in found.items()}}
        area = {name: backfill_curves.area(np.array(curve)) for name, curve in curves.items()}
        return {"area": area, **made, "curves": curves}

    def _retrieval(self, place: NDArray[int64]) -> dict[str, Any]:
        """What comes of ranking every item: curves, intervals, flips, groups."""
        from benchmark.metrics.statistics import bootstrap

        items, q, g = self.items, self.items.query, self.items.gallery
        order = np.argsort(place[g], kind="stable")
        found = backfill_curves.curves(
            *self.given, items.labels[q], items.labels[g], order, points=POINTS,
            query_ids=items.ids[q], gallery_ids=items.ids[g], distance=self.options["distance"],
        )  # fmt: skip
        per_query = {"cmc_at_1": found.cmc(1), "cmc_at_5": found.cmc(5), "map": found.map()}
        positive, negative = backfill_curves.flips(per_query["cmc_at_1"])
        return {
            "intervals": {name: bootstrap(v.mean(0)) for name, v in per_query.items()},
            # Row by row: the ends are then the scores of the cases, to the last bit.
            "curves": {
                name: [float(np.mean(v, dtype=np.float64)) for v in values]
                for name, values in per_query.items()
            },
            "flips": {
                "positive": positive[::COARSE].tolist(),
                "negative": negative[::COARSE].tolist(),
            },
            "groups": self._by_group(
                per_query["cmc_at_1"], items.group[q][found.answered], order, items.group[g]
            ),
        }

    def _identification(self, place: NDArray[int64]) -> dict[str, NDArray[float64]]:
        """TPIR@FPIR, the mean over the enrolment galleries."""
        parts: dict[str, list[NDArray[float64]]] = {}
        for given, template in self.searches:
            last = np.full(len(given[5]), -1)
            known = template >= 0
            np.maximum.at(last, template[known], place[known])
            found = backfill_curves.search_curves(
                *given, order=np.argsort(last, kind="stable"), points=POINTS
            )
            outsiders = int((~found.mated).sum())
            for target in self.options["fpir"]:
                if target * outsiders >= 1 and found.mated.any():
                    name = key("tpir_at_fpir", target)
                    parts.setdefault(name, []).append(found.tpir_at_fpir(target))
        return {name: np.mean(curves, axis=0) for name, curves in parts.items()}

    def _by_group(
        self,
        hits: NDArray[float64],
        asking: NDArray[int64],
        order: NDArray[int64],
        stored: NDArray[int64],
    ) -> dict[str, Any]:
        """CMC@1 of each group of queries, and how early each group's items are refilled.

        ``gap`` and ``share_gap`` are best minus worst group along the order; ``cmc_at_1`` and
        ``share`` are each group's means along it. A group's share is 0.5 where an order does not
        look at groups, and larger where it is refilled early.
        """
        if not len(self.groups):
            return {}
        score = backfill_curves.by_group(hits, asking)
        share = backfill_curves.group_share(order, stored, POINTS)
        return {
            "gap": backfill_curves.group_gap(score)[::COARSE].tolist(),
            "share_gap": backfill_curves.group_gap(share)[::COARSE].tolist(),
            "cmc_at_1": [_area_of(score, group) for group in self.groups.tolist()],
            "share": [_area_of(share, group) for group in self.groups.tolist()],
        }

    def offline(self) -> dict[str, dict[str, float]]:
        """Old queries in the old gallery until every item is done, then new in new."""
        before, after = (self._ends(v) for v in (self.refill.old, self.refill.new))
        made = {}
        for name, value in before.items():
            curve = backfill_curves.offline(np.array([value] * (POINTS - 1) + [after[name]]))
            made[name] = {
                "before": value,
                "after": after[name],
                "area": backfill_curves.area(curve),
            }
        return made

    def _ends(self, vectors: NDArray[float32]) -> dict[str, float]:
        return (self._retrieved(vectors) if self.ranked else {}) | self._identified(vectors)

    def _retrieved(self, vectors: NDArray[float32]) -> dict[str, float]:
        from benchmark.metrics.retrieval import average_precision, cmc
        from benchmark.ranking.ranks import rank

        items, q, g = self.items, self.items.query, self.items.gallery
        found = rank(
            vectors[q], vectors[g], items.labels[q], items.labels[g],
            query_ids=items.ids[q], gallery_ids=items.ids[g], distance=self.options["distance"],
        )  # fmt: skip
        values = {"cmc_at_1": cmc(found, 1), "cmc_at_5": cmc(found, 5)}
        values["map"] = average_precision(found)
        return {name: float(np.mean(v, dtype=np.float64)) for name, v in values.items()}

    def _identified(self, vectors: NDArray[float32]) -> dict[str, float]:
        from benchmark.metrics.identification import search, tpir_at_fpir

        parts: dict[str, list[float]] = {}
        for enrolled in self.items.galleries:
            probe, subject = template_vectors(vectors, self.items, self.items.probes)
            found = search(probe, subject, *template_vectors(vectors, self.items, enrolled))
            outsiders = int((~found.mated).sum())
            targets = [t for t in self.options["fpir"] if t * outsiders >= 1 and found.mated.any()]
            for point in tpir_at_fpir(found, targets) if targets else ():
                parts.setdefault(key("tpir_at_fpir", point.target), []).append(point.tpir)
        return {name: float(np.mean(values)) for name, values in parts.items()}


def _searches(refill: Refill, items: Evaluation) -> Iterator[tuple[_Search, NDArray[int64]]]:
    """Arguments of a search in each enrolment gallery, and the place of each item's template."""
    old_probe, subject = template_vectors(refill.view, items, items.probes)
    new_probe, _ = template_vectors(refill.new, items, items.probes)
    for enrolled in items.galleries:
        old, owner = template_vectors(refill.stored, items, enrolled)
        new, _ = template_vectors(refill.new, items, enrolled)
        by_name = np.argsort(enrolled)
        spot = np.searchsorted(enrolled, items.template, sorter=by_name)
        place = by_name[np.minimum(spot, len(enrolled) - 1)]
        mine = np.where(enrolled[place] == items.template, place, -1)
        yield (old_probe, old, new_probe, new, subject, owner), mine


def _places(rows: NDArray[int64]) -> NDArray[int64]:
    """At which place each item comes."""
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    return place


def _tau(left: NDArray[int64], right: NDArray[int64]) -> float | None:
    from benchmark.metrics.statistics import kendall_tau

    if len(left) < 2:
        return None
    return kendall_tau(left.astype(np.float64), right.astype(np.float64))


def _area_of(curves: Mapping[Any, NDArray[float64]], group: int) -> float | None:
    from benchmark.metrics.backfill_curves import area

    return area(curves[group]) if group in curves else None
