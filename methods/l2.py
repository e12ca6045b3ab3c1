"""L2: regression of each new feature to the stored old feature of the same image."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from benchmark.contract import Batch, CompatibleTraining, Head, UpdateJob
from benchmark.training.credibility import CredibleMask


@dataclass(frozen=True)
class L2(CompatibleTraining[CredibleMask]):
    """L_new + weight * mean ||n(f) - n(o)||, the norm not squared (MixBCT eq. 8).

    ``denoised`` leaves out the noisy old features, as MixBCT does (MixBCT appendix C.1). On
    several devices the mean is over the credible of each one's share of the batch, and then over
    the devices.
    """

    paper = "Liang et al., MixBCT, 2023, section 3.3; first a baseline of BCT, section 3.4"
    fidelity = "paper"
    reads_old_head = False
    variants = {"denoised": {"drop": 0.1}}
    ranges = {"weight": "[0, inf)", "drop": "[0, 1)"}

    weight: float = 10.0  # lambda, MixBCT section 4.3
    drop: float = 0.0  # farthest share of each class that is left out, MixBCT section 3.4

    def prepare(self, job: UpdateJob) -> CredibleMask:
        """The old features that new ones are held to."""
        return CredibleMask(job.old.features, job.data.labels, self.drop)

    def loss(self, batch: Batch, head: Head, state: CredibleMask) -> Tensor:
        """Classification plus the mean distance of the directions."""
        gaps = (F.normalize(batch.new) - F.normalize(batch.old.detach())).norm(dim=1)
        keep = state.keep[batch.index]
        # A batch without a credible feature gives 0, not the mean of nothing.
        gap = (gaps * keep).sum() / keep.sum().clamp_min(1)
        return head(batch.new, batch.labels) + self.weight * gap
