"""Linear: an affine map by ridge regression, in closed form."""

from dataclasses import dataclass

from torch import Tensor

from benchmark.contract import FittedMap, Trainer, VectorMap
from benchmark.models.parts import Affine
from benchmark.training.closed_form import ridge


@dataclass(frozen=True)
class Linear(VectorMap):
    """min over A, b of mean ||A x + b - y||^2 + strength ||A||^2 (eq. 2.1 of the paper)."""

    paper = (
        "Hoerl and Kennard, Ridge Regression: Biased Estimation for Nonorthogonal Problems, 1970"
    )
    fidelity = "ours"
    reads_old_head = False
    variants = {"query": {"direction": "query"}}
    ranges = {"share": "[0, inf)"}

    share: float | None = None
    """Strength as a share of x's mean variance; ours: by default the one with the smallest
    leave-one-out error on the training pairs."""

    def fit_vectors(self, source: Tensor, target: Tensor, trainer: Trainer) -> FittedMap:
        """The normal equations, in float64."""
        weight, bias, _ = ridge(source, target, self.share)
        return Affine.of(weight, bias), {}
