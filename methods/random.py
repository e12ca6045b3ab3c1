"""Control: a new model that was never trained; what lies near it shows nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmark.contract import Method, Update, UpdateJob


@dataclass(frozen=True)
class Random(Method):
    """The initial weights that the training of every method starts from."""

    paper: ClassVar[str] = "Control: the floor of every score"
    trains: ClassVar[str] = "nothing: the new model has its initial weights"

    @property
    def changes(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def update(self, job: UpdateJob) -> Update:
        """Take the model as it is initialised."""
        encoder, head = job.new_model()
        return Update(encoder, head)
