"""A bank of earlier rows for losses, and the rows of other devices."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def gather_rows(rows: Tensor) -> Tensor:
    """The rows of the whole batch from all devices, in its order, without gradient.

    On one device these are the rows themselves; on several, whose losses are averaged, a loss
    that compares its own rows with all of them is the loss of one device. A device's share,
    ``[k, ...]``, is every n-th row of the batch, from its rank on; of batches that are dealt in
    hands the rows are the same, in another order.
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


class MemoryBank(nn.Module):
    """The latest ``size`` rows, a label and vectors of ``dims`` each: a ring of buffers."""

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
        """Replace the oldest rows by those of all devices, without gradient.

        A row with a label below 0 stays out; ``labels`` are ``[k]``, ``vectors`` ``[k, dim]`` each.
        """
        rows = [gather_rows(each) for each in (labels, *vectors)]
        entering = [each[rows[0] >= 0] for each in rows]
        count = min(len(entering[0]), self.size)
        places = (self.next + torch.arange(count, device=labels.device)) % self.size
        for name, new in zip(("labels", *self.names), entering, strict=True):
            getattr(self, name)[places] = new[len(new) - count :]
        self.next.copy_((self.next + count) % self.size)

    def rows(self) -> tuple[Tensor, ...]:
        """Labels and vectors of the rows that are filled."""
        filled = self.labels >= 0
        buffers = (self.labels, *(getattr(self, name) for name in self.names))
        # The buffers themselves if they are full: a copy in each step costs as much as the loss.
        return buffers if filled.all() else tuple(each[filled] for each in buffers)


def contrastive_loss(queries: Tensor, bank: Tensor, weight: Tensor, tau: float) -> Tensor:
    """Weighted cross-entropy of queries ``[B, d]`` over a bank ``[m, d]``, a scalar.

    Both are unit vectors. ``weight`` ``[B, m]`` is that of each row as a positive of each query, 0
    for a negative; ``tau`` is the temperature of the softmax over the bank.
    """
    scores = queries @ bank.T / tau
    log_shares = scores - scores.logsumexp(dim=1, keepdim=True)
    return -(weight * log_shares).sum(dim=1).mean()
