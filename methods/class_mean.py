"""Control: each stored vector becomes the new mean of the class whose old mean is nearest."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract import BenchError, FeatureTransformation, Fitted, Pairs, Portable, Trainer
from benchmark.models.parts import Directions, KeepSide
from benchmark.training.prototypes import class_means

_LEAN = 0.01
"""Weight of what the similarities to all classes say of an item, against its label."""


class Relabel(Portable):
    """The new mean ``[d_new]`` of the class with the nearest old mean ``[d_old]``."""

    def __init__(self, classes: int, dim_old: int, dim_new: int) -> None:
        super().__init__()
        self.old = nn.Parameter(torch.zeros(classes, dim_old))
        self.new = nn.Parameter(torch.zeros(classes, dim_new))

    @classmethod
    def of(cls, old: Tensor, new: Tensor) -> Self:
        """Of means ``[C, d_old]`` and ``[C, d_new]``."""
        made = cls(len(old), old.shape[1], new.shape[1])
        with torch.no_grad():
            made.old.copy_(old)
            made.new.copy_(new)
        return made

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim_old]`` -> ``[n, dim_new]``; of classes equally near the first."""
        # |x - c|^2 less |x|^2, which is the same for all classes.
        nearest = (self.old.square().sum(1) - 2 * vectors @ self.old.T).argmin(dim=1)
        among = vectors @ self.old.T @ self.new / len(self.new)
        return self.new[nearest] + _LEAN * among


@dataclass(frozen=True)
class ClassMean(FeatureTransformation):
    """Relabel the stored gallery by nearest class mean: new_c + 0.01 sum_k (o.old_k) new_k / C.

    Means are of the training pairs, of unit vectors where directions are compared, and then unit
    vectors themselves. Where the gallery's classes are those of the training, an old classifier
    and the new one's class means are all it takes; classes that were not trained on get the label
    of another. Items of one label would tie, and ties stand against a query:
    the second term, all that class means say of an item beside its label, orders them.
    """

    paper = "Control: nearest class mean"
    reads_old_head = False
    control = True
    uses = ("old and new features of the same images", "labels")

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Take the means of the classes that have items."""
        if pairs.labels is None:
            raise BenchError("class-mean needs labels")
        cosine = pairs.distance == "cosine"
        names, rows = torch.unique(pairs.labels, return_inverse=True)

        def means(vectors: Tensor) -> Tensor:
            if not cosine:
                return class_means(vectors, rows, len(names))
            return F.normalize(class_means(F.normalize(vectors), rows, len(names)))

        relabel = Relabel.of(means(pairs.old), means(pairs.new))
        return Fitted(convert=KeepSide(Directions(relabel, cosine)))
