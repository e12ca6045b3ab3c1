"""Exact counts on a torch device: every tile twice, first for the matches, then for the counts.

A device's matrix product promises no order of additions: a score's last places may differ from the
CPU path's, nearly tied items may change places; ``bench perf tolerance`` measures it. A tile twice
gives the same bits, so a match is compared with scores of its own kernel. Where every sum is exact,
as on small integers, L2 counts equal the CPU path's.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.ranking.arrays import Floats, Ints
from benchmark.ranking.device import torch_device
from benchmark.ranking.engine import Scorer, Side, share, spans
from benchmark.ranking.grouping import Labels, Ragged, offsets

_ROWS, _COLUMNS = 1024, 8192
_BLOCK = 1 << 29  # bytes of scores that are brought to the CPU at a time


def count(scorer: Scorer, labels: Labels, device: str) -> tuple[Ragged, Ints]:
    """Scores of the matches, ascending for each query, and the non-matching items above each.

    A ValueError says that the torch device does not exist.
    """
    where = torch_device(device)
    pieces = spans(len(labels.query), _ROWS) or [(0, 0)]
    parts = [_Rows(scorer, labels, where, *piece).count() for piece in pieces]
    sizes, scores, above = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Ragged(offsets(sizes), scores), above


class Grid:
    """Scores of some queries and items, ordered, in tiles of one shape.

    Asked for twice, a tile has the same bits: a score is compared with one of its own kernel. They
    are on the scorer's device, or on another one.
    """

    def __init__(
        self, scorer: Scorer, q_rows: Ints, g_rows: Ints, where: torch.device | None = None
    ) -> None:
        self.scorer, self.where = scorer, where or torch_device(scorer.device)
        self.q_rows, self.g_rows = q_rows, g_rows

    def tiles(self) -> Iterator[tuple[slice, slice, Tensor]]:
        """Places in the order of queries, in that of items, and their scores on the device."""
        for first, last in spans(len(self.q_rows), _ROWS):
            query = unit(self.scorer.query, self.q_rows[first:last], _ROWS, self.where)
            for a, b in spans(len(self.g_rows), _COLUMNS):
                items = unit(self.scorer.gallery, self.g_rows[a:b], _COLUMNS, self.where)
                scores = tile_scores(query, items, l2=self.scorer.l2)
                yield slice(first, last), slice(a, b), scores[: last - first, : b - a]

    def listed(self, rows: Ints, columns: Ints) -> Floats:
        """Scores of pairs of places in both orders, ``[p]``."""
        across = -(-len(self.g_rows) // _COLUMNS)
        tile_of = rows // _ROWS * across + columns // _COLUMNS
        order = np.argsort(tile_of, kind="stable")
        out, begin = np.empty(len(rows), np.float32), 0
        for number, (down, right, scores) in enumerate(self.tiles()):
            end = begin + int(np.searchsorted(tile_of[order[begin:]], number, "right"))
            some, begin = order[begin:end], end
            if len(some):
                places = (
                    torch.from_numpy(x[some] - side.start).to(self.where)
                    for x, side in ((rows, down), (columns, right))
                )
                out[some] = scores[tuple(places)].cpu().numpy()
        return out


def blocks(
    scorer: Scorer, work: Callable[[int, int, Floats], None], q_rows: Ints, g_rows: Ints
) -> None:
    """As ``Scorer.blocks``: products on the device, ``work`` in threads on the CPU."""
    step = max(1, min(_ROWS, _BLOCK // max(1, 4 * len(g_rows))))
    for first, last in spans(len(q_rows), step):
        tiles = Grid(scorer, q_rows[first:last], g_rows).tiles()
        rows = np.concatenate([scores.cpu().numpy() for *_, scores in tiles], axis=1)

        def some(a: int, b: int, first: int = first, rows: Floats = rows) -> None:
            work(first + a, first + b, rows[a:b])

        share(some, spans(last - first, max(1, -(-len(rows) // scorer.threads))), scorer.threads)


def unit(side: Side, rows: Ints, height: int, where: torch.device) -> Tensor:
    """Vectors as they are scored, and zeros up to a height."""
    x, places, scale = side.part(rows)
    made = torch.from_numpy((x[places] * scale[:, None]).astype(np.float32)).to(where)
    return torch.nn.functional.pad(made, (0, 0, 0, height - len(rows)))


def tile_scores(query: Tensor, items: Tensor, *, l2: bool) -> Tensor:
    """Cosines, or negative squared distances, of unit vectors of both sides."""
    scores = product(query, items)
    if l2:
        squares = (query * query).sum(1)[:, None] + (items * items).sum(1)
        scores = 2.0 * scores - squares
    return scores


class _Rows:
    """Some queries, against the whole gallery in tiles of one shape."""

    def __init__(
        self, scorer: Scorer, labels: Labels, where: torch.device, first: int, last: int
    ) -> None:
        self.labels, self.where, self.rows = labels, where, slice(first, last)
        self.n = last - first
        self.grid = Grid(scorer, np.arange(first, last), np.arange(scorer.shape[1]), where)

    def _move(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.where)

    def _equal(self, query: Ints, gallery: Ints, items: slice) -> Tensor:
        return self._move(query[self.rows])[:, None] == self._move(gallery[items])

    def _tiles(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Scores of some items, and which of these match and which count, one tile at a time."""
        labels, rules = self.labels, self.labels.rules
        for _, here, scores in self.grid.tiles():
            same = self._equal(labels.query, labels.gallery, here)
            left_out = torch.zeros_like(same)
            if labels.junk is not None:
                left_out |= self._move(labels.junk[here])
            if len(rules.query_ids):
                left_out |= self._equal(rules.query_ids, rules.gallery_ids, here)
            if len(rules.query_cameras):
                left_out |= same & self._equal(rules.query_cameras, rules.gallery_cameras, here)
            yield scores, same & ~left_out, ~same & ~left_out

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
