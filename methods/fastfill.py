"""FastFill: a map trained by the new classifier too, with uncertainty that orders backfilling."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from benchmark.contract import Fitted, Pairs, SideInformationMap, Trainer
from benchmark.models.transformation import Transformation, Uncertain


@dataclass(frozen=True)
class FastFill(SideInformationMap):
    """mean of (L_l2 + L_disc) / sigma^2 + log(sigma^2) / lambda (eq. 5), both over items.

    L_l2 is the squared distance to the new embedding, L_disc the loss of the new classifier, as
    it was trained, on the transformed old one. sigma^2, the item's own, orders the backfilling:
    largest first. Its log is a linear layer on the transformed embedding (appendix A.2), before
    normalisation, which the paper leaves open.

    The paper prints of lambda only that it is a function of the dimension. At 1 / d the squared
    distance and the logarithm are twice the negative log-likelihood of a Gaussian with covariance
    sigma^2 I in d dimensions. Another lambda shifts log sigma^2 by log lambda and multiplies the
    loss, which Adam does not notice: what counts is where log(sigma^2 / lambda) starts. It
    starts at log d, sigma^2 at 1: the best of a few starts on training classes of glyphs.

    With ``diagonal``, dimension j has a variance s_j of its own: the squared distance is summed
    over (error_j)^2 / s_j, the log is the mean of log s_j, and L_disc, which belongs to no
    dimension, is divided by their geometric mean. Equal variances give eq. 5 again.

    Side-information is of appendix B.2.
    """

    paper = "Jaeckle et al., FastFill: Efficient Compatible Model Update, ICLR 2023"
    fidelity = "paper"
    variants = {
        "simclr": {"side": "simclr"}, "l2": {"losses": "l2"}, "disc": {"losses": "disc"},
        "no-uncertainty": {"uncertainty": False},
        "l2-no-uncertainty": {"losses": "l2", "uncertainty": False},
        "disc-no-uncertainty": {"losses": "disc", "uncertainty": False},
        "diagonal": {"diagonal": True},
    }  # fmt: skip
    ranges = {"lam": "(0, inf)"}

    losses: Literal["both", "l2", "disc"] = "both"  # eq. 3; each alone in section 6, Table 5
    uncertainty: bool = True  # section 6, Table 5
    diagonal: bool = False  # section 4.2, footnote 2
    freeze_norm: float = 1.0  # ours, never: appendix A.2's half-way is no better
    lam: float | None = None  # lambda, a function of d that section 4.2 does not print; ours: 1 / d

    @property
    def uses(self) -> tuple[str, ...]:
        """L_disc is the new classifier's loss."""
        disc = () if self.losses == "l2" else ("the new classifier", "labels")
        return (*super().uses, *disc)

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h and psi together; in a chain with side-information also g, as FCT 4.4 does."""
        dim, head = pairs.new.shape[1], None
        if self.losses != "l2":
            head, _ = pairs.classifier_and_labels("fastfill:")

        def make() -> Transformation | Uncertain:
            h = self.network(pairs, dim, pairs.normalised)
            return Uncertain(h, dim, self.diagonal) if self.uncertainty else h

        def loss(h: Any, old: Tensor, side: Tensor | None, new: Tensor, rows: Tensor) -> Tensor:
            converted, logs = h.estimates(old, side)
            disc = None if head is None else head(converted, rows, reduction="none")
            return self.loss(converted - new, disc, logs).mean()

        module, curves = self.train(
            make, loss, lambda p: (p.old, p.side, p.target, p.labels), pairs, trainer, head
        )
        h, priority = (module.map, module) if isinstance(module, Uncertain) else (module, None)
        return self.with_side(h, curves, pairs, trainer, priority)

    def loss(self, error: Tensor, disc: Tensor | None, log_variance: Tensor | None) -> Tensor:
        """The loss of each item, ``[n]``, by its error h(o) - f, ``[n, d]``, and L_disc, ``[n]``.

        log sigma^2 is ``[n, 1]``, or ``[n, d]`` where it is diagonal, or ``None``.
        """
        near = error.square() if self.losses != "disc" else torch.zeros_like(error)
        far = torch.zeros_like(near[:, 0]) if disc is None else disc
        if log_variance is None:
            return near.sum(dim=1) + far
        # The geometric mean of variances: the arithmetic one would be about the largest, and one
        # dimension, given up, could excuse an item from a loss that is divided by it.
        log_mean = log_variance.mean(dim=1)
        scaled = (near / log_variance.exp()).sum(dim=1) + far / log_mean.exp()
        lam = 1 / error.shape[1] if self.lam is None else self.lam
        return scaled + log_mean / lam
