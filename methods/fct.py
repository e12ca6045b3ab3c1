"""FCT: a learned map brings the stored old embeddings, with side-information, to the new space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.families import FeatureTransformation, Fitted, Pairs
from benchmark.models.module import Portable
from benchmark.training.loop import Trainer
from benchmark.training.maps import fit_map


class Transformation(Portable):
    """h(o, side): two branches of Linear-BN-ReLU twice to 256, joined by a mixer (appendix D.1).

    Args:
        dim_old: Dimension of the old embedding.
        dim_side: Dimension of the side-information; 0 is none, a vector of zeros.
        dim_new: Dimension of the new embedding.
        width: Width of the mixer.
        normalise: Normalise the output, as where embeddings are normalised (appendix D.7).
        branch: Width of a branch.
    """

    def __init__(
        self, dim_old: int, dim_side: int, dim_new: int, width: int, normalise: bool,
        branch: int = 256,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalise, self.dim_side = normalise, dim_side
        self.old = _layers(dim_old, branch, branch)
        self.side = _layers(max(1, dim_side), branch, branch)
        self.mixer = nn.Sequential(*_layers(2 * branch, width, width), nn.Linear(width, dim_new))

    def forward(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Stored gallery -> gallery in the new space; the side-information stays as it is."""
        if (side is None) != (self.dim_side == 0):
            raise ValueError(f"side-information: fitted with {self.dim_side} dimensions of it")
        given = vectors.new_zeros(len(vectors), 1) if side is None else side
        out = self.mixer(torch.cat([self.old(vectors), self.side(given)], dim=1)).float()
        return (F.normalize(out) if self.normalise else out), side


def _layers(inputs: int, *widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers)


@dataclass(frozen=True)
class FCT(FeatureTransformation):
    """min over h of ||h(o, side) - f||^2 on the new data (section 3.3)."""

    paper: ClassVar[str] = "Ramanujan et al., Forward Compatible Training, CVPR 2022"
    variants: ClassVar = {"simclr": {"side": "simclr"}}

    side: Literal["none", "simclr"] = "none"  # section 3.4
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
