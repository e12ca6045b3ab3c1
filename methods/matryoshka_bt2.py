"""BT2 with nested prefixes of phi_new, each classified and each compatible with the old one's."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract import (
    Batch,
    CompatibleTraining,
    OldClassifier,
    Portable,
    Step,
    Update,
    UpdateJob,
)
from benchmark.models.basis import BasisTransformation, Composed
from benchmark.models.heads import Head
from benchmark.models.parts import FirstDims, Frozen, KeepSide


class State(nn.Module):
    """Bases and nested classifiers, which train along; the independent model; nested K."""

    def __init__(self, job: UpdateJob, basis: BasisTransformation, halvings: int) -> None:
        super().__init__()
        whole, spec = OldClassifier.of(job, synthesize=True), job.spec
        shorter = [m for k in range(1, halvings + 1) if (m := whole.dim >> k)]
        classes, smoothing = job.data.classes.tolist(), job.trainer.recipe.label_smoothing
        self.basis, self.teacher = basis, Frozen(job.require_independent().model)
        self.heads = nn.ModuleList(
            Head(spec.head, m, classes, spec.scale, spec.margin, smoothing)
            for m in [whole.dim, *shorter]
        )
        self.old = nn.ModuleList(
            OldClassifier(whole.weight[:, :m], whole.bias, whole.scale, whole.row_of)
            for m in [whole.dim, *shorter]
        )
        # As in bt2: the scale of K's logits, which a softmax K gets from both lengths.
        lengths = whole.weight.norm(dim=1).mean() * job.old.features.norm(dim=1).mean()
        self.scale = float(lengths) if whole.scale is None else whole.scale

    @property
    def classifiers(self) -> list[Head]:
        """The new ones, the longest first."""
        return [each for each in self.heads if isinstance(each, Head)]

    @property
    def olds(self) -> list[OldClassifier]:
        """The old ones, K first."""
        return [each for each in self.old if isinstance(each, OldClassifier)]


@dataclass(frozen=True)
class MatryoshkaBT2(CompatibleTraining[State]):
    """BT2's loss with L_new on phi_new, its old terms summed over nested prefixes of phi_5.

    L_new(phi_new) + l1 (1 - phi_3.phi'_new) + sum over m of L_m(phi_5[:m]) + l2 L_old(K[:, :m],
    phi_5[:m]) + l3 (1 - cos(phi_5[:m], phi_old[:m])), m the old size, its half, its quarter, ...;
    L_m is a classifier of its own, of weight 1 (Kusupati et al., eq. 1, from memory: ours).
    Prefixes are cut first and normalised then. phi_5 is the beginning of phi_new, so a prefix of
    new vectors of any length can be searched in the old gallery cut alike; ``prefix`` keeps one.
    That the compatible terms are nested is ours; L_new reads phi_new on every backbone, as BT2 has
    it for transformers (4.3), since it is phi_new that is cut. All else is as ``bt2``, scales and
    weights.
    """

    paper = (
        "Kusupati et al., Matryoshka Representation Learning, NeurIPS 2022, with Zhou et al., BT2, "
        "ICCV 2023"
    )
    fidelity = "second-hand"
    variants = {"half": {"prefix": 0.5}, "quarter": {"prefix": 0.25}}
    needs = ("independent",)
    uses = ("stored old features", "the old classifier where it is kept")
    ranges = {
        "extra": "[1, inf)", "factor": "(0, inf)", "match_new": "[0, inf)", "influence": "[0, inf)",
        "match_old": "[0, inf)", "halvings": "[0, inf)", "prefix": "(0, 1]",
    }  # fmt: skip

    extra: int = 32  # d, BT2 section 4.3; at most as many as either embedding has
    factor: float = 2.0  # C, BT2 section 4.3
    match_new: float = 1.0  # lambda_1, BT2 section 4.3; value of its published code
    influence: float = 10.0  # lambda_2 at scale 1, BT2 section 4.3; value of its published code
    match_old: float = 5.0  # lambda_3, BT2 section 4.3; value of its published code
    halvings: int = 2  # of the old size, the nested lengths; ours: what the variants keep
    prefix: float | None = None  # share of the old size that is kept; ours: all of the new vector

    @property
    def changes(self) -> tuple[str, ...]:
        """The dimension; the stored gallery where it is cut."""
        return ("training", "dimension", *(("gallery",) if self.prefix else ()))

    def refuses(self, step: Step) -> str | None:
        """Any sizes will do, but directions alone are kept."""
        cosine = step.distance == "cosine"
        return None if cosine else f"compares directions, got distance {step.distance}"

    def sizes(self, job: UpdateJob) -> tuple[int, int, int]:
        """m, the size of old vectors and that of phi_2, as in bt2."""
        m, n = job.spec.dim, job.old.features.shape[1]
        return m, n, min(self.extra, m, n) + max(0, n - m)

    def new_model(self, job: UpdateJob) -> tuple[Portable, Head]:
        """A backbone of m + d_old numbers and a classifier of phi_new."""
        m, n, d = self.sizes(job)
        return job.new_model(m + n, m + d)

    def prepare(self, job: UpdateJob) -> State:
        """Projection, bases and classifiers, drawn from the seed; teacher and K."""
        return State(job, BasisTransformation(*self.sizes(job), self.factor), self.halvings)

    def loss(self, batch: Batch, head: Head, state: State) -> Tensor:
        """The terms of the whole vector and those of its prefixes."""
        phi_3, phi_5, phi_new = state.basis.parts(batch.new)
        teacher, stored = state.teacher(batch.images).float(), batch.old.detach()
        total = head(head.scale * phi_new, batch.labels)
        total = total + self.match_new * (1 - (phi_3 * F.normalize(teacher)).sum(dim=1)).mean()
        for nested, old in zip(state.classifiers, state.olds, strict=True):
            new, kept = F.normalize(phi_5[:, : old.dim]), stored[:, : old.dim]
            # A softmax K reads lengths: its input has the length of the old vector.
            logits = old.logits(new * kept.norm(dim=1, keepdim=True))
            influence = F.cross_entropy(logits, old.row_of[batch.labels])
            near = (1 - (new * F.normalize(kept)).sum(dim=1)).mean()
            total = total + nested(nested.scale * phi_5[:, : old.dim], batch.labels)
            total = total + self.influence / state.scale * influence + self.match_old * near
        return total

    def finish(self, job: UpdateJob, encoder: Portable, head: Head, state: State) -> Update:
        """Backbone and bases as one model; or a prefix of it, and the gallery's."""
        model, d_old = Composed(encoder, state.basis), job.old.features.shape[1]
        with torch.no_grad():
            for each in (head, *state.classifiers):
                each.weight.mul_(each.scale)
        if self.prefix is None:
            return Update(model, head, query_view=FirstDims(d_old))
        kept = FirstDims(max(1, round(self.prefix * d_old)))
        known = [each for each in state.classifiers if each.dim == kept.dim]
        return Update(Composed(model, kept), known[0] if known else None, convert=KeepSide(kept))
