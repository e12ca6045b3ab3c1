"""Lay out a plan: which stages a protocol, a track, some methods and seeds come to."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

from benchmark.config import registry
from benchmark.config.data_roots import Root, root_of
from benchmark.config.declarations import MethodDeclaration
from benchmark.config.generations import shared_classes
from benchmark.config.recipes import Recipe
from benchmark.config.seeds import derive
from benchmark.config.setup import Precision, Setup
from benchmark.config.tracks import Track
from benchmark.contract import Step
from benchmark.errors import BenchError, unknown
from benchmark.harness.artifacts import FROZEN
from benchmark.harness.frozen_stages import frozen_inputs, place_of
from benchmark.harness.graph import Plan, Result, Stage, data_source, plain, plain_model, record_key
from benchmark.harness.published_models import PublishedModels
from benchmark.records.old_model import MODEL, TEXT_MODELS
from benchmark.training.side_kinds import SIDES

_NOT_EMBEDDING = (
    "transform_steps", "transform_batch", "transform_views", "side_epochs", "simclr"
)  # fmt: skip
_EVERYTHING = {"classes": (0.0, 1.0), "images": (0.0, 1.0), "order": "dataset", "seed": 0}
Chain = list[tuple[int, Stage]]
"""Generations and their models, oldest first."""
Inputs = dict[str, Stage]


def make_plan(
    setup: Setup, labels: list[str], seeds: list[int], *, data_root: Root = None,
    first_seed: int | None = None, precision: Precision = "recipe",
    published: PublishedModels | None = None,
) -> Plan:  # fmt: skip
    """Lay out the stages of some methods and seeds; ``independent`` is always among the results.

    A precision names stages as a recipe that says so would; records are of the track as it is.
    Models that are published are taken instead of trained.

    Raises:
        BenchError: On an unknown name or parameter, or a dataset that is not there.
    """
    for spec in setup.models:
        if spec.weights is not None or spec.backbone.startswith(("timm:", "open_clip:")):
            from benchmark.models.backbones import check_model

            check_model(spec)
    for label in setup.methods:
        registry.method(label, setup.params(label))
    source, track = data_source(setup, data_root), setup.track
    params = {"dataset": track.dataset, "options": dict(track.data), "source": source}
    dataset = registry.check_options(track.dataset, track.data, f"track {track.id}: data")
    local = {"data_root": _plain_root(root_of(dataset, track.dataset, data_root))}
    data = Stage("data", f"dataset {track.dataset}", params, local=local)
    results = []
    for seed in seeds:
        at = setup.at_precision(precision)
        layout = _Layout(at, data, seed, first_seed, data_root, published)
        for label in dict.fromkeys(["independent", *labels]):
            key = record_key(setup, source, label, seed, first_seed)
            results.append(layout.result(label, key))
    return Plan(setup, tuple(results))


class _Layout:
    """The stages of one seed."""

    def __init__(
        self, setup: Setup, data: Stage, seed: int, first_seed: int | None, data_root: Root,
        published: PublishedModels | None,
    ) -> None:  # fmt: skip
        self.data_root, self.published = data_root, published
        self.setup, self.data, self.seed = setup, data, seed
        self.first_seed = seed if first_seed is None else first_seed
        self.generations = setup.protocol.generations
        self.names = [g.name for g in self.generations]
        self.n = len(self.generations)
        independent = registry.method("independent")
        chain = self._chain("independent", independent)
        self.bound = self._evaluate("independent", independent, *chain)

    def result(self, label: str, key: str) -> Result:
        """The stages of one method, or the reason why it has none."""
        method = registry.method(label, self.setup.params(label))
        upper = self._upper_bound() if self.setup.protocol.upper == "all" else None
        reason, evaluation, updates = self._refusal(method), None, list[Stage]()
        if reason is None and label == "independent":
            evaluation = self.bound
        elif reason is None:
            chain, updates = self._chain(label, method)
            evaluation = self._evaluate(label, method, chain, updates)
        return Result(
            label, self.seed, self.first_seed, key, dataclasses.asdict(method), evaluation,
            self.bound, upper, reason, tuple(updates),
        )  # fmt: skip

    def _refusal(self, method: MethodDeclaration) -> str | None:
        """Reason that a method is not applicable here."""
        protocol = self.setup.protocol
        if "old_head" in method.needs and protocol.old_head == "discarded":
            return f"needs the old classifier, which protocol {protocol.id} discards"
        reasons: list[str | None] = []
        if self.generations[0].queries == "texts":
            needs_images = {
                "trains the first generation its own way, on images": method.own_first,
                "runs the old model on images": method.runs_old_model,
                "stores side-information of images": side_kind(method) is not None,
            }
            reasons += [f"{why}; here queries are texts" for why, so in needs_images.items() if so]
        kind = side_kind(method)
        if kind is not None and SIDES[kind].needs_pixels and self.setup.models[0].frozen:
            reasons.append(
                "learns its side-information on pixels; here backbones are frozen, and what is "
                "trained sees their features alone"
            )
        for i, (old, new) in enumerate(itertools.pairwise(self.setup.models), 1):
            before, after = self.generations[i - 1 : i + 1]
            shared = bool(shared_classes(before, after, self.setup.members))
            reasons.append(method.refuses(Step(old, new, shared, self.setup.track.distance)))
        return next((reason for reason in reasons if reason is not None), None)

    def _where(self, i: int | None = None) -> dict[str, str]:
        """Place that an error about a generation's data, or about the evaluation, names first."""
        place = "evaluation" if i is None else f"generations[{i}] '{self.names[i]}'"
        return {"where": f"{self.setup.protocol.family}.yaml: {place}"}

    def _ahead(self) -> list[dict[str, Any]]:
        """Demands of all generations on the data, to be checked before one is trained."""
        splits = [self._where(i) | {"split": self.setup.split(i)} for i in range(self.n)]
        return [*splits, self._where() | {"part": self.setup.part} | self.setup.narrowing()]

    def _training(
        self, kind: str, title: str, i: int, inputs: Mapping[str, Stage], local: Mapping[str, Any],
        purpose: tuple[str, ...] = ("generation",), **params: Any,
    ) -> Stage:  # fmt: skip
        """A stage that trains a model of generation ``i``; ``params`` add to the usual ones."""
        seed = self.first_seed if i == 0 else self.seed
        spec = self.setup.models[i]
        if kind == "side":  # learned without labels, from random numbers
            spec = spec.model_copy(update={"weights": None, "weights_sha256": ""})
        if not spec.frozen:
            local = {**local, **place_of(spec)}
        usual = {
            "spec": {k: v for k, v in plain_model(spec).items() if k != "recipe"},
            "recipe": _embedding_recipe(self.setup.recipe(i)),
            "splits": [self.setup.split(i)],
            "seed": derive(seed, *purpose, i),
        }
        inputs = {"data": self.data, **frozen_inputs(self.setup, self.data, range(i + 1)), **inputs}
        return Stage(kind, f"{title} (seed {seed})", usual | params, inputs, local)

    def train(self, i: int, what: str = "", **params: Any) -> Stage:
        """Generation ``i`` trained alone, or its published model."""
        kind = MODEL
        if self.generations[i].queries == "texts":
            kind, params = TEXT_MODELS, params | {"texts": True}
        what = what or ("independent " if i else "") + self.names[i]
        local = self._where(i) | {"ahead": self._ahead()}
        training = self._training("train", f"train {what} {kind}", i, {}, local, **params)
        if self.published is None or self.setup.models[i].frozen:
            return training
        return self.published.instead_of(training)

    def embed(
        self, model: Stage, part: str | dict[str, Any], what: str, file: str = "model",
        **params: Any,
    ) -> Stage:  # fmt: skip
        """Embeddings of the test items, or of a generation's training images."""
        of = part if isinstance(part, str) else "training"
        seen = {role: it for role, it in model.inputs.items() if role.startswith(FROZEN)}
        if "views" not in params:
            seen = {role: stage for role, stage in seen.items() if role.endswith(".0")}
        return Stage(
            "embed", f"embed {of} images: {what}", {"part": part, "file": file, **params},
            {"data": self.data, "model": model, **seen},
        )  # fmt: skip

    def _views(self, i: int, method: MethodDeclaration) -> dict[str, Any]:
        """Parameters of the embeddings that a map to generation ``i`` is fitted on.

        Seed and augmentation are the same for all models, and so are the pictures.
        """
        recipe = self.setup.track.recipe
        if method.own_model or recipe.transform_views in (1, "epoch"):
            return {}
        seed = derive(self.seed, "views", i)
        changes = plain(recipe.augment)
        return {"views": {"count": recipe.transform_views, "augment": changes, "seed": seed}}

    def side(self, kind: str, i: int = 0) -> Stage:
        """The side-information model of generation ``i``, trained with it (FCT 3.4, 4.4)."""
        side, split = SIDES[kind], self.setup.split
        params: dict[str, Any] = {"module": side.module, "options": dict(side.options)}
        inputs = {}
        if side.epochs == "side":
            epochs = self.setup.track.recipe.side_epochs
            recipe = self.setup.recipe(i)
            recipe = recipe.for_simclr() if side.contrastive else recipe
            params["recipe"] = _embedding_recipe(recipe) | {"epochs": epochs}
        if side.data == "next":
            params["splits"] = [split(i), split(i + 1)]
        elif side.data == "other":
            params["splits"] = [_EVERYTHING]
            inputs["other"] = _other_domain(self.setup.track, self.data_root)
        title = f"train side-information {kind} of {self.names[i]}"
        return self._training("side", title, i, inputs, {}, ("side", kind), **params)

    def _chain(self, label: str, method: MethodDeclaration) -> tuple[list[Stage], list[Stage]]:
        """Models of the chain under a method, oldest first, and its update stages."""
        own_first = method.own_first
        first = self._method_stage("first", label, method, 0, {}) if own_first else self.train(0)
        chain, updates = [first], []
        for i in range(1, self.n):
            updates.append(self._update(label, method, list(enumerate(chain)), i))
            chain.append(updates[-1] if method.own_model else self.train(i))
        return chain, updates

    def _direct(self, label: str, method: MethodDeclaration, chain: list[Stage]) -> Inputs:
        """Conversions that leave out the generations between (FCT 4.4, scenario ii).

        A model that is trained compatible was so with the generation before it, and one that
        converts nothing has no other way.
        """
        maps = {"gallery", "queries"} & set(method.changes)
        if not self.setup.protocol.direct or method.own_model or not maps:
            return {}
        return {
            f"direct{j}-{i}": self._update(label, method, [(j, chain[j])], i)
            for i in range(2, self.n)
            for j in range(i - 1)
        }

    def _update(self, label: str, method: MethodDeclaration, chain: Chain, i: int) -> Stage:
        """The update to generation ``i`` of a gallery of the last of a chain."""
        training, last = self.setup.split(i), chain[-1][0]
        inputs: Inputs = {}

        def embed(role: str, model: Stage, j: int, short: str) -> None:
            views = self._views(i, method)
            inputs[role] = self.embed(model, training, self._seen(j, i, short), **views)

        for place, (j, model) in enumerate(chain):
            inputs[f"model{place}"] = model
            embed(f"features{place}", model, j, label if method.own_model and j else "")
        if "independent" in method.needs:
            inputs["independent"] = model = self.train(i)
            embed("independent_features", model, i, "independent")
        kind = side_kind(method)
        if kind is not None:
            # Nothing follows the last generation, nor a conversion that leaves some out.
            follows = i < self.n - 1 and last == i - 1
            for role, j in (("side", last), ("new_side", i))[: 1 + follows]:
                inputs[f"{role}_model"] = model = self.side(kind, j)
                embed(role, model, j, kind)
        return self._method_stage("update", label, method, i, inputs, last)

    def _seen(self, j: int, i: int, short: str = "") -> str:
        """Words for the embeddings by generation ``j`` of the training images of ``i``."""
        seen = f"{self.names[i]} seen by {self.names[j]} {short}".strip()
        return seen if self.n > 2 else short or self.names[j]

    def _method_stage(
        self, kind: str, label: str, method: MethodDeclaration, i: int, inputs: Inputs, old: int = 0
    ) -> Stage:
        # A title of its own for each: records name times, curves and checkpoints by it.
        names, track = self.names, self.setup.track
        step = f" {names[0]}" if i == 0 else f" {names[old]}-{names[i]}" if self.n > 2 else ""
        # A model's own recipe is for its training; maps are fitted alike for all.
        recipe: dict[str, Any] = {} if method.own_model else {"recipe": _map_recipe(track.recipe)}
        old_head = self.setup.protocol.old_head if method.reads_old_head else "discarded"
        return self._training(
            kind, f"{'train' if method.own_model else 'fit'} {label}{step}", i, inputs,
            self._where(i), method=label, config=dataclasses.asdict(method),
            source=registry.method_file(label).fingerprint, old_head=old_head,
            distance=track.distance, **recipe,
        )  # fmt: skip

    def _evaluate(
        self, label: str, method: MethodDeclaration, chain: list[Stage], updates: list[Stage]
    ) -> Stage:
        """The scores of a chain; for a bound, without updates, no gallery is backfilled."""
        protocol, track, part = self.setup.protocol, self.setup.track, self.setup.part
        inputs = {"data": self.data}
        how: dict[str, Any] = {"mirrored": True} if track.mirrored else {}
        for i, model in enumerate(chain):
            inputs[f"vectors{i}"] = self.embed(model, part, f"{label}, {self.names[i]}", **how)
        if self.generations[0].queries == "texts":
            what = f"{self.names[0]}, images"
            inputs["images0"] = self.embed(chain[0], part, what, "images", **how)
        inputs |= {f"update{i}": update for i, update in enumerate(updates, 1)}
        if updates:
            inputs |= self._direct(label, method, chain)
        tasks = [task for task in protocol.tasks if updates or task != "backfilling"]
        params: dict[str, Any] = {
            "part": part, "generations": self.names, "distance": track.distance, "far": track.far,
            "fpir": track.fpir, "tasks": tasks,
        }  # fmt: skip
        kind = side_kind(method)
        if kind is not None:
            for i in range(self.n - 1):
                what = kind if self.n == 2 else f"{kind}, {self.names[i]}"
                inputs[f"side{i}"] = self.embed(self.side(kind, i), part, what)
            params["side"] = {"kind": kind, "bits": SIDES[kind].bits}
        if "backfilling" in tasks:  # its orders, and the models whose classifiers they use
            params |= {"orders": protocol.orders, "seed": derive(self.seed, "backfilling")}
            inputs["head_new"] = chain[-1]
            if protocol.old_head == "kept":
                inputs["head_old"] = chain[-2]
        return Stage(
            "evaluate", f"evaluate {label} (seed {self.seed})", params | self.setup.narrowing(),
            inputs, self._where(),
        )  # fmt: skip

    def _upper_bound(self) -> Stage:
        splits = [self.setup.split(i) for i in range(self.n)]
        model = self.train(self.n - 1, "upper bound on all data,", splits=splits)
        method = registry.method("independent")
        return self._evaluate("independent", method, [self.train(0), model], [])


def _other_domain(track: Track, root: Root) -> Stage:
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
    params = {"dataset": name, "options": options, "source": source}
    title = f"dataset {name}, another domain"
    return Stage("data", title, params, local={"data_root": _plain_root(place)})


def _plain_root(root: Root) -> Any:
    """Folders as a stage passes them on, in JSON."""
    if isinstance(root, Mapping):
        return {name: str(path) for name, path in root.items()}
    return None if root is None else str(root)


def side_kind(method: MethodDeclaration) -> str | None:
    """The kind of side-information that a method needs.

    Raises:
        BenchError: If it needs several, or one that is unknown.
    """
    kinds = [n.partition(":")[2] for n in method.needs if n.startswith("side:")]
    if len(kinds) > 1:
        raise BenchError(f"method needs several kinds of side-information: {', '.join(kinds)}")
    if kinds and kinds[0] not in SIDES:
        raise unknown("side-information", kinds[0], SIDES)
    return kinds[0] if kinds else None


def _map_recipe(recipe: Recipe) -> dict[str, Any]:
    return {k: v for k, v in plain(recipe).items() if k != "simclr"}


def _embedding_recipe(recipe: Recipe) -> dict[str, Any]:
    return {k: v for k, v in plain(recipe).items() if k not in _NOT_EMBEDDING}
