"""FCT: a learned map of stored embeddings and side-information to the new space."""

from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from benchmark.contract import (
    Fitted,
    Head,
    Pairs,
    SideInformationMap,
    Trainer,
    kl_divergence,
    squared_distance,
)
from benchmark.models.transformation import Transformation


@dataclass(frozen=True)
class FCT(SideInformationMap):
    """min over h of ||h(o, side) - f||^2 on the new data (section 3.3).

    The norm is summed over dimensions, as it is printed. The published code averages it, which has
    the same optimum, but there Adam's weight decay counts d_new times as much.

    Where a later update follows, g(o, side) is fitted to the new side-information likewise: a
    second network of the same architecture, squared error (section 4.4). Normalised embeddings
    make h normalise its output (appendix D.7). In a chain the next h then normalises its input,
    which the paper leaves open: converted vectors and those that the replaced model itself has
    stored must look alike to it.

    ``side`` is of sections 3.4 and 5.1; the widths of the variants are those of Table 11.
    """

    paper = "Ramanujan et al., Forward Compatible Training, CVPR 2022"
    fidelity = "paper"
    reads_old_head = False
    variants = {
        "autoencoder": {"side": "autoencoder"},
        "alternative": {"side": "alternative"}, "mixup": {"side": "mixup"},
        "simclr": {"side": "simclr"}, "simclr-64": {"side": "simclr-64"},
        "simclr-next": {"side": "simclr-next"}, "simclr-binary": {"side": "simclr-binary"},
        "simclr-other": {"side": "simclr-other"},
        "simclr-alone": {"side": "simclr", "inputs": "side"},
        "kl": {"loss": "kl"}, "reversed-kl": {"loss": "reversed-kl"},
        "layer-norm": {"norm": "layer"},
        "width-512": {"width": 512}, "width-1024": {"width": 1024}, "width-4096": {"width": 4096},
    }  # fmt: skip

    inputs: Literal["both", "side"] = "both"  # side: without the old embedding, section 5.2
    loss: Literal["mse", "kl", "reversed-kl"] = "mse"  # appendix E.1, Table 12
    norm: Literal["batch", "layer"] = "batch"  # appendix D.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs == "side" and self.side == "none":
            raise ValueError("inputs: 'side' needs side-information, got side: none")

    @property
    def uses(self) -> tuple[str, ...]:
        """A divergence is of outputs of the new classifier."""
        return super().uses if self.loss == "mse" else (*super().uses, "the new classifier")

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h and, in a chain, g with Adam, cosine schedule and warm-up (appendix D.5)."""
        head = None if self.loss == "mse" else pairs.classifier(f"fct: loss {self.loss}")

        def loss(h: nn.Module, old: Tensor, side: Tensor | None, new: Tensor) -> Tensor:
            return self.distance(h(old, side)[0], new, head)

        h, curves = self.train(
            lambda: self.network(pairs, pairs.new.shape[1], pairs.normalised), loss,
            lambda p: (p.old, p.side, p.target), pairs, trainer, head,
        )  # fmt: skip
        return self.with_side(h, curves, pairs, trainer)

    def distance(self, converted: Tensor, new: Tensor, head: Head | None) -> Tensor:
        """Squared, or the divergence of the new classifier's outputs for both (appendix E.1)."""
        if head is None:
            return squared_distance(converted, new)
        p, q = (new, converted) if self.loss == "kl" else (converted, new)
        return kl_divergence(head, p, q)

    def network(self, pairs: Pairs, dim: int, normalise: bool, **options: Any) -> Transformation:
        """As of any such map, in the chosen architecture."""
        return super().network(pairs, dim, normalise, norm=self.norm, inputs=self.inputs, **options)
