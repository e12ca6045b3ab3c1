"""The adapter contract.

A *method* is a frozen dataclass, whose fields are its hyper-parameters, in one file of
``methods/``. It derives from a base in :mod:`benchmark.contract.bases`, or from :class:`Method`.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from torch import Tensor

from benchmark.config import registry
from benchmark.config.checks import in_range
from benchmark.config.declarations import CHANGES, NEEDS, MethodDeclaration
from benchmark.config.recipes import ModelSpec
from benchmark.contract.lists import TwoLists
from benchmark.errors import BenchError, nearest
from benchmark.models.backbones import Encoder
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.training.data import TrainingData
from benchmark.training.embedding import new_model, raw_model
from benchmark.training.loop import Curve, Trainer


@dataclass(frozen=True)
class Generation:
    """A trained generation, as an update sees it.

    Attributes:
        model: The embedding model, in evaluation mode, frozen.
        head: Its classifier; ``None`` where the protocol discards it.
        features: Its embeddings of the new generation's training images, ``[n, d]`` float32,
            not normalised, no augmentation; of several views, where the recipe gives them to
            conversions, ``[views * n, d]``, view after view.
        side: Side-information of the same images, ``[n, s]``, if any, by this generation's
        side_model: that embeds them.
    """

    model: Portable
    head: Head | None
    features: Tensor
    side: Tensor | None = None
    side_model: Portable | None = None


@dataclass(frozen=True)
class UpdateJob:
    """All that a method may use.

    Attributes:
        data: Training data of the new generation, whose model is of ``spec``.
        chain: The earlier generations, oldest first; none for ``own_first``.
        independent: The new generation trained without any constraint, if ``needs`` says so;
            its ``side`` is the new side-information, where a later update builds on it.
        distance: How the deployment compares embeddings, ``cosine`` or ``l2``.
        trainer: The training loop, with the recipe, the seed and the checkpoints of this update.
        n_classes: Classes of the dataset; ``data.classes`` are below it.
    """

    data: TrainingData
    chain: tuple[Generation, ...]
    independent: Generation | None
    spec: ModelSpec
    distance: str
    trainer: Trainer
    n_classes: int = 0

    @property
    def old(self) -> Generation:
        """The generation that is being replaced; a ValueError where this is the first one."""
        if not self.chain:
            raise ValueError("job.old: the first generation replaces none")
        return self.chain[-1]

    def require_independent(self) -> Generation:
        """The independent new generation; a ValueError if the plan provides none."""
        if self.independent is None:
            raise ValueError("job.independent: expected the independent new model, got none")
        return self.independent

    def new_model(
        self, dim: int | None = None, head_dim: int | None = None
    ) -> tuple[Encoder, Head]:
        """As :func:`benchmark.training.embedding.new_model`: the start of every method."""
        return new_model(self.spec, self.data, self.trainer, dim, head_dim)

    def raw_model(self) -> tuple[Encoder, int]:
        """As :func:`benchmark.training.embedding.raw_model`: features of a frozen backbone."""
        return raw_model(self.spec, self.data)


@dataclass(frozen=True)
class Update:
    """Result of an update.

    Attributes:
        model: phi_new: images ``[n, c, h, w]`` in [-1, 1] -> ``[n, d_new]``.
        head: Its classifier: the next update's old head.
        convert: Stored gallery -> converted gallery: vectors ``[n, d]`` and side-information
            ``[n, s]`` or ``None`` -> the same two; by default the identity.
        query_view: New query vectors -> the space of the converted gallery (BT2: the first d_old
            dimensions); by default the identity.
        joint_view: In its place where the old model embeds queries too: the query's vectors by the
            new and by the old model, ``[n, d_new]`` and ``[n, d_old]``, -> the same space.
        merge: How results by that query and results by the new one become one ranking. By default
            scores are compared as they are, which needs views that keep distances; of others
            there is no score while a gallery is filled.
        priority: Stored gallery -> ``[n]``; larger is backfilled first, ties by id.
        curves: Training curves by name.
    """

    model: Portable
    head: Head | None
    convert: Portable | None = None
    query_view: Portable | None = None
    priority: Portable | None = None
    curves: Mapping[str, Curve] = field(default_factory=dict)
    joint_view: Portable | None = None
    merge: TwoLists | None = None


@dataclass(frozen=True)
class Step:
    """An update as a plan knows it, before anything is trained."""

    old: ModelSpec
    new: ModelSpec
    shared_classes: bool = True  # whether the two generations have a class in common
    distance: str = "cosine"


@dataclass(frozen=True)
class Method(MethodDeclaration):
    """The way of a deployment from one embedding model to the next.

    Beside the declarations, ``ranges`` has the interval of each number among the fields,
    ``{"drop": "[0, 1)"}``: a square bracket includes its end. Those of the bases hold too.
    """

    ranges: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not isinstance(cls.variants, Mapping):
            raise TypeError(f"variants: expected name -> fields, got {cls.variants!r:.60}")

    def __post_init__(self) -> None:
        for name, known in (("needs", NEEDS), ("changes", CHANGES)):
            for word in _words(name, getattr(self, name)):
                if word not in known and not (name == "needs" and word.startswith("side:")):
                    raise ValueError(f"{name}: unknown word '{word}'{nearest(word, known)}")
        for cls in type(self).__mro__:
            ranges = vars(cls).get("ranges", {})
            for name in ranges:
                if not hasattr(self, name):
                    own = [each.name for each in fields(self)]
                    raise ValueError(f"ranges: unknown field '{name}'{nearest(name, own)}")
            in_range(self, **{k: v for k, v in ranges.items() if getattr(self, k) is not None})

    def refuses(self, step: Step) -> str | None:  # noqa: ARG002
        """Reason why the method cannot make this update; ``None`` if it can."""
        return None

    def first(self, job: UpdateJob) -> Update:
        """Train generation 1 the method's own way; only with ``own_first``."""
        raise NotImplementedError(f"{type(self).__name__}.first")

    def fit(self, *_: Any, **__: Any) -> Any:
        """Refuse plain arrays by a BenchError; a ``FeatureTransformation`` fits on them."""
        reason = "makes no map; only methods that map stored vectors fit on arrays"
        raise BenchError(f"{type(self).__name__} {reason}")

    def other(self, label: str, **params: Any) -> Any:
        """A method that this one builds on, with parameters; a TypeError on any other."""
        if label not in self.builds_on:
            raise TypeError(f"{label}: expected one of builds_on, {', '.join(self.builds_on)}")
        return registry.method(label, params)

    @abstractmethod
    def update(self, job: UpdateJob) -> Update:
        """Train or fit the new generation, given the earlier ones."""


def _words(name: str, said: Any) -> tuple[str, ...]:
    """Words of a declaration; a ValueError on one alone, of which Python would read the letters."""
    if not isinstance(said, tuple):
        raise ValueError(f"{name}: expected a tuple of words, got {said!r:.60}")
    return said
