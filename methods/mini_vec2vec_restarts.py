"""Mini-vec2vec, the best of several attempts by its own objective, no pair known."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.contract import Conversion, FittedMap, Step, Trainer, VectorMap, drawing_from

_MOST = 2000
"""Mapped items that an attempt is judged by."""


@dataclass(frozen=True)
class MiniVec2VecRestarts(VectorMap):
    """The W of ``attempts`` under which mapped items lie nearest to items of the other space.

    ``mini-vec2vec`` ends in a local optimum now and then: clusters are matched wrongly, and no
    refinement leaves it. Its own objective tells, without any pair: the mean cosine of a mapped
    item to the mean of its k nearest items there, about the means. That several whole attempts are
    made is ours; the published notebook draws clusters and assignments several times within one.
    """

    paper = (
        "Dar, mini-vec2vec: Scaling Universal Geometry Alignment with Linear Transformations, 2025"
    )
    fidelity = "code"
    variant_of = "mini-vec2vec"
    reads_old_head = False
    builds_on = ("mini-vec2vec",)
    variants = {"query": {"direction": "query"}}
    ranges = {
        "attempts": "[1, inf)", "runs": "[1, inf)", "restarts": "[1, inf)",
        "refinements": "[0, inf)", "k": "[1, inf)",
    }  # fmt: skip
    uses = ("old and new features, of different images",)

    disjoint: bool = True  # ours: no item is seen by both models
    attempts: int = 3  # ours: one of eight failed
    runs: int = 30  # of clustering and matching, published code
    restarts: int = 30  # of an assignment, published code
    k: int = 50  # items of a pseudo-pair, published code
    refinements: int = 100  # published code

    def refuses(self, step: Step) -> str | None:
        """As mini-vec2vec."""
        return self.other("mini-vec2vec").refuses(step)

    def fit(self, old: Any, new: Any, *args: Any, **options: Any) -> Conversion:
        """As any map, but rows need not belong together; of unequal numbers the longer is cut."""
        if hasattr(old, "__len__") and hasattr(new, "__len__"):
            n = min(len(old), len(new))
            old, new = old[:n], new[:n]
        return super().fit(old, new, *args, **options)

    def fit_vectors(self, source: Tensor, target: Tensor, trainer: Trainer) -> FittedMap:
        """Every attempt has clusters and draws of its own, and the same items."""
        with drawing_from(trainer.seed, "mini-vec2vec-restarts"):
            order, more = torch.randperm(len(source)), torch.randint(2**31, (self.attempts,))
        if self.disjoint:
            half = len(order) // 2
            source, target = source[order[:half]], target[order[half:]]
        one = self.other(
            "mini-vec2vec", disjoint=False, runs=self.runs, restarts=self.restarts, k=self.k,
            refinements=self.refinements,
        )  # fmt: skip
        found = [
            one.fit_vectors(source, target, replace(trainer, seed=int(seed)))
            for seed in (trainer.seed, *more[1:])
        ]
        return max(found, key=lambda each: self.nearness(each[0], source, target))

    @torch.no_grad()
    def nearness(self, fitted: Any, source: Tensor, target: Tensor) -> float:
        """Mean cosine of some mapped items to the mean of the k nearest, about the means."""
        mean = target.double().mean(0)
        mapped = F.normalize(fitted(source[:_MOST]).double() - mean)
        there = F.normalize(target.double() - mean)
        nearest = (mapped @ there.T).topk(min(self.k, len(there))).indices
        return float((mapped * F.normalize(there[nearest].mean(1))).sum(1).mean())
