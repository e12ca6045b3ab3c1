"""BT2: orthonormal changes of basis, with extra dimensions for what the old space cannot hold."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract import (
    Batch,
    CompatibleTraining,
    Head,
    OldClassifier,
    Portable,
    Step,
    Update,
    UpdateJob,
)
from benchmark.models.basis import BasisTransformation, Composed
from benchmark.models.parts import FirstDims, Frozen


class State(nn.Module):
    """The layers after the backbone, which train along, the independent model and K."""

    def __init__(self, job: UpdateJob, basis: BasisTransformation, whole: bool) -> None:
        super().__init__()
        self.whole = whole  # whether the classifier reads phi_new
        self.basis, self.teacher = basis, Frozen(job.require_independent().model)
        self.old_classifier = OldClassifier.of(job, synthesize=True)
        self.scale = logit_scale(self.old_classifier, job.old.features)


def logit_scale(old: OldClassifier, stored: Tensor) -> float:
    """Scale of the cosines in the logits of K; a softmax K multiplies by both vectors' lengths."""
    if old.scale is not None:
        return old.scale
    return float(old.weight.norm(dim=1).mean() * stored.norm(dim=1).mean())


@dataclass(frozen=True)
class BT2(CompatibleTraining[State]):
    """L_new(phi_3) + l1 (1 - phi_3.phi'_new) + l2 L_old(K, phi_5) + l3 (1 - phi_5.phi_old) (4.3).

    The backbone gives m + d_old numbers, from which Algorithm 1 makes phi_3, phi_5 (what old
    vectors are compared with) and phi_new. Cosines are between unit vectors. The paper prints no
    weights; these are those of the published configurations (an earlier state of that code has
    l2 = l3 = 10). There K's rows and its inputs are unit vectors and its logits cosines. A
    cross-entropy's gradient grows with the scale of its logits, so, a departure from the formula
    as printed, l2 is divided by the scale of K: a margin head's is 16 to 64, and undivided, on
    training classes, the term outweighs all others and new/new falls far. L_new of a softmax
    classifier reads phi_3 at the scale of cosines to as many classes: its weights would have to
    grow by as much first. phi'_new sees the images of the batch as they are augmented. On a
    transformer L_new reads phi_new (4.3). On convolutional networks that code has a ReLU before
    phi_2, which Algorithm 1 has not: ``bt2-code``.

    Each update is longer by ``extra`` than the old vectors or the independent model, whichever is
    longer (4.8 adds as many each time, and leaves open how): where the old vectors are the
    longer ones, phi_2 fills the difference too, so that ``extra`` dimensions stay free of them.
    """

    paper = "Zhou et al., BT2: Backward-compatible Training with Basis Transformation, ICCV 2023"
    fidelity = "paper"
    variants = {"transformer": {"classify": "phi_new"}}
    needs = ("independent",)
    uses = ("stored old features", "the old classifier where it is kept")
    changes = ("training", "dimension")
    ranges = {
        "extra": "[1, inf)", "factor": "(0, inf)", "match_new": "[0, inf)", "influence": "[0, inf)",
        "match_old": "[0, inf)",
    }  # fmt: skip

    extra: int = 32  # d, section 4.3; at most as many as either embedding has
    factor: float = 2.0  # C, section 4.3
    match_new: float = 1.0  # lambda_1, section 4.3; value of the published code
    influence: float = 10.0  # lambda_2 at scale 1, section 4.3; value of the published code
    match_old: float = 5.0  # lambda_3, section 4.3; value of the published code
    classify: Literal["backbone", "phi_3", "phi_new"] = "backbone"  # section 4.3: phi_new on ViT

    def refuses(self, step: Step) -> str | None:
        """Any sizes will do, but directions alone are kept."""
        cosine = step.distance == "cosine"
        return None if cosine else f"compares directions, got distance {step.distance}"

    def sizes(self, job: UpdateJob) -> tuple[int, int, int]:
        """m, the size of old vectors and that of phi_2."""
        m, n = job.spec.dim, job.old.features.shape[1]
        return m, n, min(self.extra, m, n) + max(0, n - m)

    def new_model(self, job: UpdateJob) -> tuple[Portable, Head]:
        """A backbone of m + d_old numbers and a classifier of phi_3 or phi_new."""
        m, n, d = self.sizes(job)
        return job.new_model(m + n, m + d if self.reads_phi_new(job) else m)

    def reads_phi_new(self, job: UpdateJob) -> bool:
        """Sight of phi_new for the classifier: by default on a transformer."""
        by_backbone = "phi_new" if job.spec.is_transformer else "phi_3"
        return (by_backbone if self.classify == "backbone" else self.classify) == "phi_new"

    def prepare(self, job: UpdateJob) -> State:
        """Projection and bases, drawn from the seed; teacher and K."""
        basis = BasisTransformation(*self.sizes(job), self.factor)
        return State(job, basis, self.reads_phi_new(job))

    def loss(self, batch: Batch, head: Head, state: State) -> Tensor:
        """The four terms of section 4.3."""
        phi_3, phi_5, phi_new = state.basis.parts(batch.new)
        teacher, stored = state.teacher(batch.images).float(), batch.old.detach()
        phi_5, old = F.normalize(phi_5), state.old_classifier
        # A softmax K reads lengths: its input has the length of the old vector.
        logits = old.logits(phi_5 * stored.norm(dim=1, keepdim=True))
        return (
            head(head.scale * (phi_new if state.whole else phi_3), batch.labels)
            + self.match_new * (1 - (phi_3 * F.normalize(teacher)).sum(dim=1)).mean()
            + self.influence / state.scale * F.cross_entropy(logits, old.row_of[batch.labels])
            + self.match_old * (1 - (phi_5 * F.normalize(stored)).sum(dim=1)).mean()
        )

    def finish(self, job: UpdateJob, encoder: Portable, head: Head, state: State) -> Update:
        """Backbone and bases as one model; old vectors are compared with phi_5."""
        with torch.no_grad():
            head.weight.mul_(head.scale)
        if not state.whole:
            head = head_of_phi_new(head, state.basis)
        view = FirstDims(job.old.features.shape[1])
        return Update(Composed(encoder, state.basis), head, query_view=view)


def head_of_phi_new(head: Head, basis: BasisTransformation) -> Head:
    """The classifier of phi_new that gives the logits of ``head`` on phi_3: the next update's K.

    phi_3 is a linear map of phi_new; cosines are smaller by ``C / sqrt(1 + C^2)``, the share of
    phi_3 in the length of phi_new, for which the scale makes up.
    """
    reader = basis.reader().to(head.weight)
    length = math.sqrt(1 + basis.factor**2) / basis.factor
    scale = head.scale * length if head.normalised else head.scale
    classes = head.classes.tolist()
    wide = Head(head.kind, reader.shape[1], classes, scale, head.margin, head.smoothing)
    with torch.no_grad():
        wide.weight.copy_(head.weight @ reader)
        if wide.bias is not None and head.bias is not None:
            wide.bias.copy_(head.bias)
    return wide
