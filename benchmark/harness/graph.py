"""A graph of stages, named by what determines their output; those of data and frozen features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from benchmark.config import registry
from benchmark.config.backbones import backbone_version
from benchmark.config.data_roots import Root, root_of
from benchmark.config.declarations import DatasetDeclaration
from benchmark.config.files import digest
from benchmark.config.reading import Model
from benchmark.config.recipes import OF_MAPS, PACKAGED, ModelSpec, Recipe, is_here
from benchmark.config.setup import Setup
from benchmark.config.tracks import Track
from benchmark.errors import BenchError
from benchmark.harness.work import (
    DataWork,
    EvaluationWork,
    FeatureWork,
    PlainValues,
    StageWork,
    TakenWork,
    UpdateWork,
)
from benchmark.records.stage_titles import StageTitle

TRAINING = 5
"""Raised by whoever changes what a training, an embedding or a conversion gives: anything but an
adapter's own file, which names its stages itself. Records keep it."""
SCORING = 4
"""Raised by whoever changes what an evaluation gives."""
# Fields of protocols and tracks that are for readers and move no score.
_WORDS = (
    "title", "source", "question", "scenario", "note", "kind", "subject", "needs_root", "extends",
    "apart",
)  # fmt: skip


Work_co = TypeVar("Work_co", bound=StageWork[Any], covariant=True)


@dataclass(frozen=True)
class StageOf(Generic[Work_co]):
    """One step of a plan: a plain function of its work, whose inputs are other stages."""

    about: StageTitle
    work: Work_co

    @cached_property
    def name(self) -> str:
        """``kind-hash``: equal for equal work."""
        inputs = {role: stage.name for role, stage in self.inputs.items()}
        version = SCORING if isinstance(self.work, EvaluationWork) else TRAINING
        return f"{self.kind}-{digest([self.kind, version, self.work.params(), inputs])}"

    @property
    def kind(self) -> str:
        """The kind of its work."""
        return self.work.kind

    @property
    def title(self) -> str:
        """For people, while it runs; records name it so."""
        return str(self.about)

    @property
    def words(self) -> str:
        """The title, and whether a published model stands in for what it says."""
        return f"{self.title}, published" if isinstance(self.work, TakenWork) else self.title

    @cached_property
    def inputs(self) -> dict[str, Stage]:
        """Stages that it needs, by role."""
        return self.work.inputs()

    def walk(self) -> Iterator[Stage]:
        """This stage after everything it needs; a stage may come more than once."""
        for stage in self.inputs.values():
            yield from stage.walk()
        yield self


Stage = StageOf[Any]
"""A stage of any kind of work."""
EvaluationStage = StageOf[EvaluationWork[Stage]]
UpdateStage = StageOf[UpdateWork[Stage]]


@dataclass(frozen=True)
class Result:
    """Outcome of a plan for one method and one seed."""

    label: str  # bct or bct:distill
    seed: int
    first_seed: int  # of the first generation
    key: str  # hash of everything that determines the record
    config: Mapping[str, Any]  # the method's parameters
    evaluation: EvaluationStage | None  # None where the method is not applicable
    bound: EvaluationStage  # the independent model's evaluation
    upper: EvaluationStage | None = None  # of the model trained on all data, if it is needed
    reason: str | None = None  # why the method is not applicable
    updates: tuple[UpdateStage, ...] = ()  # the method's own

    @property
    def stages(self) -> list[Stage]:
        """Stages of the bound and of the evaluation, each once, after its inputs."""
        return unique_stages(self.bound, self.evaluation)


@dataclass(frozen=True)
class Plan:
    """All results and, in an order that respects what needs what, all stages."""

    setup: Setup
    results: tuple[Result, ...]

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Each stage once, after its inputs."""
        ends = [end for r in self.results for end in (r.bound, r.upper, r.evaluation)]
        return tuple(unique_stages(*ends))


def unique_stages(*ends: Stage | None) -> list[Stage]:
    """The stages that some stages come to, each once, after its inputs."""
    seen: dict[str, Stage] = {}
    for end in ends:
        for stage in end.walk() if end is not None else ():
            seen.setdefault(stage.name, stage)
    return list(seen.values())


def data_source(setup: Setup, data_root: Root) -> Mapping[str, Any]:
    """Facts that determine the data; without them those declared, for plans that are only read."""
    track = setup.track
    if track.needs_root and data_root is None:
        return {"declared": dict(track.facts)}
    dataset = _dataset(setup)
    return dataset.source(root_of(dataset, track.dataset, data_root))


def record_key(
    setup: Setup, source: Mapping[str, Any], label: str, seed: int, first_seed: int | None
) -> str:
    """Hash of everything that determines a record; imports no method and no torch."""
    protocol, track = plain(setup.protocol), plain(setup.track)
    for value in (protocol, track):
        for words in _WORDS:
            value.pop(words, None)
    track.pop("facts", None)
    # What other protocols need of the track renames no work; the models used stand below.
    track["models"] = {name: plain_model(setup.track.models[name]) for name in ("old", "new")}
    track.pop("protocols", None)
    groups = track.pop("groups", {})
    if any(setup.protocol.roles):
        track["groups"] = {role: groups[role] for _, role in setup.protocol.roles}
    if not registry.method_file(label).trains_map:
        for name in OF_MAPS:
            track.get("recipe", {}).pop(name, None)
    models = [plain_model(model) for model in setup.models]
    sources = [registry.method_file(name).fingerprint for name in (label, "independent")]
    return digest([
        protocol, track, models, source, label, setup.params(label), seed, first_seed, sources,
        TRAINING, SCORING, *(["one index"] if one_index(setup, label) else []),
        *(["stored means"] if stored_means(setup) else []),
        *(["cosines"] if any(cosines_of_softmax(m, label) for m in setup.models[1:]) else []),
        *(["captions"] if learns_captions(setup) and may_read_classifier(label) else []),
    ])  # fmt: skip


def learns_captions(setup: Setup) -> bool:
    """Tell a first generation whose queries are captions, of which its classifier is made.

    Earlier code made it of the classes' names; the names of stages and records say so.
    """
    return setup.protocol.generations[0].queries == "texts" and _dataset(setup).captioned


def cosines_of_softmax(model: ModelSpec, label: str) -> bool:
    """Tell a method that may compare by cosines beside a new classifier that has no scale.

    Earlier code took that of margin heads; the names of stages and records say so.
    """
    return model.head == "softmax" and may_read_classifier(label)


def may_read_classifier(label: str) -> bool:
    """Tell a method that may read the old classifier, or the scale of the new one's logits."""
    return registry.method_file(label).reads_scale


def one_index(setup: Setup, label: str) -> bool:
    """Tell backfilling by a method whose vectors may be longer than those in the gallery.

    Earlier code scored it otherwise; the names of stages and records say so.
    """
    if "backfilling" not in setup.protocol.tasks:
        return False
    return registry.method_file(label).longer or len({m.dim for m in setup.models}) > 1


def stored_means(setup: Setup) -> bool:
    """Tell an order by means of classes in a gallery that has not all queries.

    Earlier code took the queries into the means; the names of stages and records say so.
    """
    return "class-distance" in setup.protocol.orders and not _dataset(setup).stores_queries


def _dataset(setup: Setup) -> DatasetDeclaration:
    """The declaration of a track's dataset, with its options."""
    track = setup.track
    return registry.check_options(track.dataset, track.data, f"track {track.id}: data")


def plain(spec: Model) -> dict[str, Any]:
    """A specification as plain values, without what is at its default.

    A new field with a default then renames no earlier work; a default that changes is a change
    of ``TRAINING`` or ``SCORING``.
    """
    return spec.model_dump(mode="json", exclude_defaults=True)


def plain_model(spec: ModelSpec) -> dict[str, Any]:
    """As :func:`plain`; what comes from elsewhere is known by what it holds: weights, a package."""
    values = plain(spec)
    if spec.known_weights != spec.weights:
        values["weights"] = spec.known_weights
        del values["weights_sha256"]
    version = backbone_version(spec.backbone)
    return values | {"package": version} if version else values


def frozen_views(setup: Setup, data: Stage, n: int) -> tuple[tuple[Stage, ...], ...]:
    """Features of every view by the frozen backbones of the first ``n`` generations."""
    parts = {spec.features_key: spec for spec in setup.models[:n] if spec.frozen}
    recipe = setup.track.recipe
    return tuple(
        tuple(_features(spec, data, recipe, view) for view in range(recipe.stored_views))
        for spec in parts.values()
    )


def _features(spec: ModelSpec, data: Stage, recipe: Recipe, view: int) -> Stage:
    """Features of all images, or of the training images in one more view."""
    work = FeatureWork[Stage](
        data=data, spec=spec.frozen_part, resampling="bilinear", precision="float16", view=view,
        augment=plain(recipe.augment) if view else None, weights=place_of(spec),
    )  # fmt: skip
    return Stage(StageTitle("features", f"by {spec.backbone}{f', view {view}' * bool(view)}"), work)


def place_of(spec: ModelSpec) -> str | None:
    """Place of weights that are known by what they hold."""
    if spec.weights is None or not is_here(spec.weights):
        return None
    packed = spec.weights.startswith(PACKAGED)
    return spec.weights if packed else str(Path(spec.weights).absolute())


def other_domain(track: Track, root: Root) -> Stage:
    """The dataset of another domain: a built-in one, or one with a folder of its own."""
    options = dict(track.other_domain)
    name = options.pop("dataset", None)
    if name is None:
        raise BenchError("track: other_domain: missing key 'dataset'")
    dataset = registry.check_options(str(name), options, "track: other_domain")
    place = None
    if dataset.needs_root and root is not None:
        place = root.get(str(name)) if isinstance(root, Mapping) else None
        if place is None:
            raise BenchError(
                f"side-information from another domain: expected --data-root "
                f"{track.dataset}=DIR,{name}=DIR, got no folder of {name}"
            )
    known = place is not None or not dataset.needs_root
    source = dataset.source(place) if known else {"declared": True}
    return data_stage(str(name), options, source, place, ", another domain")


def data_stage(
    name: str, options: PlainValues, source: PlainValues, root: Root, more: str = ""
) -> Stage:
    """A dataset; ``more`` stands behind its name in the title."""
    work = DataWork[Stage](dataset=name, options=dict(options), source=source, data_root=root)
    return Stage(StageTitle("dataset", name + more), work)
