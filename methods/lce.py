"""LCE: a map trained by the new classifier, the borders and the centres of its classes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from benchmark.contract import Fitted, LearnedMap, Pairs, Portable, Trainer
from benchmark.models.transformation import Bottlenecks, ParallelBottlenecks, Transformation
from benchmark.training.prototypes import CentreAlignment, ClassBorders, ClassCones


@dataclass(frozen=True)
class LCE(LearnedMap):
    """L(W, h(o), y) + weight * mean of max(theta_y - cos(h(o), c_y), 0) + align * alignment.

    L is the new classifier's own loss and W is frozen; c_y is the centre of the new embeddings
    of a class, theta_y the smallest cosine of one of them to it. The alignment is the mean squared
    error between h of the old centres and W, both of unit length; the published code, and
    ``lce-published``, normalise W alone. Only the forward map of the method, as FCT appendix J
    compares it: the new model stays as it is. Its published code
    (IrvingMeng/LCE at bb087e5) has one direction of each term that we take the other way round,
    and chains four blocks of four paths in a model that cannot be built as it stands; here is one.

    The variant ``advbct`` has the angle, with an outlier rule, by which AdvBCT's code re-implements
    LCE, on a chain of bottlenecks of our own and without alignment.
    """

    paper = "Meng et al., Learning Compatible Embeddings, ICCV 2021"
    fidelity = "code"
    variants = {
        "mlp": {"map": "mlp", "lr": 5e-4},
        "advbct": {"map": "chain", "border": "angle", "align": 0.0},
    }  # fmt: skip
    uses = ("old and new features of the same images", "the new classifier", "labels")
    ranges = {
        "weight": "[0, inf)", "align": "[0, inf)", "blocks": "[1, inf)", "bottleneck": "[1, inf)",
        "width": "[1, inf)",
    }  # fmt: skip

    map: Literal["parallel", "chain", "mlp"] = "parallel"  # published code; mlp: FCT appendix D.1
    border: Literal["cosine", "angle"] = "cosine"  # published code; angle: code of AdvBCT
    weight: float = 1.0  # of the borders; published code
    align: float = 100.0  # weight of the alignment; published code
    blocks: int = 4  # side by side or in a chain; published code
    bottleneck: int = 16  # width of a block; published code
    width: int = 2048  # of mlp, FCT appendix D.1
    lr: float = 1e-2  # ours, by products and texts of training; of mlp FCT appendix D.5

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h on labels alone: no new embedding enters but in its class's border."""
        head, labels = pairs.classifier_and_labels("lce:")
        kind = ClassBorders if self.border == "cosine" else ClassCones
        borders = kind(pairs.new, labels, len(head.weight))
        alignment = CentreAlignment(pairs.old, labels, head.weight) if self.align else None

        def loss(h: nn.Module, old: Tensor, rows: Tensor) -> Tensor:
            # Centres first, as in the published code: the statistics of a norm end with the batch.
            aligned = self.align * alignment(h) if alignment else 0.0
            converted = h(old, None)[0]
            return head(converted, rows) + self.weight * borders(converted, rows) + aligned

        h, curves = self.train(
            self.network(pairs), loss, lambda p: (p.old, p.labels), pairs, trainer,
            head, borders, alignment,
        )  # fmt: skip
        return Fitted(h, curves=curves)

    def network(self, pairs: Pairs) -> Callable[[], Portable]:
        """Builds the residual bottlenecks, or the network of FCT."""
        dims, normalised = (pairs.old.shape[1], pairs.new.shape[1]), pairs.normalised
        old = pairs.old_normalised
        if self.map == "mlp":
            size = dims[0], 0, dims[1], self.width
            return lambda: Transformation(*size, normalised, normalise_old=old)
        kind = ParallelBottlenecks if self.map == "parallel" else Bottlenecks
        return lambda: kind(*dims, self.blocks, self.bottleneck, normalised, old)
