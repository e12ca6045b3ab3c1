"""RBT: residual bottlenecks in place of FCT's network."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from benchmark.contract import Fitted, LearnedMap, Pairs, Trainer, kl_divergence, squared_distance
from benchmark.models.transformation import Bottlenecks, ParallelBottlenecks


@dataclass(frozen=True)
class RBT(LearnedMap):
    """mean of ||h(o) - f||^2 + kl * KL(p(f) || p(h(o))), h of residual bottlenecks.

    p is the output of the new classifier, frozen and without its margin. FCT appendix J compares
    with the architecture alone, trained by FCT's loss; the variant ``kl`` has the loss of the
    method's own paper. The block is that of LCE's published code, which names this paper; the
    variant ``chain`` has simpler bottlenecks in a row, a design of our own.
    """

    paper = "Wang et al., Unified Representation Learning for Cross Model Compatibility, BMVC 2020"
    fidelity = "code"
    variants = {"kl": {"kl": 1.0}, "chain": {"map": "chain"}}
    ranges = {"kl": "[0, inf)", "blocks": "[1, inf)", "bottleneck": "[1, inf)"}

    kl: float = 0.0  # weight of the divergence; FCT appendix J has none
    map: Literal["parallel", "chain"] = "parallel"  # published code of LCE; chain: ours
    blocks: int = 4  # side by side or in a chain; published code of LCE
    bottleneck: int = 16  # width of a block; published code of LCE
    lr: float = 1e-2  # ours, by products and texts of training: at FCT's it hardly trains

    @property
    def uses(self) -> tuple[str, ...]:
        """The divergence is of outputs of the new classifier."""
        return (*super().uses, "the new classifier") if self.kl else super().uses

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Train h as FCT is trained."""
        head = pairs.classifier("rbt: kl") if self.kl else None

        def loss(h: nn.Module, old: Tensor, new: Tensor) -> Tensor:
            converted = h(old, None)[0]
            near = squared_distance(converted, new)
            return near if head is None else near + self.kl * kl_divergence(head, new, converted)

        kind = ParallelBottlenecks if self.map == "parallel" else Bottlenecks
        dims = pairs.old.shape[1], pairs.new.shape[1], self.blocks, self.bottleneck
        h, curves = self.train(
            lambda: kind(*dims, pairs.normalised, pairs.old_normalised), loss,
            lambda p: (p.old, p.target), pairs, trainer, head,
        )  # fmt: skip
        return Fitted(h, curves=curves)
