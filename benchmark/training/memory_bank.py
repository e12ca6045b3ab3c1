"""What losses remember between batches, and what they see of other devices."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def all_rows(rows: Tensor) -> Tensor:
    """The rows of the whole batch, whichever device has them, in its order, without gradient.

    On one device these are the rows themselves; on several, whose losses are averaged, a loss
    that compares its own rows with all of them is the loss of one device.

    Args:
        rows: This device's share, ``[k, ...]``: every n-th row of the batch, from its rank on.
    """
    rows = rows.detach()
    dist = torch.distributed
    world = dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
    if world == 1:
        return rows
    total = torch.tensor(len(rows), device=rows.device)
    dist.all_reduce(total)
    # The last ranks may have a row less; what fills it up comes last, and is cut off again.
    share = -(-int(total) // world)
    filled = F.pad(rows, (0, 0) * (rows.ndim - 1) + (0, share - len(rows)))
    parts = [torch.empty_like(filled) for _ in range(world)]
    dist.all_gather(parts, filled.contiguous())
    return torch.stack(parts, dim=1).flatten(0, 1)[: int(total)]


class Memory(nn.Module):
    """The latest rows with their labels: a ring of buffers, so a resumed training has them too.

    Args:
        size: Rows that it keeps.
        dims: Lengths of the vectors that a row has.
    """

    labels: Tensor
    next: Tensor

    def __init__(self, size: int, *dims: int) -> None:
        super().__init__()
        self.size = size
        self.names = [f"vectors{i}" for i in range(len(dims))]
        self.register_buffer("labels", torch.full((size,), -1))
        self.register_buffer("next", torch.zeros((), dtype=torch.long))
        for name, dim in zip(self.names, dims, strict=True):
            self.register_buffer(name, torch.zeros(size, dim))

    @torch.no_grad()
    def push(self, labels: Tensor, *vectors: Tensor) -> None:
        """Take in the rows of all devices; the oldest go.

        Args:
            labels: ``[k]`` int64; a row with a label below 0 stays out.
            vectors: ``[k, dim]`` for each of ``dims``; no gradient goes through them.
        """
        rows = [all_rows(each) for each in (labels, *vectors)]
        labels, *entering = (each[rows[0] >= 0] for each in rows)
        kept = min(len(labels), self.size)
        places = (self.next + torch.arange(kept, device=labels.device)) % self.size
        self.labels[places] = labels[-kept:] if kept else labels
        for name, new in zip(self.names, entering, strict=True):
            getattr(self, name)[places] = new[-kept:] if kept else new
        self.next.copy_((self.next + kept) % self.size)

    def rows(self) -> tuple[Tensor, ...]:
        """Labels and vectors of the rows that are there; a place not yet filled is none."""
        there = self.labels >= 0
        if there.all():  # the buffers themselves: a copy in each step costs as much as the loss
            return (self.labels, *(getattr(self, name) for name in self.names))
        return (self.labels[there], *(getattr(self, name)[there] for name in self.names))


def contrast(asking: Tensor, stored: Tensor, weight: Tensor, tau: float) -> Tensor:
    """How far what asks is from what it belongs to, among all that is stored: a scalar.

    Args:
        asking: Unit vectors, ``[B, d]``.
        stored: Unit vectors, ``[m, d]``.
        weight: How much each belongs to each, ``[B, m]``; 0 for what does not.
        tau: Temperature of the softmax over what is stored.
    """
    scores = asking @ stored.T / tau
    shares = scores - scores.logsumexp(dim=1, keepdim=True)
    return -(weight * shares).sum(dim=1).mean()
