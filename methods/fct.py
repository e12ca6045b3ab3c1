"""FCT: a learned map brings the stored old embeddings, with side-information, to the new space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.errors import BenchError
from benchmark.families import FeatureTransformation, Fitted, Pairs
from benchmark.models.heads import Head
from benchmark.models.parts import Frozen
from benchmark.models.transformation import Transformation, WithSide
from benchmark.training.loop import Trainer
from benchmark.training.maps import MapLoss, fit_map


@dataclass(frozen=True)
class FCT(FeatureTransformation):
    """min over h of ||h(o, side) - f||^2 on the new data (section 3.3).

    Where a later update follows, g(o, side) is fitted to the new side-information likewise: a
    second network of the same architecture, squared error (section 4.4).

    Normalised embeddings make h normalise its output (appendix D.7). In a chain the next h then
    normalises its input, which the paper leaves open: what was converted and what the replaced
    model itself has stored must look alike to it.
    """

    paper: ClassVar[str] = "Ramanujan et al., Forward Compatible Training, CVPR 2022"
    variants: ClassVar = {
        "autoencoder": {"side": "autoencoder"},
        "alternative": {"side": "alternative"},
        "mixup": {"side": "mixup"},
        "simclr": {"side": "simclr"},
        "simclr-128": {"side": "simclr-128"},
        "simclr-next": {"side": "simclr-next"},
        "simclr-binary": {"side": "simclr-binary"},
        "simclr-other": {"side": "simclr-other"},
        "simclr-alone": {"side": "simclr", "inputs": "side"},
        "kl": {"loss": "kl"},
        "reversed-kl": {"loss": "reversed-kl"},
        "layer-norm": {"norm": "layer"},
        "width-512": {"width": 512},
        "width-1024": {"width": 1024},
        "width-4096": {"width": 4096},
    }

    side: str = "none"  # or a kind of benchmark.sides, sections 3.4 and 5.1
    inputs: Literal["both", "side"] = "both"  # side: without the old embedding, section 5.2
    loss: Literal["mse", "kl", "reversed-kl"] = "mse"  # appendix E.1, Table 12
    width: int = 2048  # of the mixer, appendix D.1; 512, 1024, 4096 are the others of Table 11
    norm: Literal["batch", "layer"] = "batch"  # appendix D.5
    lr: float = 5e-4  # Adam, appendix D.5
    weight_decay: float = 2.0**-15  # appendix D.5
    warmup: float = 5 / 80  # share of the steps, appendix D.5
    freeze_norm: float = 0.5  # share of the steps after which BN statistics stay, appendix D.5

    def __post_init__(self) -> None:
        if self.inputs == "side" and self.side == "none":
            raise ValueError("inputs: 'side' needs side-information, got side: none")

    @property
    def needs(self) -> tuple[str, ...]:
        """The new model and, in the variants, side-information."""
        return ("independent",) if self.side == "none" else ("independent", f"side:{self.side}")

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h and, in a chain, g with Adam, cosine schedule and warm-up (appendix D.5)."""
        target = F.normalize(pairs.new) if pairs.normalised else pairs.new
        loss, head = (squared, None) if self.loss == "mse" else self._divergence(pairs)
        h, curves = self._fit(pairs, target, pairs.normalised, loss, trainer, "map", head)
        if pairs.new_side is None:
            return Fitted(h, curves=curves)
        g, more = self._fit(pairs, pairs.new_side, False, squared, trainer, "side")
        return Fitted(WithSide(h, g), curves={**curves, **more})

    def _fit(
        self, pairs: Pairs, target: Tensor, normalise: bool, loss: MapLoss, trainer: Trainer,
        name: str, state: nn.Module | None = None,
    ) -> Any:  # fmt: skip
        dim_side = 0 if pairs.side is None else pairs.side.shape[1]
        make = lambda: Transformation(  # noqa: E731
            pairs.old.shape[1], dim_side, target.shape[1], self.width, normalise,
            norm=self.norm, inputs=self.inputs, normalise_old=pairs.old_normalised,
        )  # fmt: skip
        return fit_map(
            make, loss, (pairs.old, pairs.side, target), trainer, lr=self.lr,
            weight_decay=self.weight_decay, warmup=self.warmup, freeze_norm=self.freeze_norm,
            state=state, name=name,
        )  # fmt: skip

    def _divergence(self, pairs: Pairs) -> tuple[MapLoss, nn.Module]:
        """The loss, and the new classifier that it holds, frozen."""
        head = pairs.head
        if head is None:
            raise BenchError(f"fct: loss {self.loss} needs the new classifier, got none")

        def loss(h: nn.Module, old: Tensor, side: Tensor | None, new: Tensor) -> Tensor:
            made = h(old, side)[0]
            return divergence(head, new, made) if self.loss == "kl" else divergence(head, made, new)

        return loss, Frozen(head)


def squared(h: nn.Module, old: Tensor, side: Tensor | None, new: Tensor) -> Tensor:
    """Squared distance to what is wanted, summed over dimensions, averaged over the batch."""
    made: Tensor = h(old, side)[0]
    return (made - new).square().sum(dim=1).mean()


def divergence(head: Head, p: Tensor, q: Tensor) -> Tensor:
    """KL(p || q) of what a classifier makes of two embeddings, averaged over the batch (E.1)."""
    wanted, made = (head.logits(x).log_softmax(dim=1) for x in (p, q))
    return F.kl_div(made, wanted, reduction="batchmean", log_target=True)
