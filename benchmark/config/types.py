"""Protocols and tracks: frozen dataclasses, read strictly from the YAML files in ``protocols/``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmark.config.checks import each_once, fractions, named, positive_version
from benchmark.config.overlap import overlap
from benchmark.errors import nearest

BACKBONES = "convnet-, plain-, mobilenet- or vit-<width>[x<depth>], or timm:<name>"
OWN_BACKBONE = re.compile(r"(convnet|plain|mobilenet|vit)-([1-9]\d*)(?:x([1-9]\d*))?")
"""Family, width, and depth: blocks a stage, or layers of a transformer."""
OWNERS = ("recipe", "recipe.augment", "data", "track", "protocol", "evaluation")
"""What ``--set`` changes beside generations and methods."""
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
        relu: Does a ReLU end the embedding (BCT Table 3)?
        triplet: Weight of a batch-hard triplet loss beside the classifier's (Hermans et al., 2017);
            the model then ends in a BNNeck (Luo et al., 2019).
        per_class: Images of a class in a batch, as triplets need; 0 draws images alike.
        recipe: What its training changes of the track's recipe: a transformer wants another
            optimiser than a convolutional network (BT2 section 4.4).
    """

    backbone: str
    dim: int
    head: Literal["softmax", "norm-softmax", "cosface", "arcface"] = "softmax"
    scale: float = 64.0
    margin: float = 0.5
    relu: bool = False
    triplet: float = 0.0
    per_class: int = 0
    recipe: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.dim < 1:
            raise ValueError(f"dim: expected at least 1, got {self.dim}")
        # timm's own names are checked when timm is loaded, which takes seconds.
        if not (OWN_BACKBONE.fullmatch(self.backbone) or re.fullmatch("timm:.+", self.backbone)):
            raise ValueError(f"backbone: expected {BACKBONES}, got '{self.backbone}'")
        if self.triplet < 0:
            raise ValueError(f"triplet: expected 0 or more, got {self.triplet:g}")
        if self.per_class < 0 or (self.triplet and self.per_class < 2):
            least = "at least 2 beside triplet" if self.triplet else "0 or more"
            raise ValueError(f"per_class: expected {least}, got {self.per_class}")


@dataclass(frozen=True)
class Augment:
    """Random changes of a training batch, each drawn anew for each image.

    Attributes:
        rotate: Largest rotation, degrees.
        scale: Largest relative change of size.
        crop: Smallest share of the area that a random crop shows, enlarged; 0 crops nothing.
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
    crop: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.crop <= 1.0:
            raise ValueError(f"crop: expected 0 to 1, got {self.crop:g}")


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


Interval = tuple[float, float]


@dataclass(frozen=True)
class GenerationSpec:
    """One generation of a protocol: its share of the training data and its model.

    Attributes:
        name: Its name in cases (``old``, ``new``) and in ``--set old.head=...``.
        classes: Interval of the classes, as fractions.
        images: Interval of the images of each class, as fractions.
        model: Which of the track's models; by default ``old`` for the first, else ``new``.
        groups: Only classes of these of the track's groups; fractions count within them.
        thinned: One of the track's groups -> the share of its classes that stays.
        queries: What it is asked with. With ``texts`` it is a text and an image encoder that are
            trained as one; methods see the embeddings of the images' texts (BT2 4.7).
    """

    name: str
    classes: Interval = (0.0, 1.0)
    images: Interval = (0.0, 1.0)
    model: str | None = None
    groups: tuple[str, ...] = ()
    thinned: Mapping[str, float] = field(default_factory=dict)
    queries: Literal["images", "texts"] = "images"

    def __post_init__(self) -> None:
        named(self.name)
        if self.name in OWNERS:
            raise ValueError(f"name: '{self.name}' is what --set calls something else")
        for key in ("classes", "images"):
            fractions(f"generation '{self.name}': {key}", getattr(self, key))
        each_once(f"generation '{self.name}': groups", self.groups)
        for group, share in self.thinned.items():
            if not 0.0 < share <= 1.0:
                where = f"generation '{self.name}': thinned.{group}"
                raise ValueError(f"{where}: expected 0 < share <= 1, got {share:g}")

    @property
    def roles(self) -> set[str]:
        """Groups of the track that it names."""
        return {*self.groups, *self.thinned}


@dataclass(frozen=True)
class EvaluationSpec:
    """What judges: which of the dataset's items ask and are stored, and how they are grouped.

    Attributes:
        part: One of the dataset's evaluation sets; by default the track's.
        classes: Only items of this interval of the training classes, as fractions.
        groups: Only items of these of the track's groups.
        ranges: Items are grouped by this many ranges of the training classes (FCT C); 0: by the
            dataset's groups.
        against: Items of this one of the track's groups make one group, all others another.
    """

    part: str | None = None
    classes: Interval = (0.0, 1.0)
    groups: tuple[str, ...] = ()
    ranges: int = 0
    against: str | None = None

    def __post_init__(self) -> None:
        fractions("evaluation: classes", self.classes)
        each_once("evaluation: groups", self.groups)
        if self.ranges < 0 or self.ranges == 1:
            raise ValueError(f"evaluation: ranges: expected 0 or at least 2, got {self.ranges}")
        if self.ranges and self.against is not None:
            raise ValueError("evaluation: expected ranges or against, got both")

    @property
    def roles(self) -> set[str]:
        """Groups of the track that it names."""
        return {*self.groups, *([self.against] if self.against is not None else [])}


@dataclass(frozen=True)
class Setting:
    """A row group of a protocol's table: the protocol with some fields changed.

    Attributes:
        name: Its name: ``--protocol arch-change:deeper`` runs it alone.
        title: In words; by default its name.
        set: What it changes, in the words of ``--set``: ``{old.head: softmax, new.dim: x2}``.
    """

    name: str
    title: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        named(self.name)


@dataclass(frozen=True)
class Protocol:
    """Who sees which data, how many generations, and which tasks judge the result.

    Attributes:
        old_head: May a method see the old classifier?
        order: Classes count in a seeded order, or in the dataset's own (never that of names as
            text, where 10 is before 9).
        image_order: Images of a class count in a seeded order, or in the dataset's own.
        upper: Which training data the upper bound of the update gain sees: the new
            generation's (BCT), or all generations' together (MixBCT 4.1).
        split_seed: Seed of the order; part of the protocol, not of a run.
        apart: No two generations may share an image; a check, which moves no score.
        direct: Are galleries also converted in one step over several generations (FCT 4.4)?
        orders: In which orders the task ``backfilling`` refills the gallery; names of
            ``benchmark.metrics.backfill_orders``.
        evaluation: What judges.
        set: Changes in the words of ``--set``, of a setting.
        settings: Row groups of the table, each the protocol with some fields changed.
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
    image_order: Literal["seeded", "dataset"] = "seeded"
    upper: Literal["new", "all"] = "new"
    split_seed: int = 0
    apart: bool = False
    direct: bool = False
    orders: tuple[str, ...] = ("random", "priority", "entropy", "true-l2")
    evaluation: EvaluationSpec = field(default_factory=EvaluationSpec)
    set: Mapping[str, Any] = field(default_factory=dict)
    settings: tuple[Setting, ...] = ()

    def __post_init__(self) -> None:
        positive_version(self.version)
        for key in ("title", "source", "question"):
            if not getattr(self, key).strip():
                raise ValueError(f"{key}: expected a few words, got none")
        names = [g.name for g in self.generations]
        if len(names) < 2:
            raise ValueError(f"generations: expected at least 2, got {len(names)}")
        each_once("generations", names)
        each_once("settings", [s.name for s in self.settings])
        each_once("tasks", self.tasks)
        each_once("orders", self.orders)
        if len(self.settings) == 1:
            raise ValueError("settings: expected at least 2, got 1")
        if not self.tasks:
            raise ValueError("tasks: expected at least one")
        if "backfilling" in self.tasks:
            if not {"retrieval", "identification"} & {*self.tasks}:
                raise ValueError("tasks: expected retrieval or identification beside backfilling")
            self._check_orders()
        # On a track, whose groups may share members, it is looked at again.
        found = overlap(self.generations, tuple) if self.apart else None
        if found is not None:
            raise ValueError(f"generations: {found}")
        self._check_texts()

    def _check_orders(self) -> None:
        from benchmark.metrics.backfill_orders import ORDERS

        if not self.orders:
            raise ValueError("orders: expected at least one for backfilling")
        for name in self.orders:
            if name not in ORDERS:
                raise ValueError(f"orders: unknown order '{name}'{nearest(name, ORDERS)}")

    def _check_texts(self) -> None:
        texts = [g.name for g in self.generations if g.queries == "texts"]
        if texts and (texts != [self.generations[0].name] or len(self.generations) > 2):
            raise ValueError(
                "generations: expected texts to ask the first of two generations only, got "
                f"{', '.join(texts)}"
            )
        if bool(texts) != ("text_retrieval" in self.tasks):
            raise ValueError(
                "tasks: expected text_retrieval where the first generation's queries are texts, "
                f"and only there, got {', '.join(self.tasks)}"
            )
        if texts and "backfilling" in self.tasks:
            # The old vectors that it would refill are those of texts, which nobody stores.
            raise ValueError(
                f"tasks: expected no backfilling where '{texts[0]}' is asked with texts, for it "
                f"asks with images, got {', '.join(self.tasks)}"
            )

    @property
    def family(self) -> str:
        """The id without the setting."""
        return self.id.partition(":")[0]

    @property
    def roles(self) -> Iterator[tuple[str, str]]:
        """Every group of the track that is named, and where."""
        for i, generation in enumerate(self.generations):
            for role in sorted(generation.roles):
                yield f"generations[{i}]", role
        for role in sorted(self.evaluation.roles):
            yield "evaluation", role


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
        groups: Name -> groups of the dataset; protocols ask for them by these names.
        protocols: Protocol -> what it changes on this track, in the words of ``--set``: Places has
            182 old classes of 365, VGGFace2 863 of 8,631.
        needs_root: Must ``--data-root`` be given?
        facts: What is known of the data without having it: ``train_classes``, ``train_images``,
            ``test_images``.
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
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    protocols: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    needs_root: bool = False
    facts: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    extends: str | None = None

    def __post_init__(self) -> None:
        positive_version(self.version)
        for name in ("old", "new"):
            if name not in self.models:
                raise ValueError(f"models: missing '{name}'")
        for name, members in self.groups.items():
            if not members:
                raise ValueError(f"groups.{name}: expected at least one group of the dataset")
            each_once(f"groups.{name}", members)
        for name in ("far", "fpir"):
            each_once(name, getattr(self, name))
