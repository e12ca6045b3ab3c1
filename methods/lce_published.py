"""LCE as published: its alignment is with what the map makes of the centres, at its own length."""

from dataclasses import dataclass

from torch import Tensor, nn

from benchmark.contract import Fitted, LearnedMap, Pairs, Trainer
from benchmark.models.transformation import ParallelBottlenecks
from benchmark.training.prototypes import CentreAlignment, ClassBorders


@dataclass(frozen=True)
class LCEPublished(LearnedMap):
    """L(W, h(o), y) + weight * mean of max(theta_y - cos(h(o), c_y), 0) + align * alignment.

    As ``lce`` but for the alignment, the mean squared error between h of the old centres as it
    comes and the rows of W at length 1: the published code normalises the weight alone.
    """

    paper = "Meng et al., Learning Compatible Embeddings, ICCV 2021"
    fidelity = "code"
    variant_of = "lce"
    uses = ("old and new features of the same images", "the new classifier", "labels")
    ranges = {
        "weight": "[0, inf)", "align": "[0, inf)", "blocks": "[1, inf)", "bottleneck": "[1, inf)",
    }  # fmt: skip

    weight: float = 1.0  # of the borders; published code
    align: float = 100.0  # weight of the alignment; published code
    blocks: int = 4  # side by side; published code
    bottleneck: int = 16  # width of a block; published code
    lr: float = 1e-2  # ours, as of lce

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h on labels alone, as ``lce``."""
        head, labels = pairs.classifier_and_labels("lce-published:")
        borders = ClassBorders(pairs.new, labels, len(head.weight))
        alignment = CentreAlignment(pairs.old, labels, head.weight, unit_output=False)
        sizes = pairs.old.shape[1], pairs.new.shape[1], self.blocks, self.bottleneck

        def loss(h: nn.Module, old: Tensor, rows: Tensor) -> Tensor:
            aligned = alignment(h)  # first: the statistics of a norm end with the batch
            converted = h(old, None)[0]
            border = self.weight * borders(converted, rows)
            return head(converted, rows) + border + self.align * aligned

        h, curves = self.train(
            lambda: ParallelBottlenecks(*sizes, pairs.normalised, pairs.old_normalised), loss,
            lambda p: (p.old, p.labels), pairs, trainer, head, borders, alignment,
        )  # fmt: skip
        return Fitted(h, curves=curves)
