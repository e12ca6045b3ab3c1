"""LwF: distillation of the old classifier's outputs on new images."""

from dataclasses import dataclass

from torch import Tensor

from benchmark.contract import Batch, CompatibleTraining, Head, OldClassifier, UpdateJob


@dataclass(frozen=True)
class LwF(CompatibleTraining[OldClassifier]):
    """L_new + weight * CE(K(o), K(f)) on newly added images, K frozen (BCT section 3.5).

    Newly added are the images whose class K does not know; where it knows every class, as with
    more data of the same classes, nothing tells old images from new ones and all of them count.
    Tables 1 and 8 of BCT give this baseline half of the data; here it has what all methods have.
    """

    paper = "Li and Hoiem, Learning without Forgetting, ECCV 2016, as compared in BCT section 3.5"
    fidelity = "paper"
    longer = True
    needs = ("old_head",)
    ranges = {"weight": "[0, inf)", "temperature": "(0, inf)"}

    weight: float = 1.0  # lambda, LwF eq. 1
    temperature: float = 1.0  # beside K's own scale: that alone, BCT appendix A

    def prepare(self, job: UpdateJob) -> OldClassifier:
        """The frozen old classifier as it is."""
        return OldClassifier.of(job, synthesize=False)

    def loss(self, batch: Batch, head: Head, state: OldClassifier) -> Tensor:
        """Classification plus distillation, a mean over the whole batch."""
        added = (state.row_of < 0) | (state.row_of >= 0).all()
        terms = state.distillation(batch, self.temperature) * added[batch.labels]
        return head(batch.new, batch.labels) + self.weight * terms.mean()
