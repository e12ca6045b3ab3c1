"""Backfilling curves on a torch device: its tiles fill the histograms that the CPU sums up.

As :mod:`benchmark.ranking.torch_backend`: a match is compared with scores of its own kernel, in its
own place of its own tile, so every tile is made twice.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from benchmark.ranking import backfill_kernels, engine
from benchmark.ranking.arrays import Floats, Ints
from benchmark.ranking.backfill_engine import BackfillRun, Cells, Stage
from benchmark.ranking.engine import Scorer
from benchmark.ranking.grouping import Grouped, Ragged, spread
from benchmark.ranking.torch_backend import Grid


class DeviceRun(BackfillRun):
    """A backfilling evaluation whose scores are made and counted on a device."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.place = np.empty(len(self.order), np.int64)  # of each item in the order of filling
        self.place[self.order] = np.arange(len(self.order))

    def _class_scores(self, scorer: Scorer, by: Grouped) -> Floats:
        rows = np.repeat(np.arange(len(by.q_order)), by.stop - by.start)
        return self._pairs(scorer, by, rows, by.g_order[spread(by.start, by.stop)])

    def _pairs(self, scorer: Scorer, by: Grouped, rows: Ints, items: Ints) -> Floats:
        return Grid(scorer, by.q_order, self.order).listed(rows, self.place[items])

    def _counting(  # the CPU's workspace is of no use here
        self, rows: Ints, thresholds: tuple[Ragged, Ragged],
        room: engine.Workspace, cells: Cells,  # noqa: ARG002
    ) -> Iterator[Stage]:  # fmt: skip
        """Fill the cells; nothing is left for the threads but to sum up."""
        if cells.width > 1:
            for scorer, own, change in zip(self.scorers, thresholds, (-1, 1), strict=True):
                self._fill(Grid(scorer, rows, self.order), own, change, cells)
                if scorer is self.old:
                    backfill_kernels.taken(cells, 0, len(rows))
        return iter(())

    def _fill(self, grid: Grid, thresholds: Ragged, change: int, cells: Cells) -> None:
        """Add ``change`` to the cell of each score that reaches a threshold."""
        n, most = len(grid.q_rows), cells.width - 1
        table = np.full((n, most), np.inf, np.float32)
        within = np.arange(most) < thresholds.sizes[:, None]
        table[within] = thresholds.values
        limits = torch.from_numpy(table).to(grid.where)
        moments = torch.from_numpy(self.moment.astype(np.int64)).to(grid.where)
        counts = torch.zeros(cells.changes.shape, dtype=torch.int32, device=grid.where)
        for down, right, scores in grid.tiles():
            reached = torch.searchsorted(limits[down], scores.contiguous(), right=True)
            cell = moments[right] * cells.width + reached
            counts[down].scatter_add_(1, cell, (reached > 0).to(torch.int32) * change)
        changes = cells.changes
        changes += counts.cpu().numpy().astype(changes.dtype)
