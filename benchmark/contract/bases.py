"""Bases of the two families of methods, of which an adapter overrides only its idea."""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config.recipes import Recipe
from benchmark.config.seeds import drawing_from
from benchmark.contract import fitting
from benchmark.contract.conversion import Conversion
from benchmark.contract.method import Method, Step, Update, UpdateJob
from benchmark.contract.pairs import Fitted, Pairs
from benchmark.contract.views import job_pairs
from benchmark.errors import BenchError
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.models.parts import Directions, FirstDims, KeepSide
from benchmark.training.device import Device
from benchmark.training.embedding import Batch, Epoch, train_embedding
from benchmark.training.loop import Curve, Trainer

State = TypeVar("State", bound=nn.Module)
FittedMap = tuple[Portable, Mapping[str, Curve]]
"""A map of vectors and its training curves by name."""


@dataclass(frozen=True)
class CompatibleTraining(Method, Generic[State]):
    """Base of methods that train the new model compatible; the stored gallery stays as it is.

    Override :meth:`loss`, and :meth:`prepare` where the loss needs a state: a module, whose type
    an adapter names as ``CompatibleTraining[MyState]``. The other hooks are for methods that
    build another model (:meth:`new_model`, :meth:`finish`) or renew their state between epochs
    (:meth:`refresh`). With ``longer``, new vectors may be longer than the old ones, of which the
    loss then reads the beginning.
    """

    longer: ClassVar[bool] = False

    @property
    def uses(self) -> tuple[str, ...]:
        """The old features of the new training images."""
        return ("stored old features",)

    def refuses(self, step: Step) -> str | None:
        """New vectors, or their beginning, are compared with the stored old ones as they are."""
        old, new = step.old.dim, step.new.dim
        if old == new or (self.longer and new > old):
            return None
        size = "a new embedding no shorter than the old" if self.longer else None
        return f"needs {size or 'embeddings of one size'}, got {old} and {new}"

    def new_model(self, job: UpdateJob) -> tuple[Portable, Head]:
        """The encoder and the classifier to train, with the initial weights of every method."""
        return job.new_model()

    def prepare(self, job: UpdateJob) -> State:  # noqa: ARG002
        """State that the loss needs; called once before training, under the seed of the update.

        Parameters of the module are trained along. Its buffers are kept in the checkpoint, so a
        resumed training goes on with them; they keep their shapes. A finished network goes in
        as ``Frozen(network)``.
        """
        return nn.Module()  # type: ignore[return-value]

    @abstractmethod
    def loss(self, batch: Batch, head: Head, state: State) -> Tensor:
        """The training loss of a batch, a scalar; ``state`` is the result of :meth:`prepare`."""

    def refresh(self, state: State, job: UpdateJob, epoch: Epoch) -> None:
        """Renew prototypes, memories, schedules in place; called before each epoch.

        ``epoch.embed(job.data.images)`` gives the features of the model as it stands.
        """

    def finish(self, job: UpdateJob, encoder: Portable, head: Head, state: State) -> Update:  # noqa: ARG002
        """Result of the training; the old gallery is compared with the first dimensions."""
        d_old = job.old.features.shape[1] if job.chain else head.dim
        return Update(encoder, head, query_view=FirstDims(d_old) if head.dim > d_old else None)

    def first(self, job: UpdateJob) -> Update:
        """Train generation 1 as the later ones; only with ``own_first``."""
        return self.update(job)

    def update(self, job: UpdateJob) -> Update:
        """Train the new model from the initial weights that every method starts from."""
        encoder, head = self.new_model(job)
        with drawing_from(job.trainer.seed, "prepare"):
            state = self.prepare(job)
        _expect(nn.Module, "prepare", state)
        curve = train_embedding(
            encoder, head, job.data, job.trainer, loss=self.loss, state=state,
            old=job.old.features if job.chain else None,
            on_epoch=lambda epoch: self.refresh(state, job, epoch), spec=job.spec,
        )  # fmt: skip
        update = self.finish(job, encoder, head, state)
        _expect(Update, "finish", update)
        return dataclasses.replace(update, curves={"model": curve, **update.curves})


def _expect(kind: type, what: str, given: object) -> None:
    if not isinstance(given, kind):
        raise BenchError(f"{what}: expected {kind.__name__}, got {type(given).__name__}")


@dataclass(frozen=True)
class FeatureTransformation(Method):
    """Base of methods that keep the independent new model and map the stored gallery to it.

    Override :meth:`learn`. It needs vectors only, so :meth:`fit` serves those who have no images.
    """

    own_model: ClassVar[bool] = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The independent new model."""
        return ("independent",)

    @property
    def uses(self) -> tuple[str, ...]:
        """Pairs of features."""
        return ("old and new features of the same images",)

    @property
    def changes(self) -> tuple[str, ...]:
        """The stored gallery."""
        return ("gallery",)

    @abstractmethod
    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Fit the map on pairs of embeddings, within the budget of ``trainer.recipe``."""

    def fit(
        self, old: Any, new: Any, labels: Any = None, side: Any = None, head: Any = None, *,
        distance: str = "cosine", recipe: Recipe | Mapping[str, Any] | None = None, seed: int = 0,
        device: str | Device = "auto", old_ids: Sequence[Any] | None = None,
        new_ids: Sequence[Any] | None = None, new_side: Any = None, old_head: Any = None,
        chained: bool = False, progress: Callable[[float], None] | None = None,
    ) -> Conversion:  # fmt: skip
        """Fit on plain arrays or tensors, with the same code as in the harness.

        Args:
            old: Vectors by the old model, ``[n, d_old]``.
            new: Vectors of the same items, in the same order, by the new model, ``[n, d_new]``.
            labels: Rows of the new classifier, ``[n]``, for methods that use it.
            side: Side-information stored with the old vectors, ``[n, s]``.
            head: The new classifier: a ``Head``, weights ``[C, d_new]`` or weights and biases.
            distance: As of :class:`Pairs`; likewise the next three.
            new_side: Side-information by the new generation, ``[n, s_new]``.
            old_head: The old classifier, in a form of ``head``.
            chained: Some stored vectors are outputs of an earlier conversion.
            recipe: Steps and pairs a step and precision of maps that are trained, a recipe or
                ``{"transform_steps": 600, "transform_batch": 256}``; what is not named is as on
                the built-in tracks.
            seed: Seed of everything random.
            device: ``auto``, ``cpu``, ``cuda``, ... to train on.
            old_ids: Ids of the rows of ``old``, ``[n]``, which must equal
            new_ids: those of the rows of ``new``.
            progress: Called now and then with the share of a training that is done, 0 to 1; a map
                in closed form calls nothing.

        Raises:
            BenchError: If they do not belong together, a value is not a finite number, or
                something is missing that the method needs.
        """
        pairs = fitting.make_pairs(
            self, distance, chained, old=old, new=new, labels=labels, side=side, head=head,
            new_side=new_side, old_head=old_head,
        )  # fmt: skip
        fitting.check_same_items(old_ids, new_ids, len(pairs.old))
        fitted = self._learned(pairs, fitting.make_trainer(recipe, seed, device, progress))
        return fitting.make_conversion(self, fitted, pairs)

    def update(self, job: UpdateJob) -> Update:
        """Fit on the embeddings that the plan has cached, or on new ones in each epoch."""
        new = job.require_independent()
        return Update(new.model, new.head, **vars(self._learned(job_pairs(job), job.trainer)))

    def _learned(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        fitted = self.learn(pairs, trainer)
        _expect(Fitted, "learn", fitted)
        for name, curve in fitted.curves.items():
            _expect(Curve, f"curve '{name}'", curve)
        return fitted


@dataclass(frozen=True)
class VectorMap(FeatureTransformation):
    """Base of maps of vectors alone, in either direction; override :meth:`fit_vectors`."""

    direction: Literal["gallery", "query"] = "gallery"  # ours; query: the gallery is not touched
    """``gallery`` brings stored vectors to the new space, ``query`` new queries to the old one."""

    @property
    def changes(self) -> tuple[str, ...]:
        """The stored gallery or the queries."""
        return ("gallery",) if self.direction == "gallery" else ("queries",)

    @abstractmethod
    def fit_vectors(self, source: Tensor, target: Tensor, trainer: Trainer) -> FittedMap:
        """The map ``[n, d_source]`` -> ``[n, d_target]`` and training curves, if any.

        Both are float32, and unit vectors where only directions matter; the recipe of ``trainer``
        has the budget of steps.
        """

    def other(self, label: str, **params: Any) -> "VectorMap":
        """The map of a method that this one builds on, in the same direction, with parameters."""
        method = super().other(label, **({"direction": self.direction} | params))
        if not isinstance(method, VectorMap):
            raise TypeError(f"{label}: expected a map of vectors, got another kind of method")
        return method

    def fit_pairs(self, pairs: Pairs, trainer: Trainer) -> FittedMap:
        """As :meth:`fit_vectors`, for a map that may see other views in each epoch."""
        return self.fit_vectors(*self.ends(pairs), trainer)

    def ends(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """Source and target: old and new, or new and old."""
        cosine = pairs.distance == "cosine"
        old, new = (F.normalize(x) if cosine else x for x in (pairs.old, pairs.new))
        return (new, old) if self.direction == "query" else (old, new)

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Fit old to new, or new to old."""
        found = self.fit_pairs(pairs, trainer)
        if not isinstance(found, tuple) or len(found) != 2:
            raise BenchError(
                "fit_vectors: expected two things, a map and its training curves ({} where there "
                f"are none), got {type(found).__name__}"
            )
        fitted, curves = found
        directions = Directions(fitted, pairs.distance == "cosine")
        if self.direction == "query":
            return Fitted(query_view=directions, curves=curves)
        return Fitted(convert=KeepSide(directions), curves=curves)
