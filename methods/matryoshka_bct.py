"""BCT(+32) with nested prefixes, each classified and each compatible with the old one's prefix."""

from dataclasses import dataclass

from torch import Tensor, nn

from benchmark.contract import Batch, CompatibleTraining, OldClassifier, Portable, Update, UpdateJob
from benchmark.models.basis import Composed
from benchmark.models.heads import Head
from benchmark.models.parts import FirstDims, KeepSide


class State(nn.Module):
    """Of each nested length a classifier of its own, and the first columns of the old one."""

    def __init__(self, job: UpdateJob, extra: int, halvings: int) -> None:
        super().__init__()
        whole = OldClassifier.of(job, synthesize=True)
        spec, classes = job.spec, job.data.classes.tolist()
        shorter = [m for k in range(1, halvings + 1) if (m := whole.dim >> k)]
        nested = [whole.dim, *shorter] if extra else shorter
        self.heads = nn.ModuleList(
            Head(spec.head, m, classes, spec.scale, spec.margin, job.trainer.recipe.label_smoothing)
            for m in nested
        )
        self.old = nn.ModuleList(
            OldClassifier(whole.weight[:, :m], whole.bias, whole.scale, whole.row_of)
            for m in [whole.dim, *shorter]
        )

    @property
    def classifiers(self) -> list[Head]:
        """The new ones, the longest first."""
        return [each for each in self.heads if isinstance(each, Head)]

    @property
    def olds(self) -> list[OldClassifier]:
        """The old ones, K first."""
        return [each for each in self.old if isinstance(each, OldClassifier)]


@dataclass(frozen=True)
class MatryoshkaBCT(CompatibleTraining[State]):
    """``bct-extra``'s loss, and at each nested length m <= d_old L_m(z[:m]) + weight L_old(z[:m]).

    L_m is a classifier of its own for the first m dimensions, of weight 1 (Kusupati et al., eq. 1,
    from memory: ours); L_old reads the first m columns of K. Vectors are cut first and normalised
    then. Lengths are d_old, its half, its quarter, ...: between them prefixes are compatible by
    interpolation, which is the paper's finding for classification (from memory). That the influence
    loss is nested too is ours: a prefix of new vectors of any length can be searched in the old
    gallery cut alike. ``prefix`` is the share that is kept, of queries and of the gallery, of what
    the update before has kept: in a sequence vectors get shorter with every update.
    """

    paper = (
        "Kusupati et al., Matryoshka Representation Learning, NeurIPS 2022, with Zhou et al., "
        "BT^2, ICCV 2023, section 4.3"
    )
    fidelity = "second-hand"
    uses = ("stored old features", "the old classifier where it is kept")
    variants = {"half": {"prefix": 0.5}, "quarter": {"prefix": 0.25}}
    longer = True
    ranges = {
        "extra": "[0, inf)", "weight": "[0, inf)", "halvings": "[0, inf)", "prefix": "(0, 1]",
    }  # fmt: skip

    extra: int = 32  # dimensions, as of bct-extra: BT2 section 4.3
    weight: float = 1.0  # lambda, BCT eq. 7
    halvings: int = 2  # of d_old, the nested lengths; ours: what the variants keep
    prefix: float | None = None  # share of d_old that is kept; ours: all of the new vector

    @property
    def changes(self) -> tuple[str, ...]:
        """The dimension; the stored gallery where it is cut."""
        return ("training", "dimension", *(("gallery",) if self.prefix else ()))

    def new_model(self, job: UpdateJob) -> tuple[Portable, Head]:
        """A model with the extra dimensions; every further update adds as many."""
        return job.new_model(dim=job.old.features.shape[1] + self.extra)

    def prepare(self, job: UpdateJob) -> State:
        """The nested classifiers, with initial weights of the seed."""
        return State(job, self.extra, self.halvings)

    def loss(self, batch: Batch, head: Head, state: State) -> Tensor:
        """The whole vector's loss and those of its prefixes."""
        new, labels, total = batch.new, batch.labels, head(batch.new, batch.labels)
        for nested in state.classifiers:
            total = total + nested(new[:, : nested.dim], labels)
        for old in state.olds:
            total = total + self.weight * old.losses(new, labels)[0].mean()
        return total

    def finish(self, job: UpdateJob, encoder: Portable, head: Head, state: State) -> Update:
        """The whole vector, compared by its beginning; or a prefix, and the gallery's."""
        d_old = job.old.features.shape[1]
        if self.prefix is None:
            return Update(encoder, head, query_view=FirstDims(d_old) if self.extra else None)
        kept = FirstDims(max(1, round(self.prefix * d_old)))
        known = [each for each in state.classifiers if each.dim == kept.dim]
        classifier = known[0] if known else None
        return Update(Composed(encoder, kept), classifier, convert=KeepSide(kept))
