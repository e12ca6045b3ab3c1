"""Protocols and tracks: frozen dataclasses, read strictly from the YAML files in ``protocols/``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmark.config import build
from benchmark.errors import BenchError, nearest

BACKBONES = "convnet-<width> or timm:<name>"
HEADS = ("softmax", "norm-softmax", "cosface", "arcface")


@dataclass(frozen=True)
class ModelSpec:
    """What an embedding model and its classifier are made of.

    Attributes:
        backbone: A name of ``benchmark.models.backbones``, or ``timm:<name>``.
        dim: Embedding dimension.
        head: Classifier and loss.
        scale: Logit scale of the normalised heads.
        margin: Margin of cosface and arcface.
    """

    backbone: str
    dim: int
    head: Literal["softmax", "norm-softmax", "cosface", "arcface"] = "softmax"
    scale: float = 64.0
    margin: float = 0.5

    def __post_init__(self) -> None:
        if self.dim < 1:
            raise ValueError(f"dim: expected at least 1, got {self.dim}")
        # timm's own names are checked when timm is loaded, which takes seconds.
        if not re.fullmatch(r"convnet-[1-9]\d*|timm:.+", self.backbone):
            raise ValueError(f"backbone: expected {BACKBONES}, got '{self.backbone}'")


@dataclass(frozen=True)
class Augment:
    """Random changes of a training batch, each drawn anew for each image.

    Attributes:
        rotate: Largest rotation, degrees.
        scale: Largest relative change of size.
        shift: Largest shift, as a fraction of the side.
        contrast: Largest relative change of contrast.
        brightness: Largest change of brightness, as a fraction of the range.
        flip: Mirror left and right half of the time.
    """

    rotate: float = 0.0
    scale: float = 0.0
    shift: float = 0.0
    contrast: float = 0.0
    brightness: float = 0.0
    flip: bool = False


@dataclass(frozen=True)
class Recipe:
    """How everything on a track is trained: the same for every method.

    Attributes:
        epochs: Passes over the training data of a generation.
        batch_size: Images a step, over all devices.
        transform_steps: Steps of a learned conversion on cached embeddings.
        transform_batch: Pairs a step of a learned conversion.
        side_epochs: Passes of a side-information model.
        warmup: Share of the steps in which the learning rate rises linearly from 0.
        precision: As Lightning Fabric names it; used for training, embeddings are float32.
            ``bf16-mixed`` is ``32-true`` on a CPU without bfloat16 instructions, where it would be
            slower; records say what was used.
    """

    epochs: int
    batch_size: int = 256
    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup: float = 0.0
    label_smoothing: float = 0.0
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
    transform_steps: int = 600
    transform_batch: int = 256
    side_epochs: int = 20
    augment: Augment = field(default_factory=Augment)

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "transform_steps", "transform_batch", "side_epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if not 0.0 <= self.warmup < 1.0:
            raise ValueError(f"warmup: expected 0 <= warmup < 1, got {self.warmup}")


@dataclass(frozen=True)
class GenerationSpec:
    """One generation of a protocol: its share of the training data and its model.

    Attributes:
        name: Its name in cases (``old``, ``new``) and in ``--set old.head=...``.
        classes: Interval of the classes, as fractions.
        images: Interval of the images of each class, as fractions.
        model: Which of the track's models; by default ``old`` for the first, else ``new``.
    """

    name: str
    classes: tuple[float, float] = (0.0, 1.0)
    images: tuple[float, float] = (0.0, 1.0)
    model: str | None = None

    def __post_init__(self) -> None:
        for key in ("classes", "images"):
            low, high = getattr(self, key)
            if not 0.0 <= low < high <= 1.0:
                raise ValueError(
                    f"generation '{self.name}': {key}: expected 0 <= low < high <= 1, "
                    f"got [{low}, {high}]"
                )


@dataclass(frozen=True)
class Protocol:
    """Who sees which data, how many generations, and which tasks judge the result.

    Attributes:
        old_head: May a method see the old classifier?
        order: Fractions count in a seeded order, or in the dataset's own.
        upper: Which training data the upper bound of the update gain sees: the new
            generation's (BCT), or all generations' together (MixBCT 4.1).
        split_seed: Seed of the order; part of the protocol, not of a run.
        direct: Are galleries also converted in one step over several generations (FCT 4.4)?
        orders: In which orders the task ``backfilling`` refills the gallery; names of
            ``benchmark.orders``.
    """

    id: str
    version: int
    title: str
    source: str
    question: str
    generations: tuple[GenerationSpec, ...]
    tasks: tuple[str, ...]
    old_head: Literal["kept", "discarded"] = "kept"
    order: Literal["seeded", "dataset"] = "seeded"
    upper: Literal["new", "all"] = "new"
    split_seed: int = 0
    direct: bool = False
    orders: tuple[str, ...] = ("random", "priority", "entropy", "true-l2")

    def __post_init__(self) -> None:
        names = [g.name for g in self.generations]
        if len(names) < 2:
            raise ValueError(f"generations: expected at least 2, got {len(names)}")
        if len(set(names)) < len(names):
            raise ValueError(f"generations: names must differ, got {', '.join(names)}")
        if not self.tasks:
            raise ValueError("tasks: expected at least one")
        if set(self.tasks) == {"backfilling"}:
            raise ValueError("tasks: expected retrieval beside backfilling, whose ends it scores")
        if "backfilling" in self.tasks:
            self._check_orders()

    def _check_orders(self) -> None:
        from benchmark.orders import ORDERS

        if not self.orders:
            raise ValueError("orders: expected at least one for backfilling")
        for name in self.orders:
            if name not in ORDERS:
                raise ValueError(f"orders: unknown order '{name}'{nearest(name, ORDERS)}")


@dataclass(frozen=True)
class Track:
    """The concrete setting a protocol runs on.

    Attributes:
        dataset: A module of ``benchmark.data`` with a ``load``.
        data: Options of its ``load``.
        models: ``old`` and ``new``, and any other that a protocol names.
        distance: How embeddings are compared.
        far: False accept rates of 1:1 verification.
        fpir: False positive identification rates of 1:N identification.
        evaluation: Which of the dataset's evaluation sets judges: ``test``, or ``seen`` (other
            images of training classes).
        other_domain: A dataset that comes with the package, and options of its ``load``: where
            side-information from another domain is learned.
        needs_root: Must ``--data-root`` be given?
        extends: A track that this one changes; keys given here win.
    """

    id: str
    version: int
    title: str
    dataset: str
    models: Mapping[str, ModelSpec]
    recipe: Recipe
    data: Mapping[str, Any] = field(default_factory=dict)
    distance: Literal["cosine", "l2"] = "cosine"
    far: tuple[float, ...] = (1e-4, 1e-3, 1e-2)
    fpir: tuple[float, ...] = (1e-2, 1e-1)
    evaluation: str = "test"
    other_domain: Mapping[str, Any] = field(
        default_factory=lambda: {"dataset": "toy", "classes": 400, "images": 24, "size": 32}
    )
    needs_root: bool = False
    note: str = ""
    extends: str | None = None

    def __post_init__(self) -> None:
        for name in ("old", "new"):
            if name not in self.models:
                raise ValueError(f"models: missing '{name}'")


@dataclass(frozen=True)
class Setup:
    """A protocol on a track with this run's changes.

    Attributes:
        models: The model of each generation, in order.
        methods: Parameters changed for a method id or ``id:variant``.
        changed: The changes as given; empty for the unmodified track.
    """

    protocol: Protocol
    track: Track
    models: tuple[ModelSpec, ...]
    methods: Mapping[str, Mapping[str, Any]]
    changed: Mapping[str, Any]

    def params(self, method: str) -> dict[str, Any]:
        """Changed parameters of ``bct`` or ``bct:distill``.

        Those of the id give way to the variant's own values, those of ``id:variant`` do not.
        """
        base, _, variant = method.partition(":")
        changed = dict(self.methods.get(base, {}))
        if variant and changed:
            from benchmark.registry import method_class

            own = method_class(base).variants.get(variant, {})
            changed = {name: value for name, value in changed.items() if name not in own}
        return {**changed, **self.methods.get(method, {})}


def set_up(
    protocol: Protocol, track: Track, settings: Mapping[str, Any], methods: list[str]
) -> Setup:
    """Apply ``--set`` changes: ``old.head``, ``recipe.epochs``, ``data.strength``, ``bct.weight``.

    Raises:
        BenchError: If a key names nothing, or a value does not fit.
    """
    specs: dict[str, ModelSpec] = {}
    for i, g in enumerate(protocol.generations):
        name = g.model or ("old" if i == 0 else "new")
        if name not in track.models:
            known = nearest(name, track.models)
            raise BenchError(
                f"protocol {protocol.id}: track {track.id} has no model '{name}'{known}"
            )
        specs[g.name] = track.models[name]
    owners = {m.partition(":")[0] for m in methods} | set(methods)
    chosen: dict[str, dict[str, Any]] = {}
    for key, value in settings.items():
        owner, dot, name = key.rpartition(".")
        where = f"--set {key}"
        if not dot:
            raise BenchError(f"{where}: expected owner.field, such as old.head or recipe.epochs")
        if owner in specs:
            specs[owner] = _change(specs[owner], name, value, where)
        elif owner in ("recipe", "recipe.augment"):
            track = dataclasses.replace(
                track, recipe=_recipe(track.recipe, owner, name, value, where)
            )
        elif owner == "data":
            track = dataclasses.replace(track, data={**track.data, name: value})
        elif owner == "track":
            track = _change(track, name, value, where)
        elif owner == "protocol":
            protocol = _change(protocol, name, value, where)
        elif owner in owners:
            chosen.setdefault(owner, {})[name] = value
        else:
            owners_known = {
                *specs,
                "recipe",
                "recipe.augment",
                "data",
                "track",
                "protocol",
                *owners,
            }
            raise BenchError(f"{where}: unknown owner '{owner}'{nearest(owner, owners_known)}")
    return Setup(protocol, track, tuple(specs.values()), chosen, dict(settings))


def _recipe(recipe: Recipe, owner: str, name: str, value: Any, where: str) -> Recipe:
    if owner == "recipe":
        return _change(recipe, name, value, where)
    return dataclasses.replace(recipe, augment=_change(recipe.augment, name, value, where))


def _change(obj: Any, name: str, value: Any, where: str) -> Any:
    known = {f.name: getattr(obj, f.name) for f in dataclasses.fields(obj)}
    if name not in known:
        raise BenchError(f"{where}: unknown key '{name}'{nearest(name, known)}")
    return build(type(obj), {**known, name: value}, where)
