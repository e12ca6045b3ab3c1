"""The new model trained alone: lower bound, upper bound, and the incompatible cross-test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmark.contract import Method, Update, UpdateJob


@dataclass(frozen=True)
class Independent(Method):
    """Classification loss only, the old model unseen (BCT section 3.4)."""

    paper: ClassVar[str] = "Baseline of Shen et al., BCT, CVPR 2020"
    own_model: ClassVar[bool] = False
    trains: ClassVar[str] = "the new model alone, once for all methods"

    @property
    def needs(self) -> tuple[str, ...]:
        """The shared independent model."""
        return ("independent",)

    @property
    def changes(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def update(self, job: UpdateJob) -> Update:
        """Take the independent model as it is."""
        if job.independent is None:
            raise ValueError("job.independent: the plan must provide the independent model")
        return Update(job.independent.model, job.independent.head)
