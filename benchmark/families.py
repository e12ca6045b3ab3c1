"""The two families of methods; an adapter overrides only its idea.

``CompatibleTraining`` trains the new model under an extra constraint; ``FeatureTransformation``
takes the independent new model and maps the stored gallery to it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from torch import Tensor, nn

from benchmark.method import Method, Update, UpdateJob
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.protocol import ModelSpec
from benchmark.seeds import drawing_from
from benchmark.training.embedding import Batch, train_embedding
from benchmark.training.loop import Curve, Trainer

State = TypeVar("State", bound=nn.Module)


@dataclass(frozen=True)
class CompatibleTraining(Method, Generic[State]):
    """The new model is trained compatible; the stored gallery stays as it is.

    Override :meth:`loss`, and :meth:`prepare` where the loss needs something made before: a
    module, whose type an adapter names as ``CompatibleTraining[MyState]``.
    """

    extra_dims: ClassVar[int] = 0

    def refuses(self, old: ModelSpec, new: ModelSpec) -> str | None:
        """New vectors are compared with the stored old ones as they are."""
        if old.dim == new.dim:
            return None
        return f"needs embeddings of one size, got {old.dim} and {new.dim}"

    def prepare(self, job: UpdateJob) -> State:  # noqa: ARG002
        """What the loss needs, made once before training.

        Parameters of the module are trained along and buffers are kept in the checkpoint, so a
        resumed training goes on with them; freeze what must not learn. Initial weights are
        drawn from the seed of the update.
        """
        return nn.Module()  # type: ignore[return-value]

    @abstractmethod
    def loss(self, batch: Batch, head: Head, state: State) -> Tensor:
        """The training loss of a batch, a scalar.

        Args:
            batch: Images, labels, new features with gradient, stored old features.
            head: The new classifier; ``head(features, labels)`` is its own loss.
            state: What :meth:`prepare` returned.
        """

    def refresh(self, state: State, job: UpdateJob, epoch: int, progress: float) -> None:
        """Called before each epoch: renew prototypes, memories, schedules."""

    def update(self, job: UpdateJob) -> Update:
        """Train the new model from the initial weights that every method starts from."""
        encoder, head = job.new_model(self.extra_dims)
        with drawing_from(job.trainer.seed, "prepare"):
            state = self.prepare(job)
        curve = train_embedding(
            encoder,
            head,
            self.loss,
            job.data,
            job.trainer,
            state=state,
            old=job.old.features,
            on_epoch=lambda epoch, progress: self.refresh(state, job, epoch, progress),
        )
        return Update(encoder, head, curves={"model": curve})


@dataclass(frozen=True)
class Pairs:
    """Cached embeddings of the same training items by both models: all that a map may see.

    Attributes:
        old: ``[n, d_old]`` float32, not normalised.
        new: ``[n, d_new]`` float32, not normalised.
        labels: Rows of the new classifier, ``[n]``; ``None`` if unknown.
        side: Side-information, ``[n, s]``; ``None`` if none is stored.
        head: The new classifier; ``None`` if unknown.
        distance: How the deployment compares embeddings, ``cosine`` or ``l2``.
    """

    old: Tensor
    new: Tensor
    labels: Tensor | None = None
    side: Tensor | None = None
    head: Head | None = None
    distance: str = "cosine"


@dataclass(frozen=True)
class FeatureTransformation(Method):
    """The new model is the independent one; a map brings the stored gallery to it."""

    changes: ClassVar[tuple[str, ...]] = ("gallery",)
    own_model: ClassVar[bool] = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The independent new model."""
        return ("independent",)

    @abstractmethod
    def fit(self, pairs: Pairs, trainer: Trainer) -> tuple[Portable, dict[str, Curve]]:
        """Fit the conversion: a module from (vectors, side or None) to the same two, and curves."""

    def update(self, job: UpdateJob) -> Update:
        """Fit on the embeddings that the plan has cached."""
        new = job.independent
        if new is None:
            raise ValueError("job.independent: a feature transformation needs the new model")
        pairs = Pairs(
            job.old.features, new.features, job.data.labels, job.old.side, new.head, job.distance
        )
        convert, curves = self.fit(pairs, job.trainer)
        return Update(new.model, new.head, convert=convert.eval(), curves=curves)
