"""Independent: the new model trained alone; the bounds and the incompatible cross-test."""

from dataclasses import dataclass

from benchmark.contract import Method, Update, UpdateJob


@dataclass(frozen=True)
class Independent(Method):
    """Classification loss only, without the old model (BCT section 3.4)."""

    paper = "Baseline of Shen et al., BCT, CVPR 2020"
    fidelity = "paper"
    own_model = False
    trains = "the new model alone, once for all methods"
    needs = ("independent",)
    changes = ()

    def update(self, job: UpdateJob) -> Update:
        """Take the independent model as it is."""
        new = job.require_independent()
        return Update(new.model, new.head)
