"""Control: a new model that was never trained."""

from dataclasses import dataclass

from benchmark.contract import Method, Update, UpdateJob


@dataclass(frozen=True)
class Random(Method):
    """The initial weights that the training of every method starts from."""

    paper = "Control: the floor of every score"
    fidelity = "ours"
    control = True
    trains = "nothing: the new model has its initial weights"
    changes = ()

    def update(self, job: UpdateJob) -> Update:
        """Take the model as it is initialised."""
        return Update(*job.new_model())
