"""Control: no update; the old model stays."""

from dataclasses import dataclass

from benchmark.contract import Method, Update, UpdateJob


@dataclass(frozen=True)
class KeepOld(Method):
    """The new model is the old one: fully compatible, and no better."""

    paper = "Control: what an update has to beat"
    fidelity = "ours"
    runs_old_model = True
    control = True
    trains = "nothing: the old model goes on"
    uses = ("the old model",)
    changes = ()

    def update(self, job: UpdateJob) -> Update:
        """Take the old model as it is."""
        return Update(job.old.model, job.old.head)
