"""LCE: a map trained by the new classifier and the cones of the new classes."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from benchmark.contract import Fitted, LearnedMap, Pairs, Portable, Trainer
from benchmark.models.transformation import Bottlenecks, Transformation
from benchmark.training.prototypes import ClassCones


@dataclass(frozen=True)
class LCE(LearnedMap):
    """L(W, h(o), y) + weight * mean of max(angle(h(o), c_y) - theta_y, 0).

    L is the new classifier's own loss and W is frozen; c_y is the centre of the new embeddings
    of a class, theta_y the largest angle to it but for outliers. Only the forward map of the
    method, as FCT appendix J compares it: the new model stays as it is.
    """

    paper = "Meng et al., Learning Compatible Embeddings, ICCV 2021"
    variants = {"mlp": {"map": "mlp"}}
    uses = ("old and new features of the same images", "the new classifier", "labels")
    ranges = {
        "weight": "[0, inf)", "blocks": "[1, inf)", "bottleneck": "[1, inf)", "width": "[1, inf)",
    }  # fmt: skip

    map: Literal["rbt", "mlp"] = "rbt"  # published code; mlp: FCT appendix D.1
    weight: float = 1.0  # of the cones; published code
    blocks: int = 4  # of rbt; published code
    bottleneck: int = 16  # of rbt; published code
    width: int = 2048  # of mlp, FCT appendix D.1

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h on labels alone: no new embedding enters but in its class's cone."""
        head, labels = pairs.classifier_and_labels("lce:")
        cones = ClassCones(pairs.new, labels, len(head.weight))

        def loss(h: nn.Module, old: Tensor, rows: Tensor) -> Tensor:
            converted = h(old, None)[0]
            return head(converted, rows) + self.weight * cones(converted, rows)

        h, curves = self.train(
            lambda: self.network(pairs), loss, (pairs.old, labels), trainer, head, cones
        )
        return Fitted(h, curves=curves)

    def network(self, pairs: Pairs) -> Portable:
        """The residual bottlenecks, or the network of FCT."""
        dims, normalised = (pairs.old.shape[1], pairs.new.shape[1]), pairs.normalised
        old = pairs.old_normalised
        if self.map == "rbt":
            return Bottlenecks(*dims, self.blocks, self.bottleneck, normalised, old)
        return Transformation(dims[0], 0, dims[1], self.width, normalised, normalise_old=old)
