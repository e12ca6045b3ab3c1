"""Lay out a plan: which stages a protocol, a track, some methods and seeds come to."""

import dataclasses
import itertools
from typing import Any

from benchmark.config import registry
from benchmark.config.data_roots import Root, root_of
from benchmark.config.declarations import MethodDeclaration
from benchmark.config.embedders import load_embedder
from benchmark.config.files import digest
from benchmark.config.generations import shared_classes
from benchmark.config.recipes import ModelSpec, Recipe
from benchmark.config.seeds import derive
from benchmark.config.setup import Precision, Setup
from benchmark.contract import Step
from benchmark.errors import BenchError, unknown
from benchmark.harness import work as kinds
from benchmark.harness.graph import (
    EvaluationStage,
    Plan,
    Result,
    Stage,
    UpdateStage,
    cosines_of_softmax,
    data_source,
    data_stage,
    frozen_views,
    learns_captions,
    one_index,
    other_domain,
    place_of,
    plain,
    plain_model,
    record_key,
    stored_means,
)
from benchmark.harness.published_models import PublishedModels
from benchmark.harness.work import Demand, PlainValues
from benchmark.records.slim import DRAWN_SEED
from benchmark.records.stage_titles import MODEL, TEXT_MODELS, StageTitle
from benchmark.training.side_kinds import SIDES

_NOT_EMBEDDING = ("transform_steps", "transform_batch", "transform_views", "side_epochs", "simclr")
_EVERYTHING = {"classes": (0.0, 1.0), "images": (0.0, 1.0), "order": "dataset", "seed": 0}
Chain = list[tuple[int, Stage]]
"""Generations and their models, oldest first."""


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
        of_others = spec.package or spec.backbone.startswith(("timm:", "open_clip:"))
        if spec.weights is not None or of_others:
            from benchmark.models.backbones import check_model

            check_model(spec)
    for label in setup.methods:
        registry.method(label, setup.params(label))
    source, track = data_source(setup, data_root), setup.track
    dataset = registry.check_options(track.dataset, track.data, f"track {track.id}: data")
    root = root_of(dataset, track.dataset, data_root)
    data = data_stage(track.dataset, track.data, source, root)
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
        reason, evaluation, updates = self._refusal(method), None, list[UpdateStage]()
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

    def _where(self, i: int | None = None) -> str:
        """Place that an error about a generation's data, or about the evaluation, names first."""
        place = "evaluation" if i is None else f"generations[{i}] '{self.names[i]}'"
        return f"{self.setup.protocol.family}.yaml: {place}"

    def _ahead(self) -> list[Demand]:
        """Demands of all generations on the data, to be checked before one is trained."""
        setup = self.setup
        splits = [Demand(self._where(i), setup.split(i)) for i in range(self.n)]
        return [*splits, Demand(self._where(), None, setup.part, setup.narrowing())]

    def _seed(self, i: int) -> int:
        return self.first_seed if i == 0 else self.seed

    def _training(self, i: int, spec: ModelSpec, *purpose: str) -> dict[str, Any]:
        """Parameters of every training of a model of generation ``i``."""
        return {
            "data": self.data, "frozen": frozen_views(self.setup, self.data, i + 1),
            "spec": {k: v for k, v in plain_model(spec).items() if k != "recipe"},
            "recipe": _embedding_recipe(self.setup.recipe(i)),
            "splits": [self.setup.split(i)], "seed": derive(self._seed(i), *purpose, i),
            "weights": None if spec.frozen else place_of(spec),
        }  # fmt: skip

    def train(self, i: int, what: str = "", **changed: Any) -> Stage:
        """Generation ``i`` trained alone, or its published model."""
        kind = MODEL
        if self.generations[i].queries == "texts":
            texts = self.setup.models[i].texts
            known: bool | str = digest(load_embedder(texts).run) if texts else True
            known = digest([known, "captions"]) if learns_captions(self.setup) else known
            kind, changed = TEXT_MODELS, changed | {"texts": known}
        what = what or ("independent " if i else "") + self.names[i]
        usual = self._training(i, self.setup.models[i], "generation")
        usual |= {"where": self._where(i), "ahead": self._ahead()}
        work = kinds.ModelWork[Stage](**usual | changed)
        training = Stage(StageTitle("train", f"{what} {kind}", self._seed(i)), work)
        if self.published is None or self.setup.models[i].frozen:
            return training
        return self.published.instead_of(training)

    def embed(
        self, model: Stage, part: str | dict[str, Any], what: str, file: str = "model", *,
        views: PlainValues | None = None, mirrored: bool = False,
    ) -> Stage:  # fmt: skip
        """Embeddings of the test items, or of a generation's training images."""
        of = part if isinstance(part, str) else "training"
        frozen = model.work.frozen
        if views is None:
            frozen = tuple(backbone[:1] for backbone in frozen)
        work = kinds.EmbeddingWork[Stage](
            data=self.data, frozen=frozen, model=model, part=part, file=file, views=views,
            mirrored="mean" if mirrored else "",
        )  # fmt: skip
        return Stage(StageTitle("embed", f"{of} images: {what}"), work)

    def _views(self, i: int, method: MethodDeclaration) -> PlainValues | None:
        """Views that a map to generation ``i`` is fitted on, the same pictures for all models."""
        recipe = self.setup.track.recipe
        if method.own_model or recipe.transform_views in (1, "epoch"):
            return None
        seed = derive(self.seed, "views", i)
        return {"count": recipe.transform_views, "augment": plain(recipe.augment), "seed": seed}

    def side(self, kind: str, i: int = 0) -> Stage:
        """The side-information model of generation ``i``, trained with it (FCT 3.4, 4.4)."""
        side, split = SIDES[kind], self.setup.split
        spec = self.setup.models[i]
        if not spec.frozen:  # learned from random numbers
            spec = spec.model_copy(update={"weights": None, "weights_sha256": ""})
        params = self._training(i, spec, "side", kind)
        params |= {"module": side.module, "options": dict(side.options)}
        if side.epochs == "side":
            epochs = self.setup.track.recipe.side_epochs
            recipe = self.setup.recipe(i)
            recipe = recipe.for_simclr() if side.contrastive else recipe
            params["recipe"] = _embedding_recipe(recipe) | {"epochs": epochs}
        if side.data == "next":
            params["splits"] = [split(i), split(i + 1)]
        elif side.data == "other":
            params["splits"] = [_EVERYTHING]
            params["other"] = other_domain(self.setup.track, self.data_root)
        work = kinds.SideWork[Stage](**params)
        title = StageTitle("train", f"{kind} of {self.names[i]}", self._seed(i), side=True)
        return Stage(title, work)

    def _chain(
        self, label: str, method: MethodDeclaration
    ) -> tuple[list[Stage], list[UpdateStage]]:
        """Models of the chain under a method, oldest first, and its update stages."""
        own = kinds.FirstWork[Stage] if method.own_first else None
        first = self._method_stage(own, label, method, 0) if own else self.train(0)
        chain, updates = [first], list[UpdateStage]()
        for i in range(1, self.n):
            updates.append(self._update(label, method, list(enumerate(chain)), i))
            chain.append(updates[-1] if method.own_model else self.train(i))
        return chain, updates

    def _direct(
        self, label: str, method: MethodDeclaration, chain: list[Stage]
    ) -> dict[tuple[int, int], Stage]:
        """Conversions that leave out the generations between (FCT 4.4, scenario ii).

        A model that is trained compatible was so with the generation before it, and one that
        converts nothing has no other way.
        """
        maps = {"gallery", "queries"} & set(method.changes)
        if not self.setup.protocol.direct or method.own_model or not maps:
            return {}
        return {
            (j, i): self._update(label, method, [(j, chain[j])], i)
            for i in range(2, self.n)
            for j in range(i - 1)
        }

    def _update(self, label: str, method: MethodDeclaration, chain: Chain, i: int) -> UpdateStage:
        """The update to generation ``i`` of a gallery of the last of a chain."""
        training, last = self.setup.split(i), chain[-1][0]

        def embed(model: Stage, j: int, short: str) -> Stage:
            seen = self._seen(j, i, short)
            return self.embed(model, training, seen, views=self._views(i, method))

        inputs: dict[str, Any] = {
            "models": tuple(model for _, model in chain),
            "features": tuple(
                embed(model, j, label if method.own_model and j else "") for j, model in chain
            ),
        }
        if "independent" in method.needs:
            inputs["independent"] = model = self.train(i)
            inputs["independent_features"] = embed(model, i, "independent")
        kind = side_kind(method)
        if kind is not None:
            # Nothing follows the last generation, nor a conversion that leaves some out.
            follows = i < self.n - 1 and last == i - 1
            for role, j in (("side", last), ("new_side", i))[: 1 + follows]:
                inputs[f"{role}_model"] = model = self.side(kind, j)
                inputs[role] = embed(model, j, kind)
        return self._method_stage(kinds.UpdateWork, label, method, i, last, **inputs)

    def _seen(self, j: int, i: int, short: str = "") -> str:
        """Words for the embeddings by generation ``j`` of the training images of ``i``."""
        seen = f"{self.names[i]} seen by {self.names[j]} {short}".strip()
        return seen if self.n > 2 else short or self.names[j]

    def _method_stage(
        self, kind: type[kinds.UpdateWork[Stage]], label: str, method: MethodDeclaration, i: int,
        old: int = 0, **inputs: Any,
    ) -> UpdateStage:  # fmt: skip
        # A title of its own for each: records name times, curves and checkpoints by it.
        names, track = self.names, self.setup.track
        step = f" {names[0]}" if i == 0 else f" {names[old]}-{names[i]}" if self.n > 2 else ""
        usual = self._training(i, self.setup.models[i], "generation")
        if not method.own_model:  # a model's own recipe is for its training; maps are fitted alike
            usual["recipe"] = {k: v for k, v in plain(track.recipe).items() if k != "simclr"}
        work = kind(
            **usual, where=self._where(i), method=label, config=dataclasses.asdict(method),
            source=registry.method_file(label).fingerprint, distance=track.distance,
            old_head=self._old_head(method, old),
            cosines=i > 0 and cosines_of_softmax(self.setup.models[i], label), **inputs,
        )  # fmt: skip
        verb = "train" if method.own_model else "fit"
        return Stage(StageTitle(verb, f"{label}{step}", self._seed(i)), work)

    def _old_head(self, method: MethodDeclaration, old: int) -> str:
        """As the protocol says, where the update of a gallery of generation ``old`` uses it.

        Only a softmax classifier says that embeddings have lengths, and only in a chain.
        """
        lengths = old > 0 and self.setup.models[old].head == "softmax" and method.asks_old_lengths
        return self.setup.protocol.old_head if method.reads_old_head or lengths else "discarded"

    def _evaluate(
        self, label: str, method: MethodDeclaration, chain: list[Stage], updates: list[UpdateStage]
    ) -> EvaluationStage:
        """The scores of a chain; for a bound, without updates, no gallery is backfilled."""
        protocol, track, part = self.setup.protocol, self.setup.track, self.setup.part
        tasks = [task for task in protocol.tasks if updates or task != "backfilling"]
        kind, params = side_kind(method), dict[str, Any]()
        if self.generations[0].queries == "texts":
            what = f"{self.names[0]}, images"
            images = self.embed(chain[0], part, what, "images", mirrored=track.mirrored)
            params["images"] = (images,)
        if kind is not None:
            params["side"] = {"kind": kind, "bits": SIDES[kind].bits}
        if "backfilling" in tasks:  # its orders, and the models whose classifiers they use
            params |= {"orders": protocol.orders, "seed": derive(self.seed, "backfilling")}
            params["head_new"] = chain[-1]
            if protocol.old_head == "kept":
                params["head_old"] = chain[-2]
            params["one_index"] = one_index(self.setup, label)
            params["stored_means"] = stored_means(self.setup)
        work = kinds.EvaluationWork[Stage](
            part=part, generations=self.names, distance=track.distance, far=track.far,
            fpir=track.fpir, tasks=tasks, narrow=self.setup.narrowing(), where=self._where(),
            drawn=self.seed == DRAWN_SEED, data=self.data,
            vectors=tuple(
                self.embed(model, part, f"{label}, {self.names[i]}", mirrored=track.mirrored)
                for i, model in enumerate(chain)
            ),
            updates=(None, *updates) if updates else (None,) * len(chain),
            direct=self._direct(label, method, chain) if updates else {},
            sides=tuple(self._stored_side(kind, i) for i in range(len(chain))), **params,
        )  # fmt: skip
        return Stage(StageTitle("evaluate", label, self.seed), work)

    def _stored_side(self, kind: str | None, i: int) -> Stage | None:
        """Side-information that galleries of generation ``i`` keep; none of the last one."""
        if kind is None or i == self.n - 1:
            return None
        what = kind if self.n == 2 else f"{kind}, {self.names[i]}"
        return self.embed(self.side(kind, i), self.setup.part, what)

    def _upper_bound(self) -> EvaluationStage:
        splits = [self.setup.split(i) for i in range(self.n)]
        model = self.train(self.n - 1, "upper bound on all data,", splits=splits)
        method = registry.method("independent")
        return self._evaluate("independent", method, [self.train(0), model], [])


def side_kind(method: MethodDeclaration) -> str | None:
    """The side-information that a method needs; BenchError if it is unknown, or of several."""
    kinds = [n.partition(":")[2] for n in method.needs if n.startswith("side:")]
    if len(kinds) > 1:
        raise BenchError(f"method needs several kinds of side-information: {', '.join(kinds)}")
    if kinds and kinds[0] not in SIDES:
        raise unknown("side-information", kinds[0], SIDES)
    return kinds[0] if kinds else None


def _embedding_recipe(recipe: Recipe) -> dict[str, Any]:
    return {k: v for k, v in plain(recipe).items() if k not in _NOT_EMBEDDING}
