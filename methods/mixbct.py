"""MixBCT: one classification loss over a mixture of new and credible old features."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.contract import Batch, CompatibleTraining, Head, Step, UpdateJob
from benchmark.training.credibility import CredibleMask


@dataclass(frozen=True)
class MixBCT(CompatibleTraining[CredibleMask]):
    """Classify a mixture of floor(ratio * B) credible old and the other new features (eq. 9-12).

    On several devices B is each one's share of the batch.
    """

    paper = "Liang et al., MixBCT: Towards Self-Adapting Backward-Compatible Training, 2023"
    fidelity = "paper"
    reads_old_head = False
    variants = {"plain": {"drop": 0.0}, "text": {"directions": False}}
    ranges = {"ratio": "[0, 1]", "drop": "[0, 1)"}

    ratio: float = 0.3  # alpha, section 4.3
    drop: float = 0.1  # farthest share of each class that may not replace, section 3.4
    directions: bool = True  # of features alone count; published code, not the text

    def refuses(self, step: Step) -> str | None:
        """A batch must have as many credible features as are to be replaced."""
        reason = super().refuses(step)
        if reason or self.ratio + self.drop <= 1.0:
            return reason
        return f"ratio {self.ratio:g} of a batch is more than drop {self.drop:g} leaves credible"

    def prepare(self, job: UpdateJob) -> CredibleMask:
        """The old features that may replace new ones."""
        return CredibleMask(job.old.features, job.data.labels, self.drop, self.directions)

    def loss(self, batch: Batch, head: Head, state: CredibleMask) -> Tensor:
        """Classification of the mixture."""
        rows = chosen_rows(state.keep[batch.index], self.ratio, batch.rng)
        mixed = batch.new.clone()
        mixed[rows] = batch.old[rows].detach()
        return head(mixed, batch.labels)


def chosen_rows(credible: Tensor, ratio: float, rng: torch.Generator) -> Tensor:
    """Draw floor(ratio * B) rows where the mask ``[B]`` is true, or all where these are fewer."""
    rows = credible.nonzero().squeeze(1)
    # 0.57 * 100 is 56.999...: the floor of what is meant, not of what is represented.
    count = min(int(ratio * len(credible) + 1e-9), len(rows))
    order = torch.randperm(len(rows), generator=rng)[:count]
    return rows[order.to(rows.device)]
