"""Slerp: queries on the way from the old model's vector to the new one's, in the old space."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.contract import Between, JointQuery, Pairs, Trainer, best_share, drawing_from, turn

_MOST = 2000  # held-out items that are queries of each other


@dataclass(frozen=True)
class Slerp(JointQuery):
    """q = [sin((1 - a) t) u + sin(a t) v] / sin t, with u = n(o), v = n(R n(f)), t their angle.

    R is the rotation of least ||V R - U||, not centred (eq. 1, 3); between unequal dimensions it is
    semi-orthogonal and v is normalised again (eq. 40; the published code pads with zeros instead).
    a = 0 is the old model, a = 1 Procrustes. Both models run on each query, the gallery must be all
    old. ``midpoint`` is n(u + v), ``nlerp`` n((1 - a) u + a v), which ranks as a weighted sum of
    scores does: controls, as two queries alone explain most of the gain.

    Read: the paper's sections 3, 4, appendices B and N to P; miccunifi/SLERP_backward_compatibility
    at f3a98d8, slerp_bc/method.py, retrieval.py, main.py. There a is chosen on the pairs that R is
    fitted on; here on held-out training classes, whose items find each other, by class Recall@1.
    Without labels it is agreement with the new model's nearest item.
    """

    paper = "Ricci, Biondi and Pernici, SLERP for backward-compatible retrieval, NeurIPS 2026"
    variants = {"midpoint": {"share": 0.5}, "nlerp": {"path": "nlerp"}}
    ranges = {"share": "[0, 1]", "held_out": "(0, 1)"}

    # a; by default the best of 0, 0.1, ..., 1, of equal ones the smallest
    share: float | None = None  # section 4
    path: Literal["slerp", "nlerp"] = "slerp"  # section 3; nlerp is a control, ours
    held_out: float = 0.2  # ours: share of the training classes that a is chosen on

    def fit_view(self, pairs: Pairs, trainer: Trainer) -> Between:
        """R on all pairs, a on those held out from another R."""
        view = Between(turn(pairs.old, pairs.new), self.share or 0.0, self.path)
        if self.share is None:
            view = Between(view.turn, self._chosen(pairs, trainer), self.path)
        return view

    def _chosen(self, pairs: Pairs, trainer: Trainer) -> float:
        classes = torch.arange(len(pairs.old)) if pairs.labels is None else pairs.labels
        known, place = torch.unique(classes, return_inverse=True)
        n = min(max(round(self.held_out * len(known)), 1), len(known) - 1)
        with drawing_from(trainer.seed, "slerp"):
            held = (torch.randperm(len(known)) < n)[place]
            rows = held.nonzero()[:, 0]
            rows = rows[torch.randperm(len(rows))[:_MOST]]
        if held.sum() < 3 or not n:
            return 0.5  # too few to choose by
        other = turn(pairs.old[~held], pairs.new[~held])
        old, new = pairs.old[rows], pairs.new[rows]
        nearest = _nearest(new, new)

        def hits(share: float) -> int:
            found = _nearest(Between(other, share, self.path)(new, old), old)
            right = (
                found == nearest
                if pairs.labels is None
                else (classes[rows][found] == classes[rows])
            )
            return int(right.sum())

        return best_share(hits)


def _nearest(queries: Tensor, gallery: Tensor) -> Tensor:
    """The nearest other row of each row, ``[n]``."""
    scores = F.normalize(queries).double() @ F.normalize(gallery).double().T
    return scores.fill_diagonal_(-torch.inf).argmax(dim=1)
