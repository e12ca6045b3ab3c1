"""QDC: new queries less the mean drift of the embeddings."""

from dataclasses import dataclass

from torch import Tensor, nn

from benchmark.contract import (
    FeatureTransformation,
    Fitted,
    Pairs,
    Portable,
    RefusedError,
    Step,
    Trainer,
)


class Shifted(Portable):
    """``x - drift``."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.drift = nn.Parameter(Tensor(dim).zero_(), requires_grad=False)

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, d]`` -> ``[n, d]``."""
        return vectors - self.drift


@dataclass(frozen=True)
class QDC(FeatureTransformation):
    """query' = f(q) - D, D = mean over training items of f(t) - o(t) (eq. 4), not normalised.

    In a chain the drifts since the stored generation add up. Meant for models that are fine-tuned
    from one another: two models trained apart share no axes, and a mean says nothing of them. Read:
    dipamgoswami/QDC at e9efe7d, eval/eval_retrieval.py (the code subtracts from vectors as they
    are); eq. 4 by a survey. The paper's distillation, which trains the new model, is not built.
    """

    paper = "Goswami et al., Query Drift Compensation, CoLLAs 2025"
    fidelity = "code"
    reads_old_head = False

    @property
    def changes(self) -> tuple[str, ...]:
        """The queries."""
        return ("queries",)

    def refuses(self, step: Step) -> str | None:
        """A drift needs one space's size."""
        return _unequal(step.old.dim, step.new.dim)

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """The mean in float64."""
        reason = _unequal(pairs.old.shape[1], pairs.new.shape[1])
        if reason:
            raise RefusedError(f"qdc: {reason}")
        view = Shifted(pairs.old.shape[1])
        view.drift.copy_((pairs.new.double() - pairs.old.double()).mean(0))
        return Fitted(query_view=view)


def _unequal(old: int, new: int) -> str | None:
    return None if old == new else f"needs embeddings of one size, got {old} and {new}"
