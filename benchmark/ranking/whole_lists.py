"""Rankings of two whole lists that need both scores of an item at once, exact and streamed.

Some queries' rows of scores of both lists are held at a time.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import (
    engine,
    kernels,
    matching,
    rank_sum_kernels,
    row_kernels,
    whole_list_kernels,
    window_curve_kernels,
)
from benchmark.ranking.arrays import Floats, Ints
from benchmark.ranking.engine import Scorer
from benchmark.ranking.grouping import Grouped, Labels, Ragged, offsets, spread
from benchmark.ranking.ranks import Ranking, ranking_of
from benchmark.ranking.score_scale import Scale, bins

_SCORES = 16 << 20  # bytes of rows of one list: the fewer rows, the more often items are read
_FEW = 64  # one item of so many is sooner scored by itself than all in tiles

Rows = tuple[Floats, Floats | None]
Count = Callable[[Rows, Ints, Ragged, Ragged, Floats, Ints], None]
"""Writes keys and counts of the matches: of rows of scores, their queries, columns of the matches
and of what is left out."""


Work = Callable[[int, Rows, Ints, Ragged, Ragged], None]
"""Gets the number of the first of some queries, rows, queries, columns of matches and left out."""


class _Room(threading.local):
    """Room for some rows of both lists, in each thread its own."""

    def __init__(self, size: int) -> None:
        self.both = engine.aligned(size), engine.aligned(size)


def by_mean(first: Scorer, second: Scorer, labels: Labels, scale: Scale) -> Ranking:
    """Rank all items by the mean of their scores, the first list's after a scale."""
    lines = bins(scale, row_kernels.BINS)

    def count(rows: Rows, _: Ints, *columns: Any) -> None:
        matches, gone, keys, above = columns
        whole_list_kernels.by_mean(*rows, matches, gone, scale, lines, keys, above)

    return _rank(first, second, labels, count)


def by_ranks(first: Scorer, second: Scorer, labels: Labels, k: float) -> Ranking:
    """Rank all items by the sum of 1 / (k + rank) over both lists; equal scores rank last."""
    n_items = len(_kept(labels))

    def count(rows: Rows, _: Ints, *columns: Any) -> None:
        matches, gone, keys, above = columns
        rank_sum_kernels.by_ranks(*rows, n_items, matches, gone, k, keys, above)

    return _rank(first, second, labels, count)


def by_window(first: Scorer, second: Scorer, labels: Labels, window: int) -> Ranking:
    """Rank the first ``window`` items of one list by the other, and the rest behind them."""
    kept = _kept(labels)
    window = min(window, len(kept))
    few = window <= len(kept) // _FEW and second.gallery.x.dtype == np.float32
    every = [side.part(np.arange(len(side.x))) for side in (second.query, second.gallery) if few]

    def count(rows: Rows, q_rows: Ints, *columns: Any) -> None:
        matches, gone, keys, above = columns
        sides = None
        if few:
            (q, places, by), (g, _, factors) = every
            sides = (q, places[q_rows], by[q_rows]), (g, kept, factors)
        out = matches, gone, window, keys, above
        whole_list_kernels.by_window(*rows, sides, second.l2, *out)

    return _rank(first, None if few else second, labels, count)


def _kept(labels: Labels) -> Ints:
    """The items that are not junk."""
    n = len(labels.gallery)
    return np.arange(n) if labels.junk is None else np.flatnonzero(~labels.junk)


def window_curves(
    first: Scorer, second: Scorer, labels: Labels, order: Ints, filled: Ints, window: int
) -> tuple[Ints, NDArray[np.float64], Ints]:
    """Ranks and average precisions ``[points, n]`` of a window, and matches ``[n]``.

    ``order`` has the items' rows, the first to be filled first, of which ``filled`` are so at each
    point; those are ranked among the window.
    """
    shape = first.shape[0], len(filled)
    rank, ap = np.zeros(shape, np.int64), np.full(shape, np.nan)
    number, window = np.zeros(shape[0], np.int64), min(window, len(order))

    def work(_: int, rows: Rows, q_rows: Ints, matches: Ragged, gone: Ragged) -> None:
        ranks, precisions = rank[q_rows], ap[q_rows]
        window_curve_kernels.by_window(*rows, filled, matches, gone, window, ranks, precisions)
        rank[q_rows], ap[q_rows], number[q_rows] = ranks, precisions, matches.sizes

    _blocks(first, second, labels, order, work)
    return rank.T, ap.T, number


def _rank(first: Scorer, second: Scorer | None, labels: Labels, count: Count) -> Ranking:
    """Rank all items for all queries as ``count`` says, which gets rows of each list given."""
    parts: dict[int, tuple[Ragged, Ints]] = {}

    def work(start: int, rows: Rows, q_rows: Ints, matches: Ragged, gone: Ragged) -> None:
        keys, above = np.empty(matches.offset[-1]), np.zeros(matches.offset[-1], np.int64)
        if len(keys):
            count(rows, q_rows, matches, gone, keys, above)
        parts[start] = Ragged(matches.offset, keys), above

    order = _blocks(first, second, labels, _kept(labels), work)
    found = [parts[start] for start in sorted(parts)]
    sizes = np.concatenate([np.zeros(0, np.int64), *(keys.sizes for keys, _ in found)])
    values = np.concatenate([np.zeros(0), *(keys.values for keys, _ in found)])
    numbers = np.concatenate([np.zeros(0, np.int64), *(above for _, above in found)])
    return put_back(ranking_of(Ragged(offsets(sizes), values), numbers), order)


def _blocks(first: Scorer, second: Scorer | None, labels: Labels, kept: Ints, work: Work) -> Ints:
    """Call ``work`` for all queries, some at a time, in threads; returns their order.

    The rows' columns are the items ``kept``, in their order.
    """
    column = np.empty(len(labels.gallery), np.int64)
    column[kept] = np.arange(len(kept))
    sides = [(side, side.items(kept)) for side in (first, second) if side is not None]
    by = labels.grouped(np.argsort(labels.query, kind="stable"))
    strangers = labels.strangers(by.q_order)
    stride = max(1, -(-len(kept) // kernels.COLUMNS)) * kernels.COLUMNS
    step = max(1, _SCORES // (4 * stride * kernels.ROWS)) * kernels.ROWS
    room = _Room(step * stride + kernels.COLUMNS)

    def block(start: int, stop: int) -> None:
        some = by.some(slice(start, stop))
        columns = _columns(some, labels, strangers, start, column)
        rows: list[Any] = [None, None]
        for k, (side, items) in enumerate(sides):
            queries, out = side.query.packed(some.q_order, kernels.ROWS, 1), room.both[k]
            row_kernels.score_rows(queries, items, side.l2, out, stride)
            rows[k] = out[: (stop - start) * stride].reshape(-1, stride)
        work(start, (rows[0], rows[1]), some.q_order, *columns)

    n = len(by.q_order)
    engine.share(block, engine.even(n, step, kernels.ROWS, first.threads), first.threads)
    return by.q_order


def _columns(
    by: Grouped, labels: Labels, strangers: tuple[Ints, Ints], start: int, column: Ints
) -> tuple[Ragged, Ragged]:
    """Columns of the matches of some ordered queries, and of what the rules leave out."""
    items = Ragged(by.offset, column[by.g_order[spread(by.start, by.stop)]])
    n, rules = len(by.q_order), labels.rules
    mask, number = np.zeros(by.offset[-1], bool), np.zeros(n, np.int64)
    if len(rules.query_ids) or len(rules.query_cameras):
        matching.left_out(by, rules, 0, n, mask, number)
    matches, gone = items.split(mask, number)
    a, b = np.searchsorted(strangers[0], [start, start + n])
    return matches, gone.added(strangers[0][a:b] - start, column[strangers[1][a:b]])


def put_back(found: Ranking, order: Ints) -> Ranking:
    """Results of ordered queries, in the order of the queries."""
    back = np.argsort(order, kind="stable")
    return Ranking(
        found.first_rank[back], found.average_precision[back],
        found.inverse_negative_penalty[back], found.n_positives[back],
    )  # fmt: skip
