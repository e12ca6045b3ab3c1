"""Queries between both models' vectors, for an index that stays as it is.

The new query is turned into the old space, v; the query then lies between the old one, u, and v.
One definition serves the adapter and :mod:`benchmark.upgrade`.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.config.seeds import drawing_from
from benchmark.contract.pairs import Pairs
from benchmark.models.module import Portable
from benchmark.models.parts import Affine
from benchmark.training.closed_form import rotation

SHARES = tuple(round(0.1 * k, 1) for k in range(11))
"""Places on the way from the old query to the new one, from which one is chosen."""
_NO_DIRECTION = 1e-6  # length of a sum of opposite unit vectors, of float32
_MOST = 2000  # held-out items that are queries of each other


class Between(Portable):
    """Unit vectors from the old query (share 0) to the new one after ``turn`` (share 1).

    Half-way between opposite vectors there is no direction: there the old query answers, whose
    gallery it is.
    """

    def __init__(self, turn: Portable, share: float, path: str = "slerp") -> None:
        super().__init__()
        self.turn, self.share, self.path = turn, share, path

    def forward(self, new: Tensor, old: Tensor) -> Tensor:
        """``[n, d_new]`` and ``[n, d_old]`` -> ``[n, d_old]``."""
        u, v = F.normalize(old).double(), F.normalize(self.turn(F.normalize(new))).double()
        parts = torch.tensor([[1 - self.share, self.share]], dtype=torch.float64)
        if self.path == "slerp":
            cosine = (u * v).sum(dim=1, keepdim=True)
            parts = torch.sin(parts * cosine.clamp(-1 + 1e-7, 1 - 1e-7).acos())  # [n, 2]
        between = parts[:, :1] * u + parts[:, 1:] * v
        lost = between.norm(dim=1, keepdim=True) < _NO_DIRECTION
        return F.normalize(torch.where(lost, u, between)).to(old.dtype)


def turn(old: Tensor, new: Tensor) -> Affine:
    """The rotation of new directions nearest to old ones, ``[n, d]`` each, not centred.

    Between unequal dimensions it is semi-orthogonal. Source: Ricci et al., SLERP for
    backward-compatible retrieval, NeurIPS 2026, equations 1 and 40.
    """
    return Affine.of(*rotation(F.normalize(new), F.normalize(old), centred=False))


def best_share(score: Callable[[float], float]) -> float:
    """The share, of :data:`SHARES`, with the best score; of equally good ones the smallest."""
    return max(SHARES, key=lambda share: (score(share), -share))


def chosen_share(pairs: Pairs, held_out: float, path: str, seed: int) -> float:
    """The share, of :data:`SHARES`, by which held-out items find each other best.

    A part ``held_out`` of the classes is kept from the rotation; their items are queries of one
    another, each in its first view. A hit is a nearest item of the query's class or, without
    labels, the one that is the new model's nearest. Of equally good shares the smallest counts; of
    fewer than three items 0.5.

    The new model has been trained on these items, as on all pairs. On others it is weaker, so that
    the share is larger than would be best there.
    """
    classes = torch.arange(len(pairs.old)) if pairs.labels is None else pairs.labels
    known, place = torch.unique(classes, return_inverse=True)
    n = min(max(round(held_out * len(known)), 1), len(known) - 1)
    with drawing_from(seed, "slerp"):
        held = (torch.randperm(len(known)) < n)[place]
        rows = held[: len(held) // pairs.views].nonzero()[:, 0]  # an item's other views are near
        rows = rows[torch.randperm(len(rows))[:_MOST]]
    if len(rows) < 3 or not n:
        return 0.5
    turned = turn(pairs.old[~held], pairs.new[~held])
    old, new, names = pairs.old[rows], pairs.new[rows], classes[rows]
    by_new = _nearest(new, new)

    def hits(share: float) -> int:
        found = _nearest(Between(turned, share, path)(new, old), old)
        right = found == by_new if pairs.labels is None else names[found] == names
        return int(right.sum())

    return best_share(hits)


def _nearest(queries: Tensor, gallery: Tensor) -> Tensor:
    """The nearest other row of each row, ``[n]``."""
    scores = F.normalize(queries).double() @ F.normalize(gallery).double().T
    return scores.fill_diagonal_(-torch.inf).argmax(dim=1)
