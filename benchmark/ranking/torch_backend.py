"""Exact counts on a torch device: every tile twice, first for the matches, then for the counts.

A device's matrix product promises no order of additions: a score's last places may differ from the
CPU path's, nearly tied items may change places; ``bench perf tolerance`` measures it. A tile twice
gives the same bits, so a match is compared with scores of its own kernel. Where every sum is exact,
as on small integers, L2 counts equal the CPU path's.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.ranking.arrays import Ints
from benchmark.ranking.engine import Scorer, Side, spans
from benchmark.ranking.grouping import Labels, Ragged, offsets

_ROWS, _COLUMNS = 1024, 8192


def count(scorer: Scorer, labels: Labels, device: str) -> tuple[Ragged, Ints]:
    """Scores of the matches, ascending for each query, and the non-matching items above each.

    A ValueError says that the torch device does not exist.
    """
    try:
        where = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device: expected 'cpu' or a torch device, got {device!r}") from error
    if where.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: expected one that is present, got 'cuda' without CUDA")
    pieces = spans(len(labels.query), _ROWS) or [(0, 0)]
    parts = [_Rows(scorer, labels, where, *piece).count() for piece in pieces]
    sizes, scores, above = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Ragged(offsets(sizes), scores), above


class _Rows:
    """Some queries, against the whole gallery in tiles of one shape."""

    def __init__(
        self, scorer: Scorer, labels: Labels, where: torch.device, first: int, last: int
    ) -> None:
        self.scorer, self.labels, self.where, self.rows = scorer, labels, where, slice(first, last)
        self.n = last - first
        self.query = self._unit(scorer.query, first, last, _ROWS)

    def _move(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.where)

    def _unit(self, side: Side, first: int, last: int, height: int) -> Tensor:
        """Vectors as they are scored, and zeros up to a height."""
        x, rows, scale = side.part(np.arange(first, last))
        unit = self._move((x[rows] * scale[:, None]).astype(np.float32))
        return torch.nn.functional.pad(unit, (0, 0, 0, height - len(rows)))

    def _equal(self, query: Ints, gallery: Ints, items: slice) -> Tensor:
        return self._move(query[self.rows])[:, None] == self._move(gallery[items])

    def _tiles(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Scores of some items, and which of these match and which count, one tile at a time."""
        labels, rules = self.labels, self.labels.rules
        for a, b in spans(self.scorer.shape[1], _COLUMNS):
            items, here = self._unit(self.scorer.gallery, a, b, _COLUMNS), slice(a, b)
            scores = product(self.query, items)
            if self.scorer.l2:
                squares = (self.query * self.query).sum(1)[:, None] + (items * items).sum(1)
                scores = 2.0 * scores - squares
            same = self._equal(labels.query, labels.gallery, here)
            left_out = torch.zeros_like(same)
            if labels.junk is not None:
                left_out |= self._move(labels.junk[here])
            if len(rules.query_ids):
                left_out |= self._equal(rules.query_ids, rules.gallery_ids, here)
            if len(rules.query_cameras):
                left_out |= same & self._equal(rules.query_cameras, rules.gallery_cameras, here)
            yield scores[: self.n, : b - a], same & ~left_out, ~same & ~left_out

    def count(self) -> tuple[Ints, NDArray[np.float32], Ints]:
        """Numbers of matches, their ascending scores, and the non-matching items above each."""
        nothing = torch.empty(0, device=self.where)
        parts = [(nothing.long(), nothing)]
        for scores, match, _ in self._tiles():
            places = match.nonzero(as_tuple=True)
            parts.append((places[0], scores[places]))
        rows, values = (torch.cat(column) for column in zip(*parts, strict=True))
        values, order = values.sort(stable=True)
        rows, place = rows[order].sort(stable=True)
        values = values[place]
        sizes = torch.bincount(rows, minlength=self.n)
        most = int(sizes.max()) if self.n else 0
        inside = torch.arange(len(rows), device=self.where) - (sizes.cumsum(0) - sizes)[rows]
        table = torch.full((self.n, most + 1), float("inf"), device=self.where)
        table[rows, inside] = values
        counts = torch.zeros((self.n, most + 2), dtype=torch.int64, device=self.where)
        for scores, _, other in self._tiles():
            reached = torch.searchsorted(table, scores.contiguous(), right=True)
            counts.scatter_add_(1, reached, other.to(torch.int64))
        above = counts.flip(1).cumsum(1).flip(1)[rows, inside + 1]
        return sizes.cpu().numpy(), values.cpu().numpy(), above.cpu().numpy()


def product(left: Tensor, right: Tensor) -> Tensor:
    """A float32 product, without TF32."""
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        return left @ right.T
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed
