"""Slerp: queries on the way from the old model's vector to the new one's, in the old space."""

from dataclasses import dataclass
from typing import Literal

from benchmark.contract import Between, JointQuery, Pairs, Trainer, chosen_share, turn


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
    Without labels it is agreement with the new model's nearest item. R has not seen these classes,
    but the new model has learned them, as all that a plan gives: on other classes it is weaker, and
    a is then larger than would be best. Whoever has items that neither model has seen sets share.
    """

    paper = "Ricci, Biondi and Pernici, SLERP for backward-compatible retrieval, NeurIPS 2026"
    fidelity = "paper"
    variants = {"midpoint": {"share": 0.5}, "nlerp": {"path": "nlerp"}}
    ranges = {"share": "[0, 1]", "held_out": "(0, 1)"}

    # a; by default the best of 0, 0.1, ..., 1, of equal ones the smallest
    share: float | None = None  # section 4
    path: Literal["slerp", "nlerp"] = "slerp"  # section 3; nlerp is a control, ours
    held_out: float = 0.2  # ours: share of the training classes that a is chosen on

    def fit_view(self, pairs: Pairs, trainer: Trainer) -> Between:
        """R on all pairs, a on those held out from another R."""
        share = self.share
        if share is None:
            share = chosen_share(pairs, self.held_out, self.path, trainer.seed)
        return Between(turn(pairs.old, pairs.new), share, self.path)
