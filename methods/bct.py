"""BCT: influence loss of the frozen old classifier on the new features."""

from dataclasses import dataclass

from benchmark.contract import OldClassifierTraining


@dataclass(frozen=True)
class BCT(OldClassifierTraining):
    """L_new(W, f, y) + weight * L_old(K, f[:d_old], y) with K frozen (eq. 7, 8).

    ``synthesize`` gives classes that K does not know the mean old feature as their row; where the
    protocol discards K, that is every class. ``old`` leaves such images out, ``distill`` holds
    their outputs under K to those of their old features, for which K need know no class at all.
    Of longer new features K reads the first d_old dimensions (section 3.6).
    """

    paper = "Shen et al., Towards Backward-Compatible Representation Learning, CVPR 2020"
    variants = {unknown: {"unknown": unknown} for unknown in ("old", "distill", "synthesize")}
