"""LCE: a map that is judged by the new classifier and by the borders of the new classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from benchmark.contract import (
    Fitted,
    LearnedMap,
    Pairs,
    Portable,
    Trainer,
    in_range,
    new_head_and_labels,
)
from benchmark.models.bottleneck import Bottlenecks
from benchmark.models.transformation import Transformation
from benchmark.training.class_cones import Borders


@dataclass(frozen=True)
class LCE(LearnedMap):
    """L(W, h(o), y) + weight * mean of max(angle(h(o), c_y) - theta_y, 0).

    L is the new classifier's own loss and W is frozen; c_y is the centre of the new embeddings
    of a class, theta_y the largest angle to it but for outliers. Only the forward map of the
    method, as FCT appendix J compares it: the new model stays as it is.
    """

    paper: ClassVar[str] = "Meng et al., Learning Compatible Embeddings, ICCV 2021"
    variants: ClassVar = {"mlp": {"map": "mlp"}}

    map: Literal["rbt", "mlp"] = "rbt"  # published code; mlp: FCT appendix D.1
    weight: float = 1.0  # of the border; published code
    blocks: int = 4  # of rbt; published code
    bottleneck: int = 16  # of rbt; published code
    width: int = 2048  # of mlp, FCT appendix D.1

    def __post_init__(self) -> None:
        super().__post_init__()
        in_range(self, weight="[0, inf)", blocks="[1, inf)", bottleneck="[1, inf)")
        in_range(self, width="[1, inf)")

    @property
    def uses(self) -> tuple[str, ...]:
        """The new classifier judges, and each class has its cone."""
        return (*super().uses, "the new classifier", "labels")

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h on labels alone: no new embedding enters but in its class's cone."""
        head, labels = new_head_and_labels(pairs, "lce:")
        borders = Borders(pairs.new, labels, len(head.weight))

        def loss(h: nn.Module, old: Tensor, rows: Tensor) -> Tensor:
            made = h(old, None)[0]
            judged: Tensor = head(made, rows) + self.weight * borders(made, rows)
            return judged

        h, curves = self.train(
            lambda: self.network(pairs), loss, (pairs.old, labels), trainer, head, borders
        )  # fmt: skip
        return Fitted(h, curves=curves)

    def network(self, pairs: Pairs) -> Portable:
        """The residual bottlenecks, or the network of FCT."""
        d_old, d_new = pairs.old.shape[1], pairs.new.shape[1]
        on, past = pairs.normalised, pairs.old_normalised
        if self.map == "mlp":
            return Transformation(d_old, 0, d_new, self.width, on, normalise_old=past)
        return Bottlenecks(d_old, d_new, self.blocks, self.bottleneck, on, past)
