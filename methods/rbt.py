"""RBT: residual bottlenecks in place of FCT's network."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.errors import BenchError
from benchmark.families import FeatureTransformation, Fitted, Pairs
from benchmark.models.bottleneck import Bottlenecks
from benchmark.models.parts import Frozen
from benchmark.training.loop import Trainer
from benchmark.training.maps import fit_map


@dataclass(frozen=True)
class RBT(FeatureTransformation):
    """mean of ||h(o) - f||^2 + kl * KL(p(f) || p(h(o))), h a chain of residual bottlenecks.

    p is what the new classifier, frozen and without its margin, makes of an embedding. FCT
    appendix J compares with the architecture alone, trained by FCT's loss; the variant ``kl``
    has the loss of the method's own paper.
    """

    paper: ClassVar[str] = (
        "Wang et al., Unified Representation Learning for Cross Model Compatibility, BMVC 2020"
    )
    variants: ClassVar = {"kl": {"kl": 1.0}}

    kl: float = 0.0  # weight of the divergence; FCT appendix J has none
    blocks: int = 4  # as the code of LCE, which builds on this map
    bottleneck: int = 16  # likewise
    lr: float = 5e-4  # this and what follows as fct
    weight_decay: float = 2.0**-15
    warmup: float = 5 / 80
    freeze_norm: float = 0.5

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h as FCT is trained."""
        if self.kl and pairs.head is None:
            raise BenchError("rbt: kl needs the new classifier (head)")
        head = copy.deepcopy(pairs.head) if self.kl else None

        def loss(h: nn.Module, old: Tensor, new: Tensor) -> Tensor:
            made = h(old, None)[0]
            squared: Tensor = (made - new).square().sum(dim=1).mean()
            if head is None:
                return squared
            asked, given = (head.logits(x).log_softmax(dim=1) for x in (new, made))
            return squared + self.kl * F.kl_div(
                given, asked, reduction="batchmean", log_target=True
            )

        on, past = pairs.normalised, pairs.old_normalised
        dims = pairs.old.shape[1], pairs.new.shape[1]
        h, curves = fit_map(
            lambda: Bottlenecks(*dims, self.blocks, self.bottleneck, on, past), loss,
            (pairs.old, F.normalize(pairs.new) if on else pairs.new), trainer,
            lr=self.lr, weight_decay=self.weight_decay, warmup=self.warmup,
            freeze_norm=self.freeze_norm, state=None if head is None else Frozen(head),
        )  # fmt: skip
        return Fitted(h, curves=curves)
