"""Scores themselves, where a metric needs them: tiles, listed pairs, all pairs (numba inside).

All are cosines by the same chain of operations as the ranking engine's, so they equal its scores to
the last bit. A ValueError names an argument that has the wrong shape, type or range.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmark.ranking import arrays, engine, pair_kernels
from benchmark.ranking.arrays import Floats, Ints
from benchmark.ranking.blocks import blocks


def scorer(left: Any, right: Any, threads: int | None = None) -> engine.Scorer:
    """Cosines of two sides, checked."""
    return engine.Scorer(left, right, names=("left", "right"), threads=threads)


def tiles(left: Any, right: Any, rows: int = 512) -> Iterator[tuple[slice, Floats]]:
    """Cosines of all pairs, some rows at a time: (rows, scores ``[rows, n_right]``)."""
    pairs = scorer(left, right, 1)
    items = pairs.items(np.arange(pairs.shape[1]))
    for first, last in engine.spans(pairs.shape[0], rows):
        some = pairs.queries(np.arange(first, last))
        yield slice(first, last), engine.tile(some, items, l2=False)


def listed(
    left: Any, right: Any, left_rows: Any, right_rows: Any, *, threads: int | None = None
) -> Floats:
    """Cosines ``[p]`` of listed pairs, IJB-C's template pairs, say, in CPU threads, or all.

    Each pair has a row in ``left``, ``[n, d]``, and one in ``right``, ``[m, d]``, which may be of
    another model; the rows are integers, ``[p]``.
    """
    pairs = scorer(left, right, threads)
    given = (("left_rows", left_rows), ("right_rows", right_rows))
    rows = [_rows(*side, n) for side, n in zip(given, pairs.shape, strict=True)]
    if len(rows[0]) != len(rows[1]):
        raise ValueError(f"right_rows: expected {len(rows[0])} rows, got {len(rows[1])}")
    used = [np.bincount(row, minlength=1) > 0 for row in rows]
    n, m = (int(mask.sum()) for mask in used)
    if len(rows[0]) * 40 < n * m or n * m == 0:  # sparse: one by one
        return pairs.pairs(*rows)
    i, j = (
        (np.cumsum(mask) - 1).astype(np.int32)[row] for mask, row in zip(used, rows, strict=True)
    )
    start, order = pair_kernels.by_row(i, n)
    out = np.empty(len(order), np.float32)
    blocks(
        pairs,
        lambda first, last, scores: pair_kernels.pick(scores, first, last, start, order, j, out),
        *(np.flatnonzero(mask) for mask in used),
    )
    return out


def all_pairs(
    left: Any, right: Any, left_labels: Any, right_labels: Any, *, left_ids: Any = None,
    right_ids: Any = None, threads: int | None = None,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Genuine and impostor cosines of every left vector with every right one, row by row.

    Vectors are ``[n, d]`` and ``[m, d]``; labels, ``[n]`` and ``[m]``, are integers or strings, as
    ids are; with these, pairs of one id are left out. ``threads`` is all CPUs by default.
    """
    pairs = scorer(left, right, threads)
    a, b = arrays.codes("labels", (left_labels, right_labels), pairs.shape)
    i, j = arrays.both("ids", (left_ids, right_ids), pairs.shape)
    parts: dict[int, tuple[Floats, Floats]] = {}

    def split(first: int, last: int, scores: Floats) -> None:
        same = a[first:last, None] == b
        other = ~same
        if len(i):
            known = i[first:last, None] != j
            same, other = same & known, other & known
        parts[first] = scores[same], scores[other]

    blocks(pairs, split)
    nothing = np.empty(0, np.float32), np.empty(0, np.float32)
    genuine, impostor = zip(nothing, *(parts[first] for first in sorted(parts)), strict=True)
    return np.concatenate(genuine), np.concatenate(impostor)


def _rows(name: str, value: Any, n: int) -> Ints:
    rows = np.asarray(value)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected 1-D integers, got {rows.ndim}-D {rows.dtype}")
    if len(rows) and not (rows.min() >= 0 and rows.max() < n):
        raise ValueError(f"{name}: expected rows 0 ... {n - 1}, got {rows.min()} ... {rows.max()}")
    return rows.astype(np.int64, copy=False)
