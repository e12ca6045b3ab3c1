"""What an update does to vectors that are stored or ask, on plain arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmark.models.module import Portable, load_module

BLOCK = 512


def apply_part(folder: Path, name: str, *arrays: Any) -> Any:
    """Call a stored part of an update (``convert``, ``query_view``, ``priority``) on arrays.

    Returns:
        As :func:`apply`; ``None`` if the update has no such part.
    """
    path = folder / f"{name}.safetensors"
    return apply(load_module(path), *arrays) if path.exists() else None


def apply(module: Portable, *arrays: Any) -> Any:
    """Call a module on arrays, in blocks of one size.

    What becomes of an item depends neither on its neighbours nor on its place.

    Args:
        module: Rows of tensors -> rows, or a tuple of them.
        arrays: ``[n, ...]`` each; ``None`` is handed on as it is.

    Returns:
        Its output as float32 arrays ``[n, ...]``; ``None`` where it gives none.
    """
    module.eval()
    tensors = [None if a is None else torch.from_numpy(np.ascontiguousarray(a)) for a in arrays]
    with torch.inference_mode():
        n = next(len(t) for t in tensors if t is not None)
        blocks = [
            module(*(None if t is None else _block(t, start) for t in tensors))
            for start in range(0, n, BLOCK)
        ]
    return _joined(blocks, n)


def _block(rows: Tensor, start: int) -> Tensor:
    """Rows from ``start``, filled up with zeros: a smaller product sums in another order."""
    block = rows[start : start + BLOCK]
    missing = BLOCK - len(block)
    return torch.cat([block, block.new_zeros(missing, *block.shape[1:])]) if missing else block


def _joined(blocks: list[Any], n: int) -> Any:
    def join(parts: list[Tensor | None]) -> Any:
        return None if parts[0] is None else torch.cat(parts)[:n].float().numpy()  # type: ignore[arg-type]

    if isinstance(blocks[0], tuple):
        return tuple(join([b[i] for b in blocks]) for i in range(len(blocks[0])))
    return join(blocks)
