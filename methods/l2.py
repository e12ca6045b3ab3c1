"""L2 regression: keep each new feature near the stored old feature of the same image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.families import CompatibleTraining
from benchmark.models.heads import Head
from benchmark.training.embedding import Batch


@dataclass(frozen=True)
class L2(CompatibleTraining[nn.Module]):
    """L_new + weight * mean ||n(f) - n(o)||, the norm not squared (MixBCT eq. 8)."""

    paper: ClassVar[str] = (
        "Liang et al., MixBCT, 2023, section 3.3; first a baseline of BCT, section 3.4"
    )

    weight: float = 10.0  # lambda, MixBCT section 4.3

    def loss(self, batch: Batch, head: Head, state: nn.Module) -> Tensor:
        """Classification plus the mean distance of the directions."""
        gap = F.normalize(batch.new) - F.normalize(batch.old)
        return head(batch.new, batch.labels) + self.weight * gap.norm(dim=1).mean()
