"""BT2 as its code has it for convolutional networks: a ReLU before the projection to phi_2."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from benchmark.contract import Batch, CompatibleTraining, Head, Portable, Step, Update, UpdateJob
from benchmark.models.basis import BasisTransformation


@dataclass(frozen=True)
class BT2Code(CompatibleTraining[nn.Module]):
    """As ``bt2``, but phi_2 = n(projection of relu(backbone)): ``fc3(relu(feature))`` of the code.

    Algorithm 1 of the paper has no ReLU there, nor has the code for transformers.
    """

    paper = "Zhou et al., BT2: Backward-compatible Training with Basis Transformation, ICCV 2023"
    fidelity = "code"
    variant_of = "bt2"
    builds_on = ("bt2",)
    needs = ("independent",)
    uses = ("stored old features", "the old classifier where it is kept")
    changes = ("training", "dimension")
    ranges = {"extra": "[1, inf)"}

    extra: int = 32  # d, section 4.3; at most as many as either embedding has

    @property
    def plain(self) -> Any:
        """The method without the ReLU."""
        return self.other("bt2", extra=self.extra)

    def refuses(self, step: Step) -> str | None:
        """As bt2."""
        reason: str | None = self.plain.refuses(step)
        return reason

    def new_model(self, job: UpdateJob) -> tuple[Portable, Head]:
        """As bt2."""
        made: tuple[Portable, Head] = self.plain.new_model(job)
        return made

    def prepare(self, job: UpdateJob) -> nn.Module:
        """The state of bt2, its projection behind a ReLU, from the same start."""
        plain = self.plain
        state, (m, n, d) = plain.prepare(job), plain.sizes(job)
        basis = BasisTransformation(m, n, d, plain.factor, rectified=True)
        basis.load_state_dict(state.basis.state_dict())
        state.basis = basis
        made: nn.Module = state
        return made

    def loss(self, batch: Batch, head: Head, state: nn.Module) -> Tensor:
        """The four terms of section 4.3."""
        value: Tensor = self.plain.loss(batch, head, state)
        return value

    def finish(self, job: UpdateJob, encoder: Portable, head: Head, state: nn.Module) -> Update:
        """As bt2."""
        made: Update = self.plain.finish(job, encoder, head, state)
        return made
