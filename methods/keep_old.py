"""Control: no update; the old model goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmark.contract import Method, Update, UpdateJob


@dataclass(frozen=True)
class KeepOld(Method):
    """The new model is the old one: fully compatible, and no better."""

    paper: ClassVar[str] = "Control: what an update has to beat"
    runs_old_model: ClassVar[bool] = True
    trains: ClassVar[str] = "nothing: the old model goes on"

    @property
    def uses(self) -> tuple[str, ...]:
        """The old model stays in service."""
        return ("the old model",)

    @property
    def changes(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def update(self, job: UpdateJob) -> Update:
        """Take the old model as it is."""
        return Update(job.old.model, job.old.head)
