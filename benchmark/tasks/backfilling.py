"""Backfilling: scores while a gallery is backfilled item by item, in given orders."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.data.base import Evaluation
from benchmark.metrics import backfill_curves
from benchmark.metrics.identification import search, tpir_at_fpir
from benchmark.metrics.intervals import Span, mean_interval
from benchmark.metrics.retrieval import average_precision, cmc
from benchmark.metrics.statistics import kendall_tau
from benchmark.tasks import base
from benchmark.tasks.base import BackfillState, Embeddings, GalleryTask, Ints, Options

Floats = NDArray[np.float64]

POINTS = 101  # every percent of the gallery
COARSE = 5  # flips and groups are kept at every so many points
Search = tuple[Embeddings, Embeddings, Embeddings, Embeddings, Ints, Ints]
"""Probes and gallery by stored and by new embeddings, and the subjects of both."""
_UNRANKED: dict[str, Any] = {  # of an order, where items are not ranked
    "intervals": {}, "curves": {}, "flips": {"positive": [], "negative": []}, "groups": {},
}  # fmt: skip


@dataclass(frozen=True)
class Backfilling(GalleryTask):
    """Scores along the backfilling of a gallery, and their areas.

    A template counts as backfilled when its last item is: its vector is a sum over its items,
    which two models with different spaces do not share.

    Source:
        FastFill section 5.1 (eq. 6), appendices D, E and F.
    """

    def evaluate(
        self, state: BackfillState, orders: Mapping[str, Ints], items: Evaluation, options: Options
    ) -> dict[str, Any]:
        """Curves of each order; without ``retrieval`` among the tasks of templates alone.

        Args:
            state: Embeddings of all items.
            orders: Name -> all items, the first one to be backfilled first.
            items: Which of them are queries and gallery, their classes, templates and groups.
            options: ``distance``, ``fpir`` and ``tasks`` of the evaluation.

        Returns:
            ``offline``: metric -> score ``before`` (old queries, old gallery), ``after`` and
            ``area`` of a deployment that waits until all is backfilled. ``orders``: name ->
            ``area``, ``worst``, ``share_above``, ``intervals`` of these, ``curves``, ``flips``,
            ``groups`` and ``tau``, the agreement with the oracle orders, whose names begin with
            ``true-``. ``groups``: their names. ``counts``. Curves are not rounded.
        """
        run = _Run(state, items, options)
        results = {name: run.order(rows) for name, rows in orders.items()}
        # Orders are permutations: their inverse has the place of each item.
        places = {
            name: np.argsort(rows)[items.gallery].astype(np.float64)
            for name, rows in orders.items()
        }
        several = len(items.gallery) > 1
        for name, result in results.items():
            result["tau"] = {
                oracle: kendall_tau(places[name], places[oracle]) if several else None
                for oracle in orders
                if oracle.startswith("true-") and oracle != name
            }
        return {
            "points": POINTS, "every": COARSE, "groups": run.group_names, "counts": run.counts,
            "offline": run.offline(), "orders": results,
        }  # fmt: skip


class _Run:
    """Parts that all orders of one update share."""

    def __init__(self, state: BackfillState, items: Evaluation, options: Options) -> None:
        q, g = items.query, items.gallery
        self.state, self.items, self.options = state, items, options
        self.embeddings = (state.view[q], state.stored[g], state.new[q], state.new[g])
        self.ranked = "retrieval" in options.get("tasks", ("retrieval",))
        used = np.unique(items.group[np.concatenate([q, g])])
        self.groups: list[int] = used.tolist() if len(used) > 1 else []
        self.group_names = [items.group_names[i] for i in self.groups]
        self.searches = list(_searches(state, items)) if len(items.galleries) else []
        self.counts = {"n_query": len(q), "n_gallery": len(g)}

    def order(self, rows: Ints) -> dict[str, Any]:
        place = np.argsort(rows)
        ranked = self._ranked_curves(place) if self.ranked else _UNRANKED
        curves = ranked["curves"] | self._search_curves(place)
        return {
            "area": {name: backfill_curves.area(curve) for name, curve in curves.items()},
            "worst": {name: backfill_curves.worst(curve) for name, curve in curves.items()},
            "share_above": {
                name: backfill_curves.share_above(curve, self.before[name])
                for name, curve in curves.items()
            },
            **ranked, "curves": curves,
        }  # fmt: skip

    def _ranked_curves(self, place: Ints) -> dict[str, Any]:
        """Curves, intervals, flips and groups of ranking every item."""
        items, q, g = self.items, self.items.query, self.items.gallery
        order = np.argsort(place[g], kind="stable")
        ranked = backfill_curves.curves(
            *self.embeddings, items.labels[q], items.labels[g], order, points=POINTS,
            query_ids=items.ids[q], gallery_ids=items.ids[g], distance=self.options["distance"],
            merge=self.state.merge,
        )  # fmt: skip
        per_query = {"cmc_at_1": ranked.cmc(1), "cmc_at_5": ranked.cmc(5), "map": ranked.map()}
        classes = items.labels[q][ranked.answered]
        positive, negative = backfill_curves.flips(per_query["cmc_at_1"])
        return {
            "intervals": {
                key: span
                for name, values in per_query.items()
                for key, span in self._intervals(name, values, classes).items()
            },
            # Row by row: the ends are then the scores of the cases, to the last bit.
            "curves": {name: list(map(base.mean, values)) for name, values in per_query.items()},
            "flips": {
                "positive": positive[::COARSE].tolist(), "negative": negative[::COARSE].tolist(),
            },
            "groups": self._group_curves(
                per_query["cmc_at_1"], items.group[q][ranked.answered], order, items.group[g]
            ),
        }  # fmt: skip

    def _intervals(self, name: str, values: Floats, classes: Ints) -> dict[str, Span | None]:
        """Of the area, the worst point and the share from which on a score is above old/old."""
        before = self.before_by_query[name]
        return {
            name: mean_interval(values.mean(0), classes),
            f"worst_{name}": backfill_curves.worst_interval(values, classes),
            f"share_above_{name}": backfill_curves.share_above_interval(values, before, classes),
        }

    def _search_curves(self, place: Ints) -> dict[str, list[float]]:
        """TPIR@FPIR, the mean where all enrolment galleries have it; none of merged ranks."""
        merge = self.state.merge
        if merge is not None and merge.places_by != "score":
            return {}
        parts: dict[str, list[Floats]] = {}
        for arguments, template in self.searches:
            last = np.full(len(arguments[5]), -1)
            known = template >= 0
            np.maximum.at(last, template[known], place[known])
            order = np.argsort(last, kind="stable")
            searched = backfill_curves.search_curves(
                *arguments, order=order, points=POINTS, scale=merge.scale if merge else None
            )
            if targets := self._targets(searched.mated):
                for target, curve in zip(targets, searched.tpir_at_fpir(targets), strict=True):
                    parts.setdefault(base.key("tpir_at_fpir", target), []).append(curve)
        return self._means(parts)

    def _targets(self, mated: NDArray[np.bool_]) -> Sequence[float]:
        """Rates that the non-mated probes can measure."""
        non_mated = int((~mated).sum())
        return base.measurable(self.options["fpir"], non_mated) if mated.any() else ()

    def _group_curves(
        self, hits: Floats, query_group: Ints, order: Ints, gallery_group: Ints
    ) -> dict[str, Any]:
        """CMC@1 of each group of queries, and how early each group's items are backfilled.

        ``gap`` and ``share_gap`` are best minus worst group along the order; ``cmc_at_1`` and
        ``share`` are each group's means along it. A group's share is 0.5 where an order ignores
        groups, and larger where it is backfilled early.
        """
        if not self.groups:
            return {}
        score = backfill_curves.by_group(hits, query_group)
        share = backfill_curves.group_share(order, gallery_group, POINTS)
        return {
            "gap": backfill_curves.group_gap(score)[::COARSE].tolist(),
            "share_gap": backfill_curves.group_gap(share)[::COARSE].tolist(),
            "cmc_at_1": [_area_of(score, group) for group in self.groups],
            "share": [_area_of(share, group) for group in self.groups],
        }

    def offline(self) -> dict[str, dict[str, float]]:
        """Old queries in the old gallery until every item is done, then new in new."""
        after = self._scores(self.state.new, self._by_query(self.state.new))
        ends = {}
        for name, value in self.before.items():
            curve = backfill_curves.offline([value] * (POINTS - 1) + [after[name]])
            area = backfill_curves.area(curve)
            ends[name] = {"before": value, "after": after[name], "area": area}
        return ends

    @cached_property
    def before_by_query(self) -> dict[str, Floats]:
        """Values of old queries in the old gallery."""
        return self._by_query(self.state.old)

    @cached_property
    def before(self) -> dict[str, float]:
        """Scores of old queries in the old gallery."""
        return self._scores(self.state.old, self.before_by_query)

    def _by_query(self, vectors: Embeddings) -> dict[str, Floats]:
        """Values of one model's queries in its own gallery, where items are ranked."""
        if not self.ranked:
            return {}
        ranking = base.rank_items(vectors, vectors, self.items, self.options)
        values = (cmc(ranking, 1), cmc(ranking, 5), average_precision(ranking))
        return dict(zip(("cmc_at_1", "cmc_at_5", "map"), values, strict=True))

    def _scores(self, vectors: Embeddings, by_query: Mapping[str, Floats]) -> dict[str, float]:
        """Scores of one model's queries in its own gallery."""
        scores = {name: base.mean(values) for name, values in by_query.items()}
        parts: dict[str, list[float]] = {}
        for enrolled in self.items.galleries:
            probe, subject = base.template_vectors(vectors, self.items, self.items.probes)
            gallery, owner = base.template_vectors(vectors, self.items, enrolled)
            searched = search(probe, subject, gallery, owner)
            targets = self._targets(searched.mated)
            for point in tpir_at_fpir(searched, targets) if targets else ():
                parts.setdefault(base.key("tpir_at_fpir", point.target), []).append(point.tpir)
        return scores | self._means(parts)

    def _means(self, parts: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        """The mean over the enrolment galleries of what all of them have."""
        return {
            name: np.mean(values, axis=0).tolist()
            for name, values in parts.items()
            if len(values) == len(self.searches)
        }


def _searches(state: BackfillState, items: Evaluation) -> Iterator[tuple[Search, Ints]]:
    """Arguments of the search in each enrolment gallery, and the place of each item's template."""
    old_probe, subject = base.template_vectors(state.view, items, items.probes)
    new_probe, _ = base.template_vectors(state.new, items, items.probes)
    for enrolled in items.galleries:
        old, owner = base.template_vectors(state.stored, items, enrolled)
        new, _ = base.template_vectors(state.new, items, enrolled)
        by_name = np.argsort(enrolled)
        spot = np.searchsorted(enrolled, items.template, sorter=by_name)
        place = by_name[np.minimum(spot, len(enrolled) - 1)]
        template = np.where(enrolled[place] == items.template, place, -1)
        yield (old_probe, old, new_probe, new, subject, owner), template


def _area_of(curves: Mapping[Any, Floats], group: int) -> float | None:
    return backfill_curves.area(curves[group]) if group in curves else None
