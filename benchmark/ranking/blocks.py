"""Blocks of scores, by whichever device was chosen."""

from collections.abc import Callable

import numpy as np

from benchmark.ranking.arrays import Floats, Ints
from benchmark.ranking.device import CPU
from benchmark.ranking.engine import Scorer


def blocks(
    scorer: Scorer, work: Callable[[int, int, Floats], None], q_rows: Ints | None = None,
    g_rows: Ints | None = None,
) -> None:  # fmt: skip
    """Call ``work`` for blocks of queries, as ``Scorer.blocks`` does, on the scorer's device."""
    if scorer.device == CPU:
        scorer.blocks(work, q_rows, g_rows)
        return
    from benchmark.ranking import torch_backend

    queries, items = (
        np.arange(n) if rows is None else rows
        for n, rows in zip(scorer.shape, (q_rows, g_rows), strict=True)
    )
    torch_backend.blocks(scorer, work, queries, items)
