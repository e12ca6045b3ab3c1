"""Exact counts on a torch device: every tile twice, first for the matches, then for the counts.

A device's matrix product promises no order of additions, so a score may differ from the CPU path's
in its last places, and nearly tied items may change places. Measured with torch on a CPU for unit
vectors of 64 to 512 dimensions, additions in another order: scores differ by at most 5e-7, first
ranks for at most one query in a thousand, mAP by less than 1e-6 (``benchmark/perf/README.md``).

What holds on a device: a tile computed twice gives the same bits, so a match is compared with
scores of its own kernel. On vectors of integers small enough that every sum is exact, L2 counts
equal the CPU path's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from benchmark.ranking.job import Job

_ROWS, _COLUMNS = 1024, 8192


def count(
    job: Job, device: str
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Matches and the non-matching items above each, in the queries' order.

    Args:
        job: Checked arguments.
        device: A torch device.

    Returns:
        Offsets, ascending scores, counts.

    Raises:
        ValueError: If the device does not exist.
    """
    import torch

    try:
        where = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device: expected 'cpu' or a torch device, got {device!r}") from error
    if where.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: expected one that is present, got 'cuda' without CUDA")
    n = len(job.query.x)
    parts = [_rows(job, where, first, min(first + _ROWS, n)) for first in range(0, n, _ROWS)]
    sizes = np.concatenate([[0], *[part[0] for part in parts]]).astype(np.int64)
    scores = [np.empty(0, np.float32), *[part[1] for part in parts]]
    above = [np.empty(0, np.int64), *[part[2] for part in parts]]
    return np.cumsum(sizes), np.concatenate(scores), np.concatenate(above)


def _rows(job: Job, where: Any, first: int, last: int) -> tuple[Any, Any, Any]:
    """Match counts, thresholds and counts of some queries."""
    import torch

    def move(array: NDArray[Any]) -> Any:
        return torch.from_numpy(np.ascontiguousarray(array)).to(where)

    def unit(part: Any, a: int, b: int) -> Any:
        rows = np.arange(a, b)
        return move((part.wide(rows) * part.scales(rows)[:, None]).astype(np.float32))

    n, m, rules = last - first, len(job.gallery.x), job.rules
    query = torch.nn.functional.pad(unit(job.query, first, last), (0, 0, 0, _ROWS - n))
    labels = move(job.query_labels[first:last])[:, None]

    def tiles() -> Any:
        """Scores, and which items match and which count, for each tile; always of one shape."""
        for a in range(0, m, _COLUMNS):
            b = min(a + _COLUMNS, m)
            items = torch.nn.functional.pad(unit(job.gallery, a, b), (0, 0, 0, _COLUMNS - b + a))
            if job.l2:
                squares = (query * query).sum(1)[:, None] + (items * items).sum(1)
                scores = 2.0 * product(query, items) - squares
            else:
                scores = product(query, items)
            same = labels == move(job.gallery_labels[a:b])
            left_out = torch.zeros_like(same)
            if job.junk is not None:
                left_out |= move(job.junk[a:b])
            if len(rules.qi):
                left_out |= move(rules.qi[first:last])[:, None] == move(rules.gi[a:b])
            if len(rules.qc):
                camera = move(rules.qc[first:last])[:, None] == move(rules.gc[a:b])
                left_out |= same & camera
            yield scores[:n, : b - a], same & ~left_out, ~same & ~left_out

    found: list[tuple[Any, Any]] = []
    for scores, match, _ in tiles():
        rows, columns = match.nonzero(as_tuple=True)
        found.append((rows, scores[rows, columns]))
    if not found:
        return np.zeros(n, np.int64), np.empty(0, np.float32), np.empty(0, np.int64)
    rows = torch.cat([row for row, _ in found])
    values = torch.cat([value for _, value in found])
    values, order = values.sort(stable=True)
    rows, place = rows[order].sort(stable=True)
    values = values[place]
    sizes = torch.bincount(rows, minlength=n)
    most = int(sizes.max())
    inside = torch.arange(len(rows), device=where) - (sizes.cumsum(0) - sizes)[rows]
    table = torch.full((n, most + 1), float("inf"), device=where)
    table[rows, inside] = values
    counts = torch.zeros((n, most + 2), dtype=torch.int64, device=where)
    for scores, _, other in tiles():
        reached = torch.searchsorted(table, scores.contiguous(), right=True)
        counts.scatter_add_(1, reached, other.to(torch.int64))
    above = counts.flip(1).cumsum(1).flip(1)
    return sizes.cpu().numpy(), values.cpu().numpy(), above[rows, inside + 1].cpu().numpy()


def product(left: Any, right: Any) -> Any:
    """A float32 product, without TF32."""
    import torch

    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        return left @ right.T
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed
