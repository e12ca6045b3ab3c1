"""Control: each stored vector becomes the new mean of the class whose old mean is nearest."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.contract import BenchError, FeatureTransformation, Fitted, Pairs, Trainer
from benchmark.models.closed_form import Relabel
from benchmark.models.parts import Directions, KeepSide
from benchmark.training.prototypes import class_means


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
    fidelity = "ours"
    reads_old_head = False
    control = True
    baseline = "relabelling the gallery by class means"
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
