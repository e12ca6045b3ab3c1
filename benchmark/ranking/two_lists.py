"""One exact ranking of two lists of the same queries: two score blocks in, one ranking out.

Blocks of queries are scored against both galleries; nothing is held for all pairs. Where nothing
but an item's own score counts no block is needed: see ``backfill_engine``.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import arrays, backfill_engine, engine, kernels, place_kernels, ranks
from benchmark.ranking.arrays import Floats, Ints, Mask
from benchmark.ranking.backfill_engine import Sides, Steps
from benchmark.ranking.engine import Scorer
from benchmark.ranking.grouping import Labels, Ragged, offsets
from benchmark.ranking.kernels import jit
from benchmark.ranking.ranks import Ranking, ranking_of
from benchmark.ranking.score_scale import Scale

_SCORES = 8 << 20  # bytes of a block of scores of one list
Scores = NDArray[np.floating[Any]]
Work = Callable[[int, int, Floats, Floats], None]


class Merging(Protocol):
    """Way in which two lists become one, as ``benchmark.contract.TwoLists`` says it."""

    @property
    def places_by(self) -> str:
        """``score``, ``rank`` or ``merge``."""

    @property
    def searches(self) -> bool:
        """Tell whether both lists are searched; else the second scores what the first has found."""

    @property
    def scale(self) -> Scale | None:
        """Map of scores of the first list to the second one's scale."""

    @property
    def fused_by(self) -> str:
        """``mean``, ``ranks``, ``window``, ``second`` or ``merge``."""

    @property
    def window(self) -> int:
        """Items of the first list's beginning."""

    @property
    def k(self) -> float:
        """Number that is added to a rank, where lists are fused by ranks."""

    def merge(self, first: Scores, second: Scores) -> Scores:
        """One score for each item in either list."""


def rank(
    first: Sides, second: Sides, labels: Sides, merge: Merging, *, filled: Mask | None = None,
    distance: str = "cosine", threads: int | None = None, **rules: Any,
) -> Ranking:  # fmt: skip
    """Rank the items of two lists, exactly.

    Items that the lists do not have come last, tied. Where all items are in both lists and a
    weighted sum of scores places them, longer vectors are ranked as one list: their scores may
    differ from the merge in its last bits.

    Args:
        first: Queries ``[n, d]`` and gallery ``[m, d]`` of the first list.
        second: Of the second one, ``[n, e]`` and ``[m, e]``, of the same items.
        labels: Of queries and gallery, integers or strings.
        merge: Gets both lists' scores of some queries, ``[k, m]``, NaN for what is left out.
        filled: Items that are in the second list alone, bool ``[m]``; no others are in it, but
            where it scores what the first has found. By default all are in both.
        distance: ``cosine`` or ``l2``.
        threads: CPU threads; all by default. No result depends on it.
        **rules: As of :func:`benchmark.ranking.ranks.rank`.
    """
    rules = {"distance": distance, "threads": threads, **rules}
    a, b, checked = _checked(first, second, labels, **rules)
    if filled is None and merge.fused_by == "second":
        return ranks.rank(*second, *labels, **rules)
    if filled is None and merge.fused_by == "mean":
        slope = 1.0 if merge.scale is None else merge.scale.slope
        if slope is not None and not (distance == "cosine" and _any_zero(*first, *second)):
            return _by_sum(first, second, labels, slope, rules)
    absent = filled, None if filled is None or not merge.searches else ~filled
    parts: dict[int, tuple[Ragged, Ints]] = {}

    def work(start: int, stop: int, one: Floats, two: Floats) -> None:
        rows = np.arange(start, stop)
        out = _left_out(checked, rows)
        for scores, gone in zip((one, two), absent, strict=True):
            scores[out] = np.nan
            if gone is not None:
                scores[:, gone] = np.nan
        merged = np.asarray(merge.merge(one, two), np.float64)
        merged[np.isnan(merged)] = -np.inf
        parts[start] = _count(merged, out, checked.query[rows], checked.gallery)

    _blocks(a, b, work)
    found = [ranking_of(*parts[start]) for start in sorted(parts)]
    fields = [field.name for field in dataclasses.fields(Ranking)]
    empty = ranking_of(Ragged(np.zeros(1, np.int64), np.empty(0)), np.empty(0, np.int64))
    return Ranking(*(np.concatenate([getattr(p, f) for p in found or [empty]]) for f in fields))


def _any_zero(*sides: Any) -> bool:
    """Tell a vector of zeros, whose cosine is 0 but has no length that two lists would share."""
    return any(not np.asarray(arrays.plain(x)).any(axis=1).all() for x in sides)


def _by_sum(
    first: Sides, second: Sides, labels: Sides, weight: float, options: dict[str, Any]
) -> Ranking:
    """Rank all items by the weighted sum of their scores, which is the score of longer vectors."""
    distance = options["distance"]
    of_query, of_item = (weight, 1.0) if distance == "cosine" else (weight**0.5, weight**0.5)
    query = _side_by_side(first[0], second[0], of_query, distance)
    gallery = _side_by_side(first[1], second[1], of_item, distance)
    return ranks.rank(query, gallery, *labels, **options)


def _checked(
    first: Sides, second: Sides, labels: Sides, *, distance: str, threads: int | None, **rules: Any
) -> tuple[Scorer, Scorer, Labels]:
    """Both lists and the labels, checked against each other."""
    a, b = backfill_engine.scorers(first, second, distance, threads, ("first", "second"))
    return a, b, Labels.checked(a.shape, *labels, **rules)


def _side_by_side(first: Any, second: Any, weight: float, distance: str) -> Floats:
    """Vectors by both models as one, ``[n, d + e]``: their score is the weighted sum of both."""
    parts = []
    for vectors, factor in ((first, weight), (second, 1.0)):
        x = arrays.plain(vectors).astype(np.float64)
        if distance == "cosine":
            lengths = np.linalg.norm(x, axis=1, keepdims=True)
            x /= np.where(lengths > 0, lengths, 1.0)
        parts.append((factor * x).astype(np.float32))
    return np.concatenate(parts, axis=1)


def curves(
    first: Sides, second: Sides, labels: Sides, order: Any, steps: Steps, merge: Merging | None,
    **options: Any,
) -> tuple[Ints, NDArray[np.float64], Ints]:  # fmt: skip
    """Ranks and average precisions ``[points, n]``, and matches ``[n]``, while items are filled.

    Unfilled items are in the first list, filled ones in the second; arguments are as of
    ``backfill_engine.BackfillRun``. Without ``merge`` scores are compared as they are.
    """
    sides = first, second, labels, order, steps
    if merge is None or merge.places_by == "score":
        scale = None if merge is None else merge.scale
        return backfill_engine.BackfillRun(*sides, scale=scale, **options).curves()
    windowed = merge.fused_by == "window" and not merge.searches
    if windowed or merge.places_by == "rank":
        return _curves_by_place(*sides, merge.window if windowed else 0, **options)
    moment = backfill_engine.moment_of(order, steps)
    points = [
        rank(first, second, labels, merge, filled=moment <= p, **options)
        for p in range(len(steps[0]))
    ]
    return (
        np.stack([p.first_rank for p in points]), np.stack([p.average_precision for p in points]),
        points[0].n_positives,
    )  # fmt: skip


def _curves_by_place(
    first: Sides, second: Sides, labels: Sides, order: Any, steps: Steps, window: int, *,
    distance: str = "cosine", threads: int | None = None, **rules: Any,
) -> tuple[Ints, NDArray[np.float64], Ints]:  # fmt: skip
    """Curves of lists whose places are merged; see ``place_kernels.curves``."""
    a, b, checked = _checked(first, second, labels, distance=distance, threads=threads, **rules)
    moment, n = backfill_engine.moment_of(order, steps), a.shape[0]
    found, matches = np.zeros((n, len(steps[0])), np.int64), np.zeros(n, np.int64)
    precision = np.full(found.shape, np.nan)

    def work(start: int, stop: int, one: Floats, two: Floats) -> None:
        out = _left_out(checked, np.arange(start, stop))
        match = (checked.query[start:stop, None] == checked.gallery) & ~out
        matches[start:stop] = match.sum(axis=1)
        results = found[start:stop], precision[start:stop]
        place_kernels.curves(one, two, match, out, moment, window, *results)

    _blocks(a, b, work)
    return found.T, precision.T, matches


def _blocks(a: Scorer, b: Scorer, work: Work) -> None:
    """Call ``work(first, last, scores, scores)`` for all queries, in threads."""
    every = np.arange(a.shape[1])
    items, others = a.items(every), b.items(every)
    step = max(1, _SCORES // (4 * max(1, items.n)) // kernels.ROWS) * kernels.ROWS

    def block(first: int, last: int) -> None:
        rows = np.arange(first, last)
        one, two = (
            engine.tile(scorer.query.packed(rows, kernels.ROWS, 1), of, l2=scorer.l2)
            for scorer, of in ((a, items), (b, others))
        )
        work(first, last, one, two)

    engine.share(block, engine.spans(a.shape[0], step), a.threads)


def _left_out(labels: Labels, rows: Ints) -> Mask:
    """Items that the rules leave out for some queries, bool ``[rows, m]``."""
    rules, out = labels.rules, np.zeros((len(rows), len(labels.gallery)), bool)
    if labels.junk is not None:
        out |= labels.junk
    if len(rules.query_ids):
        out |= rules.query_ids[rows, None] == rules.gallery_ids
    if len(rules.query_cameras):
        same = labels.query[rows, None] == labels.gallery
        out |= same & (rules.query_cameras[rows, None] == rules.gallery_cameras)
    return out


def _count(merged: Scores, out: Mask, ql: Ints, gl: Ints) -> tuple[Ragged, Ints]:
    """Ascending scores of the matches of each query, and how many others score at least each."""
    match = (ql[:, None] == gl) & ~out
    offset = offsets(match.sum(axis=1))
    scores, above = np.empty(offset[-1]), np.zeros(offset[-1], np.int64)
    _count_rows(merged, match, out, offset, scores, above)
    return Ragged(offset, scores), above


@jit
def _count_rows(merged: Any, match: Any, out: Any, offset: Any, scores: Any, above: Any) -> None:
    for i in range(len(merged)):
        a, b = offset[i], offset[i + 1]
        if a == b:
            continue
        scores[a:b] = np.sort(merged[i][match[i]])
        lowest = scores[a]
        for j in range(merged.shape[1]):
            if merged[i, j] >= lowest and not match[i, j] and not out[i, j]:
                above[a + np.searchsorted(scores[a:b], merged[i, j], "right") - 1] += 1
        for k in range(b - 2, a - 1, -1):
            above[k] += above[k + 1]
