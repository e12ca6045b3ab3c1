"""The stages of a plan: plain functions from parameters and input folders to an output folder.

It loads torch: import it only where a stage is carried out.
"""

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.config import registry
from benchmark.config.data_roots import parse_root, root_of
from benchmark.config.files import file_digest, sha256_of
from benchmark.config.reading import build
from benchmark.config.recipes import Augment, ModelSpec, Recipe
from benchmark.contract import Generation, Portable, Trainer, TrainingData, Update, UpdateJob
from benchmark.contract.conversion import PARTS
from benchmark.data.base import (
    Dataset,
    Evaluation,
    Images,
    ImageSet,
    Ints,
    read_options,
    take_items,
)
from benchmark.data.features import Block
from benchmark.data.serialization import read_dataset, write_dataset
from benchmark.data.splits import narrow, rows_of
from benchmark.errors import located, unknown
from benchmark.harness import artifacts
from benchmark.harness.artifacts import HEAD, MODEL, Inputs, load_vectors
from benchmark.harness.evaluation.cases import Case, build_cases
from benchmark.harness.evaluation.details import DetailsCollector
from benchmark.harness.evaluation.partial_backfill import evaluate_backfilling
from benchmark.harness.evaluation.side_info import score_side_information
from benchmark.harness.features import blocks_of, compute_features, seen_dataset
from benchmark.harness.graph import TAKE
from benchmark.harness.published_models import take_files
from benchmark.models.frozen import find_features
from benchmark.models.module import load_module, save_module
from benchmark.models.texts import TextModel, embed_texts
from benchmark.models.weights import weights_file
from benchmark.ranking.device import CPU, on_device
from benchmark.tasks.base import RankingTask, Task, TaskResult
from benchmark.training import embedding
from benchmark.training.data import resized
from benchmark.training.device import Device, torch_device
from benchmark.training.side_kinds import SIDES
from benchmark.training.text_image import train_pair

Params = Mapping[str, Any]
Facts = dict[str, Any]


@dataclass(frozen=True)
class Context:
    """Surroundings of a stage besides parameters and inputs; none of it changes the output."""

    out: Path  # folder to write into
    checkpoints: Path  # folder where a killed run may have left checkpoints; all ranks share it
    device: Device
    local: Params  # the stage's local values
    progress: Callable[[float], None]  # takes the share that is done, after a checkpoint
    within: Callable[[float], None] = lambda share: None  # likewise, between checkpoints


def run_stage(kind: str, params: Params, inputs: Inputs, context: Context) -> Facts:
    """Carry out one stage; returns facts worth keeping beside its output."""
    functions = {
        "data": data, "features": features, "train": train, "embed": embed, "side": side,
        "first": update, "update": update, "evaluate": evaluate, TAKE: take,
    }  # fmt: skip
    return functions[kind](params, inputs, context)


def data(params: Params, _: Inputs, context: Context) -> Facts:
    """Load a dataset and keep it as arrays."""
    reader = read_options(params["dataset"], params["options"])
    root = parse_root(context.local["data_root"])
    dataset = reader.load(root_of(reader, params["dataset"], root))
    write_dataset(dataset, context.out)
    return {
        "fingerprint": dataset.fingerprint(), "n_train": len(dataset.train),
        "n_test": len(dataset.evaluations["test"]), "n_classes": len(dataset.class_names),
        "facts": dict(dataset.facts),
    }  # fmt: skip


def features(params: Params, inputs: Inputs, context: Context) -> Facts:
    """Embed every image by a frozen backbone, once for all that is trained on it."""
    dataset = read_dataset(inputs["data"])
    part = {k: value for k, value in params["spec"].items() if k not in ("package", "run")}
    spec = _spec({"spec": part | {"dim": 1, "frozen": True}}, context.local)
    device = torch_device(context.device)
    return compute_features(spec, dataset, params, context.out, device, context.within)


def train(params: Params, inputs: Inputs, context: Context) -> Facts:
    """Train a generation alone: classification loss only.

    With text queries one model embeds texts, another one images.
    """
    dataset = seen_dataset(inputs)
    _check_ahead(dataset, context.local.get("ahead", ()))
    training = _training_data(dataset, params, context.local)
    trainer, spec = _trainer(params, context), _spec(params, context.local)
    facts = _weights(spec)
    model: Portable
    if params.get("texts"):
        model, encoder, head, curve = train_pair(spec, training, dataset.class_names, trainer)
        save_module(encoder.cpu(), context.out / f"{artifacts.IMAGES}.safetensors")
        facts["image_parameters"] = _size(encoder)
    else:
        model, head = embedding.new_model(spec, training, trainer)
        curve = embedding.train_embedding(model, head, training, trainer, spec=spec)
        facts["fit"] = embedding.fit_of(model, head, training, trainer.torch_device())
    return facts | _write_model(model, head, context.out) | {
        "n_images": len(training), "n_classes": len(training.classes),
        "curves": {"model": curve.state_dict()},
    }  # fmt: skip


def take(params: Params, _: Inputs, context: Context) -> Facts:
    """Take a published model instead of training it."""
    local = context.local
    take_files(params["files"], Path(local["folder"]), local["address"], context.out)
    return dict(params["facts"])


def side(params: Params, inputs: Inputs, context: Context) -> Facts:
    """Train the side-information model of a generation."""
    names = {kind.module: f"benchmark.training.side_{kind.module}" for kind in SIDES.values()}
    module = importlib.import_module(registry.known("side-information", params["module"], names))
    dataset = seen_dataset(inputs)
    training = _training_data(
        read_dataset(inputs["other"]) if "other" in inputs else dataset, params
    )
    shape = dataset.train.images.shape[1:]
    if training.images.shape[1:] != shape:  # of another domain; the same size stays in its files
        training = resized(training, shape)
    trainer = _trainer(params, context)
    model, curve = module.train(_spec(params), training, trainer, **params["options"])
    facts = _write_model(model, None, context.out)
    return facts | {"curves": {params["module"]: curve.state_dict()}}


def embed(params: Params, inputs: Inputs, context: Context) -> Facts:
    """Embed the test items or the training images of a split."""
    dataset, part = seen_dataset(inputs), params["part"]
    evaluation = read_options(dataset.name).evaluation
    items = evaluation(dataset, part) if isinstance(part, str) else _rows(dataset, [part])
    model = load_module(inputs["model"] / f"{params['file']}.safetensors")
    find_features(model, blocks_of(dataset.train.images))
    device = torch_device(context.device)
    views = params.get("views")
    if isinstance(model, TextModel):
        texts, place = _texts_of(items, dataset.class_names)
        vectors = embed_texts(model, texts, device).numpy()[place]
        vectors = np.tile(vectors, (views["count"] if views else 1, 1))
    elif views:
        vectors = _views(model, items.images, device, views, context.progress)
    else:
        vectors = embedding.embed(model, items.images, device)
        if params.get("mirrored"):
            vectors += embedding.embed(model, items.images, device, change=embedding.mirror)
    np.save(context.out / artifacts.VECTORS, vectors)
    return {"n": len(vectors), "dim": int(vectors.shape[1])}


def _texts_of(items: ImageSet, class_names: Sequence[str]) -> tuple[list[str], Ints]:
    """Different texts of some items, and the place of each item's among them, ``[n]``.

    A text is an item's caption, or the name of its class where the dataset has no captions.
    """
    if items.texts is not None:
        places = {text: i for i, text in enumerate(dict.fromkeys(items.texts))}
        return [*places], np.array([places[text] for text in items.texts])
    classes, place = np.unique(items.labels, return_inverse=True)
    return [class_names[c] for c in classes], place


def _views(
    model: Portable, images: Images, device: torch.device, views: Params,
    progress: Callable[[float], None],
) -> np.ndarray:  # fmt: skip
    """Embeddings of augmented views, ``[views * n, d]``, view after view."""
    changes, made = build(Augment, views["augment"], "stage: augment"), []
    for view in range(views["count"]):
        made.append(embedding.embed_view(model, images, device, changes, views["seed"], view))
        progress((view + 1) / views["count"])
    return np.concatenate(made)


def update(params: Params, inputs: Inputs, context: Context) -> Facts:
    """Let a method train or fit the new generation, given the earlier ones."""
    method = registry.method(params["method"], params["config"])
    dataset, kept = seen_dataset(inputs), params["old_head"] == "kept"
    blocks = blocks_of(dataset.train.images)
    n = sum(role.startswith("model") for role in inputs)
    chain = tuple(
        _generation(inputs, f"model{j}", f"features{j}", "side" if j == n - 1 else "", kept, blocks)
        for j in range(n)
    )
    independent = None
    if "independent" in inputs:
        roles = ("independent", "independent_features", "new_side")
        independent = _generation(inputs, *roles, head=True, blocks=blocks)
    spec = _spec(params, context.local)
    job = UpdateJob(
        data=_training_data(dataset, params, context.local), chain=chain, independent=independent,
        spec=spec, distance=params["distance"], trainer=_trainer(params, context),
        n_classes=len(dataset.class_names),
    )  # fmt: skip
    result = method.update(job) if chain else method.first(job)
    facts = _weights(spec) if method.own_model else {}
    if method.own_model:
        device = job.trainer.torch_device()
        facts["fit"] = embedding.fit_of(result.model, result.head, job.data, device)
    return facts | _write_update(result, method.own_model, context.out)


def evaluate(params: Params, inputs: Inputs, context: Context) -> Facts:
    """Score every case by every task, on embeddings only."""
    dataset = read_dataset(inputs["data"])
    items = _evaluated_items(dataset, params, context.local)
    tasks = [registry.task(name) for name in params["tasks"]]
    details = DetailsCollector(params, inputs, items, dataset.class_names)
    with on_device(_engine(context.device)):
        return _scored(params, inputs, context, items, tasks, details)


def _engine(device: Device) -> str:
    """Device of scores: a GPU with the run, else exactly, on the CPU."""
    chosen = torch_device(device)
    return str(chosen) if chosen.type == "cuda" else CPU


def _scored(
    params: Params, inputs: Inputs, context: Context, items: Evaluation, tasks: Sequence[Any],
    details: DetailsCollector,
) -> Facts:  # fmt: skip
    """Score and write every case."""
    by_case = [task for task in tasks if isinstance(task, Task)]
    results: dict[str, dict[str, Any]] = {}
    for case in build_cases(params, inputs):
        scored = [_score(task, case, items, params) for task in by_case if _evaluates(task, case)]
        if scored:
            results[case.name] = {
                part: {k: v for result in scored for k, v in getattr(result, part).items()}
                for part in ("scores", "intervals", "over", "counts")
            }
        details.add(case, scored)
    (context.out / artifacts.DETAILS).write_bytes(details.pack())
    (context.out / artifacts.CASES).write_text(json.dumps(results, sort_keys=True))
    if len(by_case) < len(tasks):
        curves = evaluate_backfilling(params, inputs, items)
        (context.out / artifacts.BACKFILLING).write_text(json.dumps(curves))
    return score_side_information(params, inputs, items)


def _evaluates(task: Task, case: Case) -> bool:
    if task.text_queries or case.texts:
        return case.texts and task.text_queries
    if case.second is not None and not isinstance(task, RankingTask):
        return False
    return not case.swapped or task.both_directions


def _score(task: Task, case: Case, items: Evaluation, params: Params) -> TaskResult:
    if isinstance(task, RankingTask):
        return task.evaluate(case.query, case.gallery, items, params, case.second)
    return task.evaluate(case.query, case.gallery, items, params)


def _evaluated_items(dataset: Dataset, params: Params, local: Params) -> Evaluation:
    """The items of the evaluation set, or those that a protocol narrows it to."""
    items = read_options(dataset.name).evaluation(dataset, params["part"])
    if "narrow" not in params:
        return items
    with located(local.get("where", "")):
        return narrow(items, dataset.train.labels, **params["narrow"])


def _rows(dataset: Dataset, splits: Sequence[Params], where: str = "") -> ImageSet:
    rows = np.unique(np.concatenate([_split_rows(dataset, split, where) for split in splits]))
    return take_items(dataset.train, rows)


def _split_rows(dataset: Dataset, split: Params, where: str) -> Ints:
    """Rows of the training images that a generation sees, ``[k]``."""

    def class_ids(groups: Sequence[str]) -> Ints:
        group = np.array(read_options(dataset.name).class_groups(dataset))
        for name in groups:
            if name not in group:
                raise unknown(f"group of dataset {dataset.name}", name, set(group.tolist()))
        return np.flatnonzero(np.isin(group, groups))

    with located(where):
        return rows_of(dataset.train.labels, split, class_ids)


def _check_ahead(dataset: Dataset, ahead: Sequence[Params]) -> None:
    """Check before the first training that every generation, and the evaluation, has data."""
    for each in ahead:
        if "split" in each:
            _split_rows(dataset, each["split"], each["where"])
        else:
            _evaluated_items(dataset, each, each)


def _training_data(dataset: Dataset, params: Params, local: Params | None = None) -> TrainingData:
    chosen = _rows(dataset, params["splits"], (local or {}).get("where", ""))
    classes, labels = np.unique(chosen.labels, return_inverse=True)
    rows, order = torch.from_numpy(labels), torch.from_numpy(classes)
    return TrainingData(chosen.images, rows, order, chosen.texts)


def _spec(params: Params, local: Params | None = None) -> ModelSpec:
    """The model of a stage; a file of weights is known by its hash, and found where it lies."""
    spec, file = build(ModelSpec, params["spec"], "stage: spec"), (local or {}).get("weights")
    if file is None:
        return spec
    named = str(spec.weights).removeprefix("sha256:")
    return spec.model_copy(update={"weights": file, "weights_sha256": named})


def _weights(spec: ModelSpec) -> Facts:
    """The hash of the weights that a model starts from."""
    if spec.weights is None:
        return {}
    if spec.frozen:  # its features are of them
        return {"weights_sha256": spec.weights.removeprefix("sha256:")}
    return {"weights_sha256": sha256_of(weights_file(spec))}


def _trainer(params: Params, context: Context) -> Trainer:
    recipe = build(Recipe, params["recipe"], "stage: recipe")
    return Trainer(
        recipe, params["seed"], context.device, context.checkpoints, context.progress,
        context.within,
    )  # fmt: skip


def _generation(
    inputs: Inputs, model: str, features: str, side: str, head: bool, blocks: Sequence[Block]
) -> Generation:
    """An earlier generation from the inputs of these roles; without side-information if none."""

    def load(role: str) -> Portable:
        return find_features(load_module(inputs[role] / MODEL), blocks)

    encoder = load(model).eval().requires_grad_(False)
    classifier = None
    if head and (inputs[model] / HEAD).exists():
        classifier = load_module(inputs[model] / HEAD).eval().requires_grad_(False)
    vectors, side_info = (
        torch.from_numpy(load_vectors(inputs[role])) if role in inputs else None
        for role in (features, side)
    )
    side_model = load(f"{side}_model") if side in inputs else None
    return Generation(encoder, classifier, vectors, side_info, side_model)  # type: ignore[arg-type]


def _size(*modules: Portable) -> int:
    """Parameters of modules; those that they share count once."""
    return sum({id(p): p.numel() for module in modules for p in module.parameters()}.values())


def _write_model(model: Portable, head: Portable | None, out: Path) -> Facts:
    save_module(model.cpu(), out / MODEL)
    if head is not None:
        save_module(head.cpu(), out / HEAD)
    return {"parameters": _size(model), "checkpoint": file_digest(out / MODEL)}


def _write_update(result: Update, own_model: bool, out: Path) -> Facts:
    facts = _write_model(result.model, result.head, out) if own_model else {}
    facts["curves"] = {name: curve.state_dict() for name, curve in result.curves.items()}
    # Parts may share modules: a priority may hold the map.
    parts = {name: getattr(result, name) for name in PARTS if getattr(result, name) is not None}
    for name, part in parts.items():
        save_module(part.cpu(), out / f"{name}.safetensors")
    facts["added_parameters"] = _size(*parts.values())
    return facts
