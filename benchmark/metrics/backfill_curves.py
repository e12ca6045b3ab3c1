"""Metrics while a gallery is backfilled item by item, in one pass over the scores.

At point p of the curve ``filled[p]`` items have their new vector. An item that is not yet filled
scores old query vector against old item vector (after the method's query view and conversion), a
filled one new against new; the two may have different dimensions by cosine. A ValueError names an
argument that has the wrong shape, type or value.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.catalog import metric
from benchmark.metrics.identification import Search, tpir_at_fpir
from benchmark.metrics.intervals import Span, mean_interval, mean_spreads
from benchmark.metrics.retrieval import cut_off
from benchmark.ranking import arrays
from benchmark.ranking.arrays import Floats, Ints, Mask, Values

if TYPE_CHECKING:
    from benchmark.ranking.ranks import Options, Ranking
    from benchmark.ranking.score_scale import Scale
    from benchmark.ranking.two_lists import Merging


@dataclass(frozen=True)
class Curves:
    """Every query at every point, as in ``Ranking``: ``[points, n]``, ``n_positives`` ``[n]``.

    ``filled`` are the items that have their new vector, int64 ``[points]``, from 0 to all.
    """

    filled: Ints
    first_rank: Ints
    average_precision: Values
    n_positives: Ints

    @property
    def fraction(self) -> Values:
        """Share of the gallery that is filled at each point."""
        return self.filled / max(1, int(self.filled[-1]))

    @property
    def answered(self) -> Mask:
        """Queries with a match, bool ``[n]``; the others are left out."""
        return self.n_positives > 0

    def cmc(self, k: int) -> Values:
        """0.0 or 1.0 for each query with a match, ``[points, answered]``."""
        return (self.first_rank[:, self.answered] <= cut_off(k)).astype(np.float64)

    def map(self) -> Values:
        """Average precision of each query with a match, ``[points, answered]``."""
        return self.average_precision[:, self.answered]


def moments(n: int, points: int = 101) -> tuple[Ints, NDArray[np.int32]]:
    """Items of ``n`` filled at each point of a curve, and the point at which each is filled.

    The steps are even, rounded half up; items are told by their place in the order.

    Example:
        >>> moments(4, 3)
        (array([0, 2, 4]), array([1, 1, 2, 2], dtype=int32))
    """
    if points < 2:
        raise ValueError(f"points: expected at least 2, got {points}")
    filled = (2 * np.arange(points) * n + (points - 1)) // (2 * (points - 1))
    return filled, np.searchsorted(filled, np.arange(n), side="right").astype(np.int32)


def curves(
    old_query: Any, old_gallery: Any, new_query: Any, new_gallery: Any, query_labels: Any,
    gallery_labels: Any, order: Any, *, points: int = 101, merge: Merging | None = None,
    **options: Unpack[Options],
) -> Curves:  # fmt: skip
    """Ranks and average precisions at every point of a backfilling curve.

    The first point equals ``rank`` on the old vectors and the last ``rank`` on the new ones, to the
    last bit. Source: FastFill section 5.1; BCT appendix B.

    Args:
        old_query: Query vectors in the space of the unfilled gallery, ``[n, d_old]``.
        old_gallery: The unfilled gallery, ``[m, d_old]``.
        new_query: Query vectors of the new model, ``[n, d_new]``.
        new_gallery: The filled gallery, ``[m, d_new]``.
        query_labels: Integers or strings, ``[n]``.
        gallery_labels: As these, ``[m]``.
        order: The items' rows, the first to be filled first, ``[m]``.
        points: Points of the curve; 0 % and 100 % are the first and the last.
        merge: How the list of unfilled items and that of filled ones become one; by default scores
            are compared as they are.
        **options: See :class:`benchmark.ranking.ranks.Options`; ``l2`` needs equal dimensions.
    """
    from benchmark.ranking import device, two_lists

    steps = moments(len(arrays.plain(gallery_labels)), points)
    sides = (old_query, old_gallery), (new_query, new_gallery), (query_labels, gallery_labels)
    if merge is None and device.current() != device.CPU:
        from benchmark.ranking.torch_backfill import DeviceRun

        return Curves(steps[0], *DeviceRun(*sides, order, steps, **options).curves())
    return Curves(steps[0], *two_lists.curves(*sides, order, steps, merge, **options))


@dataclass(frozen=True)
class SearchCurves:
    """Every probe at every point of a backfilling gallery; ``filled`` is as in :class:`Curves`."""

    filled: Ints
    # best score of the probe's own subject, ``[points, n]``; -inf where it is not enrolled
    own: Floats
    other: Floats  # best score of the other subjects, ``[points, n]``; -inf where there are none
    mated: Mask  # probes whose subject is enrolled, ``[n]``

    def tpir_at_fpir(self, targets: Sequence[float]) -> Values:
        """``identification.tpir_at_fpir`` at each point, ``[targets, points]``."""
        values = [
            [point.tpir for point in tpir_at_fpir(Search(rank, own, other), targets)]
            for own, other in zip(self.own, self.other, strict=True)
            for rank in [np.where(self.mated, np.where(own > other, 1, 2), 0)]
        ]
        return np.array(values).T


def search_curves(
    old_probe: Any, old_gallery: Any, new_probe: Any, new_gallery: Any, probe_subjects: Any,
    gallery_subjects: Any, order: Any, *, points: int = 101, scale: Scale | None = None,
    threads: int | None = None,
) -> SearchCurves:  # fmt: skip
    """Open-set identification at every point of a backfilling curve, by cosine.

    Arguments are those of :func:`curves`, with probes as queries and subjects as labels; ``scale``
    maps the scores of unfilled items.
    """
    from benchmark.ranking import backfill_engine

    steps = moments(len(arrays.plain(gallery_subjects)), points)
    sides = (old_probe, old_gallery), (new_probe, new_gallery), (probe_subjects, gallery_subjects)
    return SearchCurves(steps[0], *backfill_engine.search(*sides, order, steps, threads, scale))


@metric(
    "area_{metric}", "area of {metric}",
    "Mean along the backfilling curve; a constant's is the constant.", rises=True,
)  # fmt: skip
def area(curve: Any) -> float:
    """Mean of a curve over its evenly spaced fractions; a constant curve's is the constant.

    Example:
        >>> area([0.25, 0.5, 0.75])
        0.5
    """
    values = _points(curve)
    return statistics.fmean(values) if np.ptp(values) else float(values[0])


@metric("worst_{metric}", "worst {metric}", "Lowest point of the backfilling curve.", rises=True)
def worst(curve: Any) -> float:
    """The lowest value of a curve, ``[points]``: how bad it gets on the way.

    Example:
        >>> worst([0.5, 0.4, 0.9])
        0.4
    """
    return float(_points(curve).min())


@metric(
    "share_above_{metric}", "{metric} > old/old from",
    "Smallest share of the gallery from which on the curve stays above old/old; none where the end "
    "does not lie above it.", higher=False,
)  # fmt: skip
def share_above(curve: Any, before: float) -> float | None:
    """The share of the gallery from which on a curve stays above the score before the update.

    ``curve`` is at even shares, ``[points]``; None where its end is not above.

    Example:
        >>> share_above([0.6, 0.4, 0.7, 0.9, 0.8], 0.5), share_above([0.6, 0.4], 0.5)
        (0.5, None)
    """
    return _for_good(_points(curve) > before)


def worst_interval(values: Any, groups: Any) -> Span | None:
    """The 95 % interval of the worst point; see :mod:`benchmark.metrics.intervals`.

    ``values`` has one per query and point, ``[points, n]``; ``groups`` are the queries' classes.
    """
    table = np.asarray(values, dtype=np.float64)
    return mean_interval(table[int(table.mean(1).argmin())], groups)


def share_above_interval(values: Any, before: Any, groups: Any) -> Span | None:
    """The 95 % interval of :func:`share_above`, from intervals of the differences at each point.

    The ends are the shares from which on the differences' upper ends, and their lower ends, stay
    above zero; an upper end of 1 may mean never.

    Args:
        values: One per query and point, ``[points, n]``.
        before: Each query's value before the update, ``[n]``.
        groups: The queries' classes, ``[n]``.

    Returns:
        None for a single class, and where the mean at the end is not above.
    """
    differences = np.asarray(values, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    spreads = mean_spreads(differences, groups)
    spans = [span for spread in spreads if (span := spread.interval(share=False)) is not None]
    if len(spans) < len(spreads) or spreads[-1].value <= 0:
        return None
    low, high = (_for_good(ends > 0) for ends in np.array(spans).T[::-1])
    return 1.0 if low is None else low, 1.0 if high is None else high


def _for_good(above: Mask) -> float | None:
    """The share from which on a condition, ``[points]``, holds; None where it fails at the end."""
    failed = np.flatnonzero(~above)
    first = int(failed[-1]) + 1 if len(failed) else 0
    return None if first == len(above) else first / max(1, len(above) - 1)


def _points(curve: Any) -> Values:
    values: Values = arrays.scores("curve", np.asarray(curve, dtype=np.float64))
    if not len(values):
        raise ValueError("curve: expected at least one point, got none")
    return values


@metric(
    "offline_area_{metric}",
    "offline area of {metric}",
    "Old until all is backfilled, then new.",
    rises=True,
)
def offline(curve: Any) -> Values:
    """The curve of a deployment that serves the old gallery until every item is done."""
    values = arrays.scores("curve", np.array(curve, dtype=np.float64))
    values[:-1] = values[0]
    return values


@metric("flips_positive", "Positive flips", "Wrong before, right now; share of all queries.")
@metric(
    "flips_negative", "Negative flips", "Right before, wrong now; share of all queries.",
    higher=False,
)  # fmt: skip
def flips(hits: Any) -> tuple[Values, Values]:
    """Shares of queries wrong at 0 % and right now (positive), and the reverse, ``[points]`` each.

    ``hits`` is 1 where a query is right at a point, else 0, ``[points, n]``, as ``Curves.cmc(1)``.
    """
    table = np.asarray(hits)
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(f"hits: expected [points, n] with n >= 1, got {table.shape}")
    arrays.finite("hits", table)
    right = table.astype(bool)
    return (~right[0] & right).mean(1), (right[0] & ~right).mean(1)


@metric(
    "group_{name}__{metric}", "{metric} ({name})", "Queries of one group, all stored items.",
    rises=True,
)  # fmt: skip
def by_group(values: Any, groups: Any) -> dict[Any, Values]:
    """The mean of each group of queries at each point: group -> ``[points]``, groups ascending.

    ``values`` has one per query and point, ``[points, n]``, ``groups`` the queries' groups ``[n]``.
    """
    table = np.asarray(values, dtype=np.float64)
    arrays.finite("values", table)
    names = arrays.one_per_row("groups", groups, table.shape[1])
    return {name.item(): table[:, names == name].mean(1) for name in np.unique(names)}


@metric("group_gap", "Group gap", "Best minus worst group; groups need a query.", higher=False)
def group_gap(groups: dict[Any, Values]) -> Values:
    """Best minus worst group at each point."""
    return np.asarray(np.ptp(np.stack(list(groups.values())), axis=0))


def group_share(order: Any, groups: Any, points: int = 101) -> dict[Any, Values]:
    """Share of each group's items that is filled at each point: group -> ``[points]``.

    ``order`` is that of :func:`curves`, ``groups`` has the group of each item, ``[m]``.
    """
    names = arrays.one_per_row("groups", groups, len(arrays.plain(groups)))
    rows = arrays.permutation(order, len(names))
    filled, _ = moments(len(names), points)
    known = np.unique(names)
    done = [np.concatenate([[0], np.cumsum(names[rows] == name)]) for name in known]
    return {name.item(): n[filled] / n[-1] for name, n in zip(known, done, strict=True)}


def at(result: Curves, point: int) -> Ranking:
    """One point of the curve as a ranking; the inverse negative penalty is not kept (NaN)."""
    from benchmark.ranking.ranks import Ranking

    first, ap, n = result.first_rank[point], result.average_precision[point], result.n_positives
    return Ranking(first, ap, np.full(len(n), np.nan), n)
