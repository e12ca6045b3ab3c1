"""Linear: an affine map by ridge regression, in closed form."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from benchmark.contract import FittedMap, Trainer, VectorMap, check_ranges
from benchmark.models.parts import Affine
from benchmark.training.closed_form import ridge


@dataclass(frozen=True)
class Linear(VectorMap):
    """min over A, b of mean ||A x + b - y||^2 + strength ||A||^2 (eq. 2.1 of the paper)."""

    paper = (
        "Hoerl and Kennard, Ridge Regression: Biased Estimation for Nonorthogonal Problems, 1970"
    )
    variants: ClassVar = {"query": {"direction": "query"}}

    share: float | None = None
    """Strength as a share of x's mean variance; ours: by default the one with the smallest
    leave-one-out error on the training pairs."""

    def __post_init__(self) -> None:
        if self.share is not None:
            check_ranges(self, share="[0, inf)")

    def fit_vectors(self, source: Tensor, target: Tensor, trainer: Trainer) -> FittedMap:
        """The normal equations, in float64."""
        weight, bias, _ = ridge(source, target, self.share)
        return Affine.of(weight, bias), {}
