"""Control: an affine map by ridge regression from 500 pairs alone."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.contract import FittedMap, Trainer, VectorMap, drawing_from
from benchmark.models.parts import Affine
from benchmark.training.closed_form import ridge


@dataclass(frozen=True)
class Linear500(VectorMap):
    """``linear`` on 500 pairs drawn at random: what minutes of embedding already give.

    A method that is not above it has no use for its training, its data, or both.
    """

    paper = "Control: ridge regression, Hoerl and Kennard, 1970, from few pairs"
    fidelity = "ours"
    reads_old_head = False
    control = True
    baseline = "a linear map from 500 pairs"
    variants = {"query": {"direction": "query"}}
    ranges = {"pairs": "[2, inf)", "share": "[0, inf)"}

    pairs: int = 500  # ours
    share: float | None = None  # ours: as in linear, by default of the smallest leave-one-out error

    def fit_vectors(self, source: Tensor, target: Tensor, trainer: Trainer) -> FittedMap:
        """The normal equations of the drawn pairs, in float64."""
        with drawing_from(trainer.seed, "pairs"):
            rows = torch.randperm(len(source))[: self.pairs]
        weight, bias, _ = ridge(source[rows], target[rows], self.share)
        return Affine.of(weight, bias), {}
