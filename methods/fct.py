"""FCT: a learned map brings the stored old embeddings, with side-information, to the new space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.families import FeatureTransformation, Fitted, Pairs
from benchmark.models.transformation import Transformation
from benchmark.training.loop import Trainer
from benchmark.training.maps import fit_map


@dataclass(frozen=True)
class FCT(FeatureTransformation):
    """min over h of ||h(o, side) - f||^2 on the new data (section 3.3)."""

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
    }

    side: str = "none"  # a kind of benchmark.sides, section 5.1
    width: int = 2048  # of the mixer, appendix D.1
    lr: float = 5e-4  # Adam, appendix D.5
    weight_decay: float = 2.0**-15  # appendix D.5
    warmup: float = 5 / 80  # share of the steps, appendix D.5
    freeze_norm: float = 0.5  # share of the steps after which BN statistics stay, appendix D.5

    @property
    def needs(self) -> tuple[str, ...]:
        """The new model and, in the variant, side-information."""
        return ("independent",) if self.side == "none" else ("independent", f"side:{self.side}")

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h with Adam, cosine schedule and warm-up (appendix D.5)."""
        normalise = pairs.normalised
        dim_side = 0 if pairs.side is None else pairs.side.shape[1]
        make = lambda: Transformation(  # noqa: E731
            pairs.old.shape[1], dim_side, pairs.new.shape[1], self.width, normalise
        )
        target = F.normalize(pairs.new) if normalise else pairs.new
        convert, curves = fit_map(
            make, self.loss, (pairs.old, pairs.side, target), trainer,
            lr=self.lr, weight_decay=self.weight_decay, warmup=self.warmup,
            freeze_norm=self.freeze_norm,
        )  # fmt: skip
        return Fitted(convert, curves=curves)

    @staticmethod
    def loss(h: nn.Module, old: Tensor, side: Tensor | None, new: Tensor) -> Tensor:
        """Squared distance to the new embedding, averaged over the batch."""
        return (h(old, side)[0] - new).square().sum(dim=1).mean()
