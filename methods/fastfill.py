"""FastFill: a map that keeps to the new clusters and says which items to backfill first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.families import FeatureTransformation, Fitted, Pairs
from benchmark.models.parts import Frozen
from benchmark.models.transformation import Transformation, WithSide
from benchmark.models.uncertain import Uncertain, log_mean
from benchmark.training.loop import Trainer
from benchmark.training.maps import fit_map
from benchmark.training.new_head import new_head


@dataclass(frozen=True)
class FastFill(FeatureTransformation):
    """mean of (L_l2 + L_disc) / sigma^2 + log(sigma^2) / lambda (eq. 5), both over items.

    L_l2 is the squared distance to the new embedding, L_disc the loss of the new classifier, as
    it was trained, on the transformed old one. sigma^2, the item's own, orders the backfilling:
    largest first.

    The paper prints of lambda only that it is a function of the dimension. At 1 / d the squared
    distance and the logarithm are twice the negative log-likelihood of a Gaussian with covariance
    sigma^2 I in d dimensions. Another lambda shifts log sigma^2 by log lambda and multiplies the
    loss, which Adam does not notice: what counts is where log(sigma^2 / lambda) starts. It
    starts at log d, sigma^2 at 1; on training classes of glyphs (``data.tuning``, width 512) starts
    at 0, 2 and log d gave an mAP area in this order of .585, .585 and .591.

    With ``diagonal``, dimension j has a variance s_j of its own: the squared distance is summed
    over (error_j)^2 / s_j, the log is the mean of log s_j, and L_disc, which belongs to no
    dimension, is divided by the mean of s_j. Equal variances give eq. 5 again.
    """

    paper: ClassVar[str] = "Jaeckle et al., FastFill: Efficient Compatible Model Update, ICLR 2023"
    variants: ClassVar = {
        "simclr": {"side": "simclr"},
        "l2": {"losses": "l2"},
        "disc": {"losses": "disc"},
        "no-uncertainty": {"uncertainty": False},
        "l2-no-uncertainty": {"losses": "l2", "uncertainty": False},
        "disc-no-uncertainty": {"losses": "disc", "uncertainty": False},
        "diagonal": {"diagonal": True},
    }

    losses: Literal["both", "l2", "disc"] = "both"  # eq. 3; each alone in section 6, Table 5
    uncertainty: bool = True  # section 6, Table 5
    diagonal: bool = False  # section 4.2, footnote 2
    lam: float | None = None  # lambda, "a function of d" that is not printed; none is 1 / d
    side: Literal["none", "simclr"] = "none"  # appendix B.2
    width: int = 2048  # of the mixer, as fct
    lr: float = 5e-4  # Adam, appendix A.2
    weight_decay: float = 2.0**-15  # as fct
    warmup: float = 5 / 80  # share of the steps, appendix A.2
    freeze_norm: float = 0.5  # share of the steps after which BN statistics stay, appendix A.2

    @property
    def needs(self) -> tuple[str, ...]:
        """The new model and, in the variant, side-information."""
        return ("independent",) if self.side == "none" else ("independent", f"side:{self.side}")

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h and psi together; in a chain with side-information also g, as FCT 4.4 does."""
        head, labels = (None, None) if self.losses == "l2" else new_head(pairs, "fastfill")

        def loss(
            module: Uncertain, old: Tensor, side: Tensor | None, new: Tensor, rows: Tensor
        ) -> Tensor:
            made, log_variance = module.estimates(old, side)
            disc = None if head is None else head.losses(made, rows)
            return self.loss(made - new, disc, log_variance).mean()

        target = F.normalize(pairs.new) if pairs.normalised else pairs.new
        make = lambda: Uncertain(  # noqa: E731
            self._map(pairs, target, pairs.normalised), target.shape[1], self.diagonal
        )
        state = None if head is None else Frozen(head)
        recipe = {k: getattr(self, k) for k in ("lr", "weight_decay", "warmup", "freeze_norm")}
        made, curves = fit_map(
            make, loss, (pairs.old, pairs.side, target, labels), trainer, state=state, **recipe
        )
        priority = made if self.uncertainty else None
        if pairs.new_side is None:
            return Fitted(made.map, priority=priority, curves=curves)
        wanted = pairs.new_side
        g, more = fit_map(
            lambda: self._map(pairs, wanted, False),
            lambda g, old, side, new: (g(old, side)[0] - new).square().sum(dim=1).mean(),
            (pairs.old, pairs.side, wanted), trainer, name="side", **recipe,
        )  # fmt: skip
        return Fitted(WithSide(made.map, g), priority=priority, curves={**curves, **more})

    def loss(self, error: Tensor, disc: Tensor | None, log_variance: Tensor) -> Tensor:
        """The loss of each item, ``[n]``.

        Args:
            error: h(o) - f, ``[n, d]``.
            disc: L_disc, ``[n]``; ``None`` without it.
            log_variance: log sigma^2, ``[n, 1]``; ``[n, d]`` where it is diagonal.
        """
        near = error.square() if self.losses != "disc" else torch.zeros_like(error)
        far = torch.zeros_like(near[:, 0]) if disc is None else disc
        if not self.uncertainty:
            return near.sum(dim=1) + far
        scaled = (near / log_variance.exp()).sum(dim=1) + far / log_mean(log_variance).exp()
        return scaled + log_variance.mean(dim=1) / self._lam(error.shape[1])

    def _lam(self, dim: int) -> float:
        return 1 / dim if self.lam is None else self.lam

    def _map(self, pairs: Pairs, target: Tensor, normalise: bool) -> Transformation:
        dim_side = 0 if pairs.side is None else pairs.side.shape[1]
        return Transformation(
            pairs.old.shape[1], dim_side, target.shape[1], self.width, normalise,
            normalise_old=pairs.old_normalised,
        )  # fmt: skip
