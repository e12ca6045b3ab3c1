"""OCA: extra dimensions and an orthogonal layer before the new classifier alone."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract import Batch, CompatibleTraining, Head, Portable, Step, Update, UpdateJob
from benchmark.models.basis import Composed, Rotation
from benchmark.models.parts import FirstDims
from benchmark.training.prototypes import class_means


class Unit(Portable):
    """A vector's direction."""

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, d]`` -> ``[n, d]``, of length 1."""
        return F.normalize(vectors)


class State(nn.Module):
    """The orthogonal layer O, which trains along, and the class means of the old features."""

    means: Tensor

    def __init__(self, dim: int, means: Tensor) -> None:
        super().__init__()
        self.layer = Rotation(dim)
        self.register_buffer("means", means)


@dataclass(frozen=True)
class OCA(CompatibleTraining[State]):
    """a CE(W O z) + b CE(P z_old) / scale + c (1 - cos(P_y, z_old)), z = n(backbone).

    z_old = n(z[:d_old]) is what old vectors are compared with and z what is stored; the classifier
    reads O z, O orthogonal, so that old dimensions and extra ones mix for it alone. P has the
    class means of n(o) on the new data, not of length 1.

    Read: the official code (z3n0e/OCA at af89d7d: OCA_trainer.py, train_OCA.py, models/resnet.py),
    whose weights 5, 10, 5 are written into it while its configuration has (1, 10, 5); of the paper
    the abstract. There the logits P z_old are cosines at scale 1 or less, under which a softmax
    over many classes says nothing, and the cosine alone teaches. Here they have the new
    classifier's scale and the term is divided by it, as in ``bt2``: a choice of ours; the variant
    ``published`` has the code's scale 1. CE of W is the track's classifier, with its margin and
    smoothing, its optimiser and budget the track's. A softmax one reads O z at the scale of
    cosines to as many classes: its weights would have to grow by as much first, for which the
    code has a hundred epochs. The code's layer has a bias, left out here: the next update's
    classifier of z is then W O exactly.
    """

    paper = (
        "Ricci et al., Backward-Compatible Aligned Representations via an Orthogonal "
        "Transformation Layer, ECCV Workshops 2024"
    )
    fidelity = "code"
    reads_old_head = False
    variants = {"published": {"scale": 1.0}}
    uses = ("stored old features",)
    changes = ("training", "dimension")
    longer = True
    ranges = {
        "extra": "[0, inf)", "classify": "[0, inf)", "influence": "[0, inf)",
        "match": "[0, inf)", "scale": "(0, inf)",
    }  # fmt: skip

    extra: int = 32  # dimensions, published code
    classify: float = 5.0  # a, published code
    influence: float = 10.0  # b, published code
    match: float = 5.0  # c, published code
    scale: float | None = None  # of the cosines to P; ours: that of the new classifier

    def refuses(self, step: Step) -> str | None:
        """Directions alone are kept; the size is the old one and the extra dimensions."""
        cosine = step.distance == "cosine"
        return None if cosine else f"compares directions, got distance {step.distance}"

    def new_model(self, job: UpdateJob) -> tuple[Portable, Head]:
        """A model with the extra dimensions; every further update adds as many."""
        return job.new_model(dim=job.old.features.shape[1] + self.extra)

    def prepare(self, job: UpdateJob) -> State:
        """O drawn from the seed; means of the unit old features."""
        old, data = job.old.features, job.data
        means = class_means(F.normalize(old), data.labels, len(data.classes))
        return State(old.shape[1] + self.extra, means)

    def loss(self, batch: Batch, head: Head, state: State) -> Tensor:
        """The three terms."""
        z, labels, means = F.normalize(batch.new), batch.labels, state.means
        old = F.normalize(z[:, : means.shape[1]])
        scale = head.scale if self.scale is None else self.scale
        influence = F.cross_entropy(scale * old @ means.T, labels, label_smoothing=head.smoothing)
        match = 1 - F.cosine_similarity(means[labels], old)
        return (
            self.classify * head(head.scale * state.layer(z), labels)
            + self.influence / scale * influence
            + self.match * match.mean()
        )

    def finish(self, job: UpdateJob, encoder: Portable, head: Head, state: State) -> Update:
        """Unit vectors, and the classifier that reads them without O."""
        with torch.no_grad():
            head.weight.copy_(head.scale * head.weight @ state.layer.matrix.to(head.weight))
        view = FirstDims(job.old.features.shape[1]) if self.extra else None
        return Update(Composed(encoder, Unit()), head, query_view=view)
