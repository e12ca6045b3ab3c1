"""Procrustes: the rotation nearest to bringing one set of embeddings to the other."""

from dataclasses import dataclass

from torch import Tensor

from benchmark.contract import FittedMap, Trainer, VectorMap
from benchmark.models.parts import Affine
from benchmark.training.closed_form import rotation


@dataclass(frozen=True)
class Procrustes(VectorMap):
    """min over A, b with A^T A = I of mean ||A x + b - y||^2: about the means, in closed form.

    Between unequal dimensions A is semi-orthogonal, see :func:`rotation`.
    """

    paper = "Schönemann, A Generalized Solution of the Orthogonal Procrustes Problem, 1966"
    fidelity = "ours"
    reads_old_head = False
    variants = {"query": {"direction": "query"}}

    def fit_vectors(self, source: Tensor, target: Tensor, trainer: Trainer) -> FittedMap:
        """The rotation about the means."""
        return Affine.of(*rotation(source, target)), {}
