"""A graph of stages, named by what determines their output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from benchmark.config import registry
from benchmark.config.data_roots import Root, root_of
from benchmark.config.files import digest
from benchmark.config.reading import Model
from benchmark.config.recipes import ModelSpec
from benchmark.config.setup import Setup
from benchmark.harness.work import EvaluationWork, StageWork, TakenWork, UpdateWork
from benchmark.records.stage_titles import StageTitle

TRAINING = 5
"""Raised by whoever changes what a training, an embedding or a conversion gives: anything but an
adapter's own file, which names its stages itself. Records keep it."""
SCORING = 4
"""Raised by whoever changes what an evaluation gives."""
_OF_MAPS = ("transform_steps", "transform_batch")
"""Settings of a recipe that nothing but a map's training reads."""
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
    dataset = registry.check_options(track.dataset, track.data, f"track {track.id}: data")
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
        for name in _OF_MAPS:
            track.get("recipe", {}).pop(name, None)
    models = [plain_model(model) for model in setup.models]
    sources = [registry.method_file(name).fingerprint for name in (label, "independent")]
    return digest([
        protocol, track, models, source, label, setup.params(label), seed, first_seed, sources,
        TRAINING, SCORING, *(["one index"] if one_index(setup, label) else []),
    ])  # fmt: skip


def one_index(setup: Setup, label: str) -> bool:
    """Tell backfilling by a method whose vectors may be longer than those in the gallery.

    Earlier code scored it otherwise; the names of stages and records say so.
    """
    if "backfilling" not in setup.protocol.tasks:
        return False
    return registry.method_file(label).longer or len({m.dim for m in setup.models}) > 1


def plain(spec: Model) -> dict[str, Any]:
    """A specification as plain values, without what is at its default.

    A new field with a default then renames no earlier work; a default that changes is a change
    of ``TRAINING`` or ``SCORING``.
    """
    return spec.model_dump(mode="json", exclude_defaults=True)


def plain_model(spec: ModelSpec) -> dict[str, Any]:
    """As :func:`plain`; a file of weights is known by what it holds, wherever it lies."""
    values = plain(spec)
    if spec.known_weights != spec.weights:
        values["weights"] = spec.known_weights
        del values["weights_sha256"]
    return values
