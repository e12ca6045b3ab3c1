"""Binary SimCLR side-information: one bit a dimension, learned as a latent variable.

Source: FCT appendix G, after Ramapuram et al., Stochastic Contrastive Learning (2021): a Bernoulli
variable a dimension, here drawn by the binary concrete distribution (Maddison et al. 2017) with a
straight-through gradient, and its divergence from a fair coin, both at our settings: FCT has none.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.config.recipes import ModelSpec
from benchmark.models.module import Portable
from benchmark.training import side_simclr
from benchmark.training.data import TrainingData
from benchmark.training.loop import Curve, Trainer

RELAXATION = 1.0  # temperature of the relaxed draw, through which the gradient passes
RATE = 1e-3  # weight of the divergence, in nats summed over the bits


class BinaryEncoder(Portable):
    """The more probable value of each bit, as a sign: cosines then count equal bits.

    ``logits`` maps images to the log odds of 1 against -1, ``[n, dim]``.
    """

    def __init__(self, logits: Portable) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, images: Tensor) -> Tensor:
        """Images -> side-information, ``[n, dim]`` of -1 and 1."""
        return signs(self.logits(images))


def signs(logits: Tensor) -> Tensor:
    """1 where the logit is 0 or more, else -1."""
    return torch.where(logits >= 0, 1.0, -1.0)


def draw(logits: Tensor, noise: Tensor, relaxation: float) -> Tensor:
    """Draw bits, -1 or 1, with the gradient of ``tanh((logit + logistic noise) / 2 relaxation)``.

    Logits ``[n, d]`` are log odds of 1 against -1, the noise is uniform in (0, 1).
    """
    moved = logits + torch.logit(noise)
    relaxed = torch.tanh(moved / (2.0 * relaxation))
    # In this order the difference is exactly 0, and a bit exactly a sign.
    return signs(moved) + (relaxed - relaxed.detach())


def divergence(logits: Tensor) -> Tensor:
    """KL divergence of the bits from fair coins, in nats: summed over bits, mean over items."""
    p = torch.sigmoid(logits)
    each = p * F.logsigmoid(logits) + (1.0 - p) * F.logsigmoid(-logits) + torch.log(p.new_tensor(2))
    return each.sum(dim=1).mean()


def loss(whole: Sequence[Tensor], local: Sequence[Tensor]) -> Tensor:
    """SimCLR's loss on drawn bits, plus the divergence; arguments are logits by view."""
    logits = [*whole, *local]
    # The loop seeds the global stream before each epoch; on the CPU, so every device sees the same.
    noise = [torch.rand(x.shape).clamp_(1e-6, 1.0 - 1e-6).to(x.device) for x in logits]
    bits = [draw(x, u, RELAXATION) for x, u in zip(logits, noise, strict=True)]
    n = len(whole)
    return side_simclr.multi_crop(bits[:n], bits[n:]) + RATE * divergence(torch.cat(logits))


def train(
    spec: ModelSpec, data: TrainingData, trainer: Trainer, *, dim: int, crops: int
) -> tuple[Portable, Curve]:
    """Train as :func:`benchmark.training.side_simclr.train`; ``dim`` is the number of bits."""
    logits, curve = side_simclr.train(spec, data, trainer, dim=dim, crops=crops, loss=loss)
    return BinaryEncoder(logits).eval(), curve
