"""Scores themselves, where a metric needs them: tiles, listed pairs, all pairs (numba inside).

All are cosines by the same chain of operations as the ranking engine's, so they equal its scores to
the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import engine, kernels, pair_kernels, tile_counts

_ROWS = 96
_BLOCK = 8 << 20  # bytes of scores a thread


def each_block(
    left: engine.Side,
    right: engine.Side,
    work: Callable[[int, int, NDArray[np.float32]], None],
    threads: int,
) -> None:
    """Call ``work(first, last, scores[last - first, n_right])`` for all rows, in threads."""
    n, m, dim = len(left.x), len(right.x), left.x.shape[1]
    gp = engine.packed(right, np.arange(m), kernels.COLUMNS, threads)
    rows = min(_ROWS, _BLOCK // (4 * max(m, 1)))
    rows = max(1, rows // kernels.ROWS) * kernels.ROWS

    def block(span: tuple[int, int]) -> None:
        first, last = span
        qp = engine.packed(left, np.arange(first, last), kernels.ROWS, 1)
        scratch = engine.aligned(kernels.ROWS * kernels.COLUMNS)
        out = np.empty((last - first) * m, np.float32)
        tile_counts.tile_scores(qp, last - first, gp, m, dim, False, scratch, out)
        work(first, last, out.reshape(last - first, m))

    engine.share(block, engine.spans(n, rows), threads)


def tiles(
    left: NDArray[np.float32], right: NDArray[np.float32], rows: int = 512
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Cosines of all pairs, some rows at a time: (rows, scores ``[rows, n_right]``)."""
    a = engine.side("left", left)
    b = engine.side("right", right, dim=a.x.shape[1])
    for start, stop in engine.spans(len(a.x), rows):
        out = np.empty((stop - start, len(b.x)), np.float32)
        part = a.take(slice(start, stop))

        def keep(
            first: int, last: int, scores: NDArray[np.float32], out: NDArray[np.float32] = out
        ) -> None:
            out[first:last] = scores

        each_block(part, b, keep, 1)
        yield slice(start, stop), out


def listed(
    left: Any, right: Any, left_rows: Any, right_rows: Any, *, threads: int | None = None
) -> NDArray[np.float32]:
    """Cosines of listed pairs, IJB-C's template pairs, say.

    Args:
        left: First vectors, ``[n, d]``: of one model.
        right: Second vectors, ``[m, d]``: of the same or another model.
        left_rows: Row in ``left`` of each pair, ``[p]``.
        right_rows: Row in ``right`` of each pair, ``[p]``.
        threads: CPU threads; all by default.

    Returns:
        One score for each pair.

    Raises:
        ValueError: If an argument has the wrong shape, type or range.
    """
    n_threads = engine.n_threads(threads)
    a = engine.side("left", left, threads=n_threads)
    b = engine.side("right", right, dim=a.x.shape[1], threads=n_threads)
    rows = [_rows("left_rows", left_rows, len(a.x)), _rows("right_rows", right_rows, len(b.x))]
    if len(rows[0]) != len(rows[1]):
        raise ValueError(f"right_rows: expected {len(rows[0])} rows, got {len(rows[1])}")
    used = [np.zeros(len(side.x), bool) for side in (a, b)]
    for mask, row in zip(used, rows, strict=True):
        mask[row] = True
    n, m = (int(mask.sum()) for mask in used)
    if len(rows[0]) * 40 < n * m or n * m == 0:  # sparse: one by one
        return engine.pairs(a, b, rows[0], rows[1], l2=False, threads=n_threads)
    kept = [np.flatnonzero(mask) for mask in used]
    small = [
        (np.cumsum(mask) - 1).astype(np.int32)[row] for mask, row in zip(used, rows, strict=True)
    ]
    start, order = pair_kernels.by_row(small[0], n)
    out = np.empty(len(order), np.float32)
    each_block(
        a.take(kept[0]),
        b.take(kept[1]),
        lambda first, last, scores: pair_kernels.pick(
            scores, first, last, start, order, small[1], out
        ),
        n_threads,
    )
    return out


def all_pairs(
    left: Any,
    right: Any,
    left_labels: Any,
    right_labels: Any,
    *,
    left_ids: Any = None,
    right_ids: Any = None,
    threads: int | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosines of every left vector with every right one, split by label.

    Args:
        left: ``[n, d]``.
        right: ``[m, d]``.
        left_labels: Identities, integers or strings, ``[n]``.
        right_labels: Identities, ``[m]``.
        left_ids: With ``right_ids``: pairs of one id are left out.
        right_ids: Ids of the right side.
        threads: CPU threads; all by default.

    Returns:
        Genuine and impostor scores, float32, row by row.

    Raises:
        ValueError: If an argument has the wrong shape, type or value.
    """
    from benchmark.ranking import arrays

    n_threads = engine.n_threads(threads)
    a = engine.side("left", left, threads=n_threads)
    b = engine.side("right", right, dim=a.x.shape[1], threads=n_threads)
    la, lb = arrays.codes("labels", left_labels, len(a.x), right_labels, len(b.x))
    ia, ib = arrays.both("ids", left_ids, len(a.x), right_ids, len(b.x))
    sizes = pair_kernels.sizes(la, lb, ia, ib)
    good, bad = (np.concatenate([[0], np.cumsum(size)]) for size in sizes)
    genuine, impostor = np.empty(good[-1], np.float32), np.empty(bad[-1], np.float32)
    each_block(
        a,
        b,
        lambda first, last, scores: pair_kernels.split(
            scores, first, last, la, lb, ia, ib, good, bad, genuine, impostor
        ),
        n_threads,
    )
    return genuine, impostor


def _rows(name: str, value: Any, n: int) -> NDArray[np.int64]:
    rows = np.asarray(value)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected 1-D integers, got {rows.ndim}-D {rows.dtype}")
    if len(rows) and not (rows.min() >= 0 and rows.max() < n):
        raise ValueError(f"{name}: expected rows 0 ... {n - 1}, got {rows.min()} ... {rows.max()}")
    return rows.astype(np.int64, copy=False)
