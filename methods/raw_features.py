"""Raw features: frozen backbones as they are, nothing trained behind them."""

from dataclasses import dataclass

from benchmark.contract import Method, Step, Update, UpdateJob
from benchmark.models.parts import FirstDims, KeepSide


@dataclass(frozen=True)
class RawFeatures(Method):
    """Each generation's embedding is what its frozen backbone gives.

    Old/old and new/new show whether training pays on a track; two backbones that began apart have
    no features in common, so new/old is by chance. Of features of two lengths the beginnings are
    compared.
    """

    paper = "Control: what training behind a frozen backbone has to beat"
    fidelity = "ours"
    own_first = True
    reads_old_head = False
    control = True
    trains = "nothing: features of the frozen backbones"
    uses = ("features of the frozen backbones",)
    changes = ("dimension",)
    variant_of = "independent"

    def refuses(self, step: Step) -> str | None:
        """Only frozen backbones have features of their own."""
        return None if step.old.frozen and step.new.frozen else "needs frozen backbones"

    def update(self, job: UpdateJob) -> Update:
        """Take the features of the new backbone as they are."""
        model, width = job.raw_model()
        old = job.old.features.shape[1] if job.chain else width
        convert = KeepSide(FirstDims(width)) if old > width else None
        view = FirstDims(old) if old < width else None
        return Update(model, None, convert=convert, query_view=view)

    def first(self, job: UpdateJob) -> Update:
        """Take those of the old one."""
        return self.update(job)
