"""Relative: cosines to the same anchor items in both spaces, without any training."""

from dataclasses import dataclass

import torch

from benchmark.contract import (
    FeatureTransformation,
    Fitted,
    Pairs,
    RefusedError,
    Trainer,
    drawing_from,
)
from benchmark.models.closed_form import Cosines
from benchmark.models.parts import KeepSide


@dataclass(frozen=True)
class Relative(FeatureTransformation):
    """r(x) = [cos(x, a_1), ..., cos(x, a_k)], a_i the same training items in each space (eq. 1).

    Stored vectors and new queries are compared by their r. Published code (lucmos/relreps at
    06a4913, attention.py) was read; its text only in quotations. That the mean direction of the
    pairs is taken off first, and that r has length 1, is ours: vectors of a narrow cone have
    cosines that are all alike. Anchors are drawn at random among the pairs, which are no items of
    an evaluated gallery; of your own vectors, give pairs that are not searched, as an anchor's own
    cosine is 1 in both spaces. A third generation would need anchors of both earlier ones: a
    sequence is refused.
    """

    paper = (
        "Moschella et al., Relative Representations Enable Zero-Shot Latent Space Communication, "
        "ICLR 2023"
    )
    fidelity = "code"
    reads_old_head = False
    changes = ("gallery", "queries")
    ranges = {"anchors": "[1, inf)"}

    anchors: int = 500  # k, published code: 500 or 1,500; at most as many as there are pairs

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Draw the anchors; nothing else is fitted."""
        if pairs.chained:
            raise RefusedError("relative: a sequence of updates has no anchors in common")
        with drawing_from(trainer.seed, "anchors"):
            rows = torch.randperm(len(pairs.old))[: self.anchors]
        convert, view = Cosines.of(pairs.old, rows), Cosines.of(pairs.new, rows)
        return Fitted(convert=KeepSide(convert), query_view=view)
