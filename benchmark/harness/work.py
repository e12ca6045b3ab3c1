"""Work of stages: a class for each kind, whose fields are all that its function takes.

Inputs are stages in a plan, and folders of their outputs where the work is done (:meth:`Work.at`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, TypeVar, get_type_hints

T = TypeVar("T")
PlainValues = Mapping[str, Any]
"""Plain values of a specification, a recipe or a split."""


class Role(str):
    """Name of an input, or of several by their places, in the name of the stage that has it."""


HERE = object()
"""Marks what only says where something lies, which changes no output."""


@dataclass(frozen=True, kw_only=True)
class StageWork(Generic[T]):
    """Base of the parameters of a kind of stage."""

    kind: ClassVar[str]

    def params(self) -> dict[str, Any]:
        """Plain values that determine the output, with the inputs; none at its default."""
        plain = (f for f in fields(self) if f.name not in _marks(type(self)))
        return {f.name: v for f in plain if (v := getattr(self, f.name)) != f.default}

    def inputs(self) -> dict[str, T]:
        """Role -> input."""
        roles = {k: v for k, v in _marks(type(self)).items() if isinstance(v, Role)}
        return {k: v for name, role in roles.items() for k, v in _named(role, getattr(self, name))}

    def at(self, place: Callable[[T], object]) -> Any:
        """The same work with each input elsewhere: the folder of a stage's output, for one."""
        marks = _marks(type(self)).items()
        moved = {k: _each(getattr(self, k), place) for k, v in marks if isinstance(v, Role)}
        return replace(self, **moved)


def _marked(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {f.name: hints[f.name].__metadata__[0] for f in fields(kind)
            if hasattr(hints[f.name], "__metadata__")}  # fmt: skip


_marks: Callable[[Any], dict[str, Any]] = cache(_marked)
"""Field of a kind of work -> its role, or ``HERE``; parameters have none."""


def _named(role: Role, value: Any, *place: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple):
        for i, each in enumerate(value):
            yield from _named(role, each, *place, i)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _named(role, each, *key)
    elif value is not None:
        yield role.format(*place), value


def _each(value: Any, place: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_each(each, place) for each in value)
    if isinstance(value, Mapping):
        return {key: _each(each, place) for key, each in value.items()}
    return None if value is None else place(value)


@dataclass(frozen=True, kw_only=True)
class DataWork(StageWork[T]):
    """A dataset, read and kept as arrays."""

    kind = "data"
    dataset: str
    options: PlainValues
    source: PlainValues  # all that determines the data
    data_root: Annotated[Any, HERE] = None


@dataclass(frozen=True, kw_only=True)
class FeatureWork(StageWork[T]):
    """Features by a frozen backbone of all images, or of the training images in one more view."""

    kind = "features"
    data: Annotated[T, Role("data")]
    spec: PlainValues
    resampling: str
    precision: str
    view: int = 0
    augment: PlainValues | None = None
    weights: Annotated[str | None, HERE] = None


@dataclass(frozen=True, kw_only=True)
class WorkOnData(StageWork[T]):
    """Base of work on a dataset, or on features that frozen backbones give in place of images."""

    data: Annotated[T, Role("data")]
    frozen: Annotated[tuple[tuple[T, ...], ...], Role("frozen{}.{}")] = ()  # by backbone, view


@dataclass(frozen=True, kw_only=True)
class TrainingWork(WorkOnData[T]):
    """Base of trainings: of a generation, a method, side-information."""

    spec: PlainValues
    recipe: PlainValues
    splits: Sequence[PlainValues]
    seed: int
    where: Annotated[str, HERE] = ""  # place that an error about its data names first
    weights: Annotated[str | None, HERE] = None


@dataclass(frozen=True, kw_only=True)
class ModelWork(TrainingWork[T]):
    """A generation trained alone; with ``texts`` an encoder of these beside one of images.

    Where a frozen embedder of texts stands behind it, ``texts`` is the hash of how that is run.
    """

    kind = "train"
    texts: bool | str = False
    ahead: Annotated[Sequence["Demand"], HERE] = ()  # of all generations, checked before training


@dataclass(frozen=True)
class Demand:
    """Data that a generation, of a split, or the evaluation, of a part, must have."""

    where: str
    split: PlainValues | None = None
    part: str = ""
    narrow: PlainValues | None = None


@dataclass(frozen=True, kw_only=True)
class TakenWork(WorkOnData[T]):
    """A published model taken in place of a training."""

    kind = "take"
    files: PlainValues
    facts: PlainValues
    folder: Annotated[str, HERE]
    address: Annotated[str, HERE]
    run: Annotated[PlainValues, HERE]  # of its training, wherever that was


@dataclass(frozen=True, kw_only=True)
class SideWork(TrainingWork[T]):
    """The side-information model of a generation."""

    kind = "side"
    module: str
    options: PlainValues
    other: Annotated[T | None, Role("other")] = None  # dataset of another domain


@dataclass(frozen=True, kw_only=True)
class UpdateWork(TrainingWork[T]):
    """A method's update, given the earlier generations, oldest first."""

    kind = "update"
    method: str
    config: PlainValues
    source: str  # fingerprint of the adapter
    old_head: str
    distance: str
    cosines: bool = False  # to rows of a softmax classifier, scaled by their number
    models: Annotated[tuple[T, ...], Role("model{}")] = ()
    features: Annotated[tuple[T, ...], Role("features{}")] = ()
    independent: Annotated[T | None, Role("independent")] = None
    independent_features: Annotated[T | None, Role("independent_features")] = None
    side: Annotated[T | None, Role("side")] = None
    side_model: Annotated[T | None, Role("side_model")] = None
    new_side: Annotated[T | None, Role("new_side")] = None
    new_side_model: Annotated[T | None, Role("new_side_model")] = None


@dataclass(frozen=True, kw_only=True)
class FirstWork(UpdateWork[T]):
    """A first generation that a method trains its own way."""

    kind = "first"


@dataclass(frozen=True, kw_only=True)
class EmbeddingWork(WorkOnData[T]):
    """Embeddings of an evaluation set, by name, or of the training images of a split."""

    kind = "embed"
    model: Annotated[T, Role("model")]
    part: str | PlainValues
    file: str  # of the model
    views: PlainValues | None = None
    mirrored: str = ""  # ``mean``: of an image and its mirror image


@dataclass(frozen=True, kw_only=True)
class EvaluationWork(StageWork[T]):
    """Scores of a chain of generations, on embeddings alone.

    Inputs have one place a generation; where a generation has none of a kind it is ``None``.
    """

    kind = "evaluate"
    part: str
    generations: Sequence[str]
    distance: str
    far: Sequence[float]
    fpir: Sequence[float]
    tasks: Sequence[str]
    side: PlainValues | None = None  # kind and bits of the side-information
    orders: Sequence[str] | None = None  # of backfilling
    seed: int | None = None  # of these
    narrow: PlainValues | None = None
    one_index: bool = False  # backfilled by a method whose vectors may be longer
    stored_means: bool = False  # an order takes means of a gallery that has not all queries
    where: Annotated[str, HERE] = ""
    drawn: Annotated[bool, HERE] = True  # a page draws vectors of this seed
    data: Annotated[T, Role("data")]
    vectors: Annotated[tuple[T, ...], Role("vectors{}")]
    images: Annotated[tuple[T, ...], Role("images{}")] = ()  # of a first one of text queries
    updates: Annotated[tuple[T | None, ...], Role("update{}")]
    direct: Annotated[Mapping[tuple[int, int], T], Role("direct{}-{}")]
    sides: Annotated[tuple[T | None, ...], Role("side{}")]
    head_new: Annotated[T | None, Role("head_new")] = None  # model whose classifier orders use
    head_old: Annotated[T | None, Role("head_old")] = None
