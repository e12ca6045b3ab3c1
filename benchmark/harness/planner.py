"""Laying a plan out: which stages a protocol, a track, some methods and seeds come to."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmark.config import registry
from benchmark.config.generations import share_classes
from benchmark.config.recipes import ModelSpec, Recipe
from benchmark.config.seeds import derive
from benchmark.config.setup import Setup
from benchmark.contract.method import Step
from benchmark.errors import BenchError, unknown
from benchmark.harness.graph import Plan, Result, Stage, plain, record_key, source_hash
from benchmark.training.side_kinds import SIDES

_NOT_EMBEDDING = ("transform_steps", "transform_batch", "side_epochs")
_EVERYTHING = {"classes": (0.0, 1.0), "images": (0.0, 1.0), "order": "dataset", "seed": 0}


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
    source = _source(setup, data_root)
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


def _source(setup: Setup, data_root: Path | None) -> Mapping[str, Any]:
    """What determines the data; without them what is declared, for plans that are only read."""
    track = setup.track
    if track.needs_root and data_root is None:
        return {"declared": dict(track.facts)}
    dataset = registry.check_options(track.dataset, track.data, f"track {track.id}: data")
    return dataset.source(data_root)


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
        protocol = self.setup.protocol
        if "old_head" in method.needs and protocol.old_head == "discarded":
            return f"needs the old classifier, which protocol {protocol.id} discards"
        if protocol.generations[0].queries == "texts":
            if method.own_first:
                return "trains the first generation its own way, on images; here texts ask"
            if method.runs_old_model:
                return "runs the old model on images; here texts ask"
            if _side_kind(method) is not None:
                return "stores side-information of images; here texts ask"
        found = (method.refuses(step) for step in self._steps())
        return next((reason for reason in found if reason is not None), None)

    def _steps(self) -> Iterator[Step]:
        """Each update, as it is known beforehand."""
        generations, distance = self.setup.protocol.generations, self.setup.track.distance
        for i, (old, new) in enumerate(itertools.pairwise(self.setup.models), 1):
            shared = share_classes(generations[i - 1], generations[i], self.setup.members)
            yield Step(old, new, shared, distance)

    def split(self, i: int) -> dict[str, Any]:
        """Which training images generation ``i`` sees."""
        return self.setup.split(i)

    def train(self, i: int, splits: list[dict[str, Any]] | None = None, what: str = "") -> Stage:
        """Generation ``i`` trained alone."""
        seed = self.first_seed if i == 0 else self.seed
        generation = self.setup.protocol.generations[i]
        name, texts = generation.name, generation.queries == "texts"
        kind = "text and image models" if texts else "model"
        return Stage(
            "train",
            f"train {what or ('independent ' if i else '') + name} {kind} (seed {seed})",
            ({"texts": True} if texts else {})
            | {
                "spec": _spec(self.setup.models[i]),
                "recipe": _embedding_recipe(self.setup.recipe(i)),
                "splits": splits or [self.split(i)],
                "seed": derive(seed, "generation", i),
            },
            {"data": self.data},
            self._where(i) | {"ahead": self._ahead()},
        )

    def _where(self, i: int | None = None) -> dict[str, str]:
        """What an error about a generation's data, or about what judges, names first."""
        protocol = self.setup.protocol
        if i is None:
            return {"where": f"{protocol.family}.yaml: evaluation"}
        return {
            "where": f"{protocol.family}.yaml: generations[{i}] '{protocol.generations[i].name}'"
        }

    def _ahead(self) -> list[dict[str, Any]]:
        """What the data must have for all generations, to be looked at before one is trained."""
        splits = [self._where(i) | {"split": self.split(i)} for i in range(self.n)]
        return [*splits, self._where() | {"part": self.setup.part} | self.setup.narrowing()]

    def embed(
        self, model: Stage, part: str | dict[str, Any], what: str, file: str = "model"
    ) -> Stage:
        """Embeddings of the test items, or of a generation's training images."""
        of = part if isinstance(part, str) else "training"
        return Stage(
            "embed", f"embed {of} images: {what}", {"part": part, "file": file},
            {"data": self.data, "model": model},
        )  # fmt: skip

    def side(self, kind: str, i: int = 0) -> Stage:
        """The side-information model of generation ``i``, trained with it (FCT 3.4, 4.4)."""
        made = SIDES[kind]
        recipe = _embedding_recipe(self.setup.recipe(i))
        if made.epochs == "side":
            recipe["epochs"] = self.setup.track.recipe.side_epochs
        splits = [self.split(i)]
        inputs = {"data": self.data}
        if made.data == "next":
            splits.append(self.split(i + 1))
        elif made.data == "other":
            splits = [_EVERYTHING]
            inputs["other"] = _other_domain(self.setup.track.other_domain)
        seed = self.first_seed if i == 0 else self.seed
        name = self.setup.protocol.generations[i].name
        return Stage(
            "side",
            f"train side-information {kind} of {name} (seed {seed})",
            {
                "module": made.module,
                "options": dict(made.options),
                "spec": _spec(self.setup.models[i]),
                "recipe": recipe,
                "splits": splits,
                "seed": derive(seed, "side", kind, i),
            },
            inputs,
        )

    def _updates(self, label: str) -> tuple[list[Stage], list[Stage]]:
        """Models of the chain under a method, oldest first, and its update stages."""
        method = registry.method(label, self.setup.params(label))
        chain = [self._first(label, method)]
        updates: list[Stage] = []
        for i in range(1, self.n):
            update = self._update(label, method, list(enumerate(chain)), i)
            updates.append(update)
            chain.append(update if method.own_model else self.train(i))
        return chain, updates

    def _direct(self, label: str, chain: list[Stage]) -> dict[str, Stage]:
        """Conversions that leave out the generations between (FCT 4.4, scenario ii).

        A model that is trained compatible was so with the generation before it, and one that
        converts nothing has no other way.
        """
        method = registry.method(label, self.setup.params(label))
        maps = {"gallery", "queries"} & set(method.changes)
        if not self.setup.protocol.direct or method.own_model or not maps:
            return {}
        return {
            f"direct{j}-{i}": self._update(label, method, [(j, chain[j])], i)
            for i in range(2, self.n)
            for j in range(i - 1)
        }

    def _first(self, label: str, method: Any) -> Stage:
        if not method.own_first:
            return self.train(0)
        return self._method_stage("first", label, method, 0, {"data": self.data})

    def _update(self, label: str, method: Any, chain: list[tuple[int, Stage]], i: int) -> Stage:
        """The update to generation ``i`` of what the last of a chain has stored."""
        training, last = self.split(i), chain[-1][0]
        inputs = {"data": self.data}
        for place, (j, model) in enumerate(chain):
            inputs[f"model{place}"] = model
            short = label if method.own_model and j else ""
            inputs[f"features{place}"] = self.embed(model, training, self._seen(j, i, short))
        if "independent" in method.needs:
            inputs["independent"] = self.train(i)
            inputs["independent_features"] = self.embed(
                self.train(i), training, self._seen(i, i, "independent")
            )
        kind = _side_kind(method)
        if kind is not None:
            inputs["side"] = self.embed(self.side(kind, last), training, self._seen(last, i, kind))
            # Nothing follows the last generation, nor a conversion that leaves some out.
            if i < self.n - 1 and last == i - 1:
                inputs["new_side"] = self.embed(
                    self.side(kind, i), training, self._seen(i, i, kind)
                )
        return self._method_stage("update", label, method, i, inputs, last)

    def _seen(self, j: int, i: int, short: str = "") -> str:
        """Words for what generation ``j`` makes of the training images of ``i``."""
        names = [g.name for g in self.setup.protocol.generations]
        if self.n == 2:
            return short or names[j]
        return " ".join([names[i], "seen by", names[j], short]).strip()

    def _method_stage(
        self, kind: str, label: str, method: Any, i: int, inputs: dict[str, Stage], old: int = 0
    ) -> Stage:
        # A model's own recipe is for its training; maps are fitted alike for all.
        recipe = plain(self.setup.track.recipe)
        if method.own_model:
            recipe = _embedding_recipe(self.setup.recipe(i))
        seed = self.first_seed if i == 0 else self.seed
        names = [g.name for g in self.setup.protocol.generations]
        # A title of its own for each: records name times, curves and checkpoints by it.
        step = f" {names[0]}" if i == 0 else f" {names[old]}-{names[i]}" if self.n > 2 else ""
        return Stage(
            kind,
            f"{'train' if method.own_model else 'fit'} {label}{step} (seed {seed})",
            {
                "method": label,
                "config": dataclasses.asdict(method),
                "source": source_hash(label),
                "spec": _spec(self.setup.models[i]),
                "recipe": recipe,
                "splits": [self.split(i)],
                "old_head": self.setup.protocol.old_head,
                "distance": self.setup.track.distance,
                "seed": derive(seed, "generation", i),
            },
            inputs,
            self._where(i),
        )

    def _evaluate(self, label: str, chain: list[Stage], updates: list[Stage]) -> Stage:
        track, generations = self.setup.track, self.setup.protocol.generations
        inputs = {"data": self.data}
        for i, model in enumerate(chain):
            inputs[f"vectors{i}"] = self.embed(
                model, self.setup.part, f"{label}, {generations[i].name}"
            )
        if generations[0].queries == "texts":
            inputs["images0"] = self.embed(
                chain[0], self.setup.part, f"{generations[0].name}, images", "images"
            )
        for i, update in enumerate(updates, 1):
            inputs[f"update{i}"] = update
        if updates:
            inputs |= self._direct(label, chain)
        kind = _side_kind(registry.method(label, self.setup.params(label)))
        for i in range(self.n - 1 if kind is not None else 0):
            what = str(kind) if self.n == 2 else f"{kind}, {generations[i].name}"
            inputs[f"side{i}"] = self.embed(self.side(str(kind), i), self.setup.part, what)
        side = {} if kind is None else {"side": {"kind": kind, "bits": SIDES[kind].bits}}
        refill, heads = self._refill(chain, updates)
        return Stage(
            "evaluate",
            f"evaluate {label} (seed {self.seed})",
            {
                "part": self.setup.part,
                "generations": [g.name for g in generations],
                "distance": track.distance,
                "far": track.far,
                "fpir": track.fpir,
            }
            | refill
            | side
            | self.setup.narrowing(),
            inputs | heads,
            self._where(),
        )

    def _refill(
        self, chain: list[Stage], updates: list[Stage]
    ) -> tuple[dict[str, Any], dict[str, Stage]]:
        """Tasks; with backfilling its orders, and the models whose classifiers they ask."""
        protocol = self.setup.protocol
        if "backfilling" not in protocol.tasks:
            return {"tasks": protocol.tasks}, {}
        if not updates:  # a bound, which no gallery is refilled for
            return {"tasks": [t for t in protocol.tasks if t != "backfilling"]}, {}
        heads = {"head_new": chain[-1]}
        if protocol.old_head == "kept":
            heads["head_old"] = chain[-2]
        seed = derive(self.seed, "backfilling")
        return {"tasks": protocol.tasks, "orders": protocol.orders, "seed": seed}, heads

    def _upper(self) -> Stage:
        last = self.n - 1
        splits = [self.split(i) for i in range(self.n)]
        model = self.train(last, splits, "upper bound on all data, ")
        return self._evaluate("independent", [self.train(0), model], [])


def _other_domain(chosen: Mapping[str, Any]) -> Stage:
    """The dataset of another domain, which is a built-in one."""
    options = dict(chosen)
    name = options.pop("dataset", None)
    if name is None:
        raise BenchError("track: other_domain: missing key 'dataset'")
    source = registry.check_options(str(name), options, "track: other_domain").source(None)
    return Stage(
        "data",
        f"dataset {name}, another domain",
        {"dataset": name, "options": options, "source": source},
        local={"data_root": None},
    )


def _side_kind(method: Any) -> str | None:
    kinds = [n.partition(":")[2] for n in method.needs if n.startswith("side:")]
    if len(kinds) > 1:
        raise BenchError(f"method needs several kinds of side-information: {', '.join(kinds)}")
    if kinds and kinds[0] not in SIDES:
        raise unknown("side-information", kinds[0], SIDES)
    return kinds[0] if kinds else None


def _spec(model: ModelSpec) -> dict[str, Any]:
    """What a model is made of; its recipe stands with the track's."""
    return {k: v for k, v in plain(model).items() if k != "recipe"}


def _embedding_recipe(recipe: Recipe) -> dict[str, Any]:
    return {k: v for k, v in plain(recipe).items() if k not in _NOT_EMBEDDING}
