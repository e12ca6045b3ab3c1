"""(protocol, track, methods, seeds) -> a graph of stages, named by what determines their output."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmark import registry
from benchmark.errors import BenchError
from benchmark.protocol import Recipe, Setup
from benchmark.seeds import derive
from benchmark.store import digest

TRAINING = 1
"""Raised by whoever changes what a training, an embedding or a conversion gives."""
SCORING = 1
"""Raised by whoever changes what an evaluation gives."""

_NOT_EMBEDDING = ("transform_steps", "transform_batch", "side_epochs")


@dataclass(frozen=True)
class Stage:
    """One step of a plan: a plain function of its parameters and the outputs of its inputs.

    Attributes:
        kind: A function of :mod:`benchmark.stages`.
        title: What a person reads while it runs.
        params: JSON-able values that determine the output, with the inputs.
        inputs: Stages that come before, by role.
        local: Values that do not change the output, such as where the data lies.
    """

    kind: str
    title: str
    params: Mapping[str, Any]
    inputs: Mapping[str, Stage] = field(default_factory=dict)
    local: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        """``kind-hash``: equal for equal work."""
        inputs = {role: stage.name for role, stage in self.inputs.items()}
        version = SCORING if self.kind == "evaluate" else TRAINING
        return f"{self.kind}-{digest([self.kind, version, self.params, inputs])}"

    def walk(self) -> Iterator[Stage]:
        """This stage after everything it needs; a stage may come more than once."""
        for stage in self.inputs.values():
            yield from stage.walk()
        yield self


@dataclass(frozen=True)
class Result:
    """What a plan gives for one method and one seed.

    Attributes:
        label: ``bct`` or ``bct:distill``.
        seed: Seed of the run.
        key: Hash of everything that determines the record.
        config: The method's parameters.
        evaluation: The stage with its scores; ``None`` where it cannot be applied.
        bound: The independent model's evaluation.
        upper: The evaluation of the model trained on all data together, if asked for.
        reason: Why it cannot be applied.
        updates: The method's own update stages.
    """

    label: str
    seed: int
    key: str
    config: Mapping[str, Any]
    evaluation: Stage | None
    bound: Stage
    upper: Stage | None = None
    reason: str | None = None
    updates: tuple[Stage, ...] = ()


@dataclass(frozen=True)
class Plan:
    """All results and, in an order that respects what needs what, all stages."""

    setup: Setup
    results: tuple[Result, ...]

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Each stage once, after its inputs."""
        seen: dict[str, Stage] = {}
        for result in self.results:
            for target in (result.bound, result.upper, result.evaluation):
                for stage in target.walk() if target is not None else ():
                    seen.setdefault(stage.name, stage)
        return tuple(seen.values())


def record_key(
    setup: Setup, source: Mapping[str, Any], label: str, seed: int, first_seed: int | None
) -> str:
    """Hash of everything that determines a record; imports no method and no torch."""
    protocol, track = _plain(setup.protocol), _plain(setup.track)
    for value in (protocol, track):
        for words in ("title", "source", "question", "note", "needs_root", "extends"):
            value.pop(words, None)
    sources = [_source(label), _source("independent")]
    return digest(
        [
            protocol,
            track,
            _plain(setup.models),
            source,
            label,
            setup.params(label),
            seed,
            first_seed,
            sources,
            TRAINING,
            SCORING,
        ]
    )


def make_plan(
    setup: Setup,
    labels: list[str],
    seeds: list[int],
    *,
    data_root: Path | None = None,
    first_seed: int | None = None,
) -> Plan:
    """Lay out the stages of some methods and seeds.

    Args:
        setup: Protocol and track.
        labels: Methods, ``bct`` or ``bct:distill``; ``independent`` is always among the results.
        seeds: Seeds; each drives all generations.
        data_root: Where the dataset lies, if it is not built in.
        first_seed: Seed of the first generation, if it shall differ (BT2 appendix E).

    Raises:
        BenchError: On an unknown name or parameter, or a dataset that is not there.
    """
    for spec in setup.models:
        if spec.backbone.startswith("timm:"):
            from benchmark.models.backbones import check_backbone

            check_backbone(spec.backbone)
    module = registry.dataset(setup.track.dataset)
    source = module.source(data_root, **setup.track.data)
    data = Stage(
        "data",
        f"dataset {setup.track.dataset}",
        {"dataset": setup.track.dataset, "options": dict(setup.track.data), "source": source},
        local={"data_root": None if data_root is None else str(data_root)},
    )
    results = []
    for seed in seeds:
        run = _Run(setup, data, seed, first_seed)
        for label in dict.fromkeys(["independent", *labels]):
            key = record_key(setup, source, label, seed, first_seed)
            results.append(run.result(label, key))
    return Plan(setup, tuple(results))


class _Run:
    """The stages of one seed."""

    def __init__(self, setup: Setup, data: Stage, seed: int, first_seed: int | None) -> None:
        self.setup, self.data, self.seed = setup, data, seed
        self.first_seed = seed if first_seed is None else first_seed
        self.n = len(setup.protocol.generations)
        self.bound = self._evaluate("independent", *self._updates("independent"))

    def result(self, label: str, key: str) -> Result:
        """The stages of one method, or the reason why it has none."""
        method = registry.method(label, self.setup.params(label))
        config = dataclasses.asdict(method)
        upper = self._upper() if self.setup.protocol.upper == "all" else None
        bare = Result(label, self.seed, key, config, None, self.bound, upper)
        reason = self._refusal(method)
        if reason is not None:
            return dataclasses.replace(bare, reason=reason)
        if label == "independent":
            return dataclasses.replace(bare, evaluation=self.bound)
        chain, updates = self._updates(label)
        evaluation = self._evaluate(label, chain, updates)
        return dataclasses.replace(bare, evaluation=evaluation, updates=tuple(updates))

    def _refusal(self, method: Any) -> str | None:
        """Why a method cannot be applied here."""
        protocol, models = self.setup.protocol, self.setup.models
        if "old_head" in method.needs and protocol.old_head == "discarded":
            return f"needs the old classifier, which protocol {protocol.id} discards"
        found = (method.refuses(old, new) for old, new in itertools.pairwise(models))
        return next((reason for reason in found if reason is not None), None)

    def split(self, i: int) -> dict[str, Any]:
        """Which training images generation ``i`` sees."""
        protocol, g = self.setup.protocol, self.setup.protocol.generations[i]
        return {
            "classes": g.classes, "images": g.images, "order": protocol.order,
            "seed": protocol.split_seed,
        }  # fmt: skip

    def train(self, i: int, splits: list[dict[str, Any]] | None = None, what: str = "") -> Stage:
        """Generation ``i`` trained alone."""
        seed = self.first_seed if i == 0 else self.seed
        name = self.setup.protocol.generations[i].name
        return Stage(
            "train",
            f"train {what or ('independent ' if i else '') + name} model (seed {seed})",
            {
                "spec": _plain(self.setup.models[i]),
                "recipe": _embedding_recipe(self.setup.track.recipe),
                "splits": splits or [self.split(i)],
                "seed": derive(seed, "generation", i),
            },
            {"data": self.data},
        )

    def embed(
        self, model: Stage, part: str | dict[str, Any], what: str, file: str = "model"
    ) -> Stage:
        """Embeddings of the test items, or of a generation's training images."""
        of = part if isinstance(part, str) else "training"
        return Stage(
            "embed", f"embed {of} images: {what}", {"part": part, "file": file},
            {"data": self.data, "model": model},
        )  # fmt: skip

    def side(self, kind: str) -> Stage:
        """A side-information model, trained with generation 1 (FCT 3.4)."""
        recipe = _embedding_recipe(self.setup.track.recipe)
        recipe["epochs"] = self.setup.track.recipe.side_epochs
        return Stage(
            "side",
            f"train side-information {kind} (seed {self.first_seed})",
            {
                "kind": kind,
                "spec": _plain(self.setup.models[0]),
                "recipe": recipe,
                "splits": [self.split(0)],
                "seed": derive(self.first_seed, "side", kind),
            },
            {"data": self.data},
        )

    def _updates(self, label: str) -> tuple[list[Stage], list[Stage]]:
        """Models of the chain under a method, oldest first, and its update stages."""
        method = registry.method(label, self.setup.params(label))
        chain = [self._first(label, method)]
        updates: list[Stage] = []
        for i in range(1, self.n):
            update = self._update(label, method, chain, updates, i)
            updates.append(update)
            chain.append(update if method.own_model else self.train(i))
        return chain, updates

    def _first(self, label: str, method: Any) -> Stage:
        if not method.own_first:
            return self.train(0)
        return self._method_stage("first", label, method, 0, {"data": self.data})

    def _update(
        self, label: str, method: Any, chain: list[Stage], updates: list[Stage], i: int
    ) -> Stage:
        training = self.split(i)
        inputs = {"data": self.data}
        for j, model in enumerate(chain):
            name = self.setup.protocol.generations[j].name
            inputs[f"model{j}"] = model
            inputs[f"features{j}"] = self.embed(model, training, name)
        if "independent" in method.needs:
            inputs["independent"] = self.train(i)
            inputs["independent_features"] = self.embed(self.train(i), training, "independent")
        for kind in _sides(method):
            inputs["side"] = self.embed(self.side(kind), training, kind)
        for k, earlier in enumerate(updates):
            inputs[f"update{k + 1}"] = earlier
        return self._method_stage("update", label, method, i, inputs)

    def _method_stage(
        self, kind: str, label: str, method: Any, i: int, inputs: dict[str, Stage]
    ) -> Stage:
        recipe = _plain(self.setup.track.recipe)
        if method.own_model:
            recipe = _embedding_recipe(self.setup.track.recipe)
        seed = self.first_seed if i == 0 else self.seed
        return Stage(
            kind,
            f"{'train' if method.own_model else 'fit'} {label} (seed {seed})",
            {
                "method": label,
                "config": dataclasses.asdict(method),
                "source": _source(label),
                "spec": _plain(self.setup.models[i]),
                "recipe": recipe,
                "splits": [self.split(i)],
                "old_head": self.setup.protocol.old_head,
                "distance": self.setup.track.distance,
                "seed": derive(seed, "generation", i),
            },
            inputs,
        )

    def _evaluate(self, label: str, chain: list[Stage], updates: list[Stage]) -> Stage:
        track, generations = self.setup.track, self.setup.protocol.generations
        inputs = {"data": self.data}
        for i, model in enumerate(chain):
            inputs[f"vectors{i}"] = self.embed(
                model, track.evaluation, f"{label}, {generations[i].name}"
            )
        for i, update in enumerate(updates, 1):
            inputs[f"update{i}"] = update
        for kind in _sides(registry.method(label, self.setup.params(label))):
            inputs["side"] = self.embed(self.side(kind), track.evaluation, kind)
        return Stage(
            "evaluate",
            f"evaluate {label} (seed {self.seed})",
            {
                "part": track.evaluation,
                "generations": [g.name for g in generations],
                "tasks": self.setup.protocol.tasks,
                "distance": track.distance,
                "far": track.far,
                "fpir": track.fpir,
            },
            inputs,
        )

    def _upper(self) -> Stage:
        last = self.n - 1
        splits = [self.split(i) for i in range(self.n)]
        model = self.train(last, splits, "upper bound on all data, ")
        return self._evaluate("independent", [self.train(0), model], [])


def _sides(method: Any) -> list[str]:
    kinds = [n.partition(":")[2] for n in method.needs if n.startswith("side:")]
    if len(kinds) > 1:
        raise BenchError(f"method needs several kinds of side-information: {', '.join(kinds)}")
    return kinds


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return dataclasses.asdict(value)


def _embedding_recipe(recipe: Recipe) -> dict[str, Any]:
    return {k: v for k, v in _plain(recipe).items() if k not in _NOT_EMBEDDING}


def _source(label: str) -> str:
    return hashlib.sha256(registry.method_file(label).source).hexdigest()
