"""The stages of a plan: plain functions from parameters and input folders to an output folder."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmark.config import registry
from benchmark.config.files import file_digest
from benchmark.config.reading import build
from benchmark.config.recipes import ModelSpec, Recipe
from benchmark.data.base import Dataset, Evaluation, ImageSet, Ints, read_options, take
from benchmark.data.splits import narrow, rows_of
from benchmark.data.stored import read_dataset, write_dataset
from benchmark.errors import located, unknown
from benchmark.harness.artifacts import (
    BACKFILLING,
    CASES,
    DETAILS,
    HEAD,
    IMAGES,
    MODEL,
    VECTORS,
    Inputs,
    load_vectors,
)
from benchmark.tasks.base import Task

if TYPE_CHECKING:
    from benchmark.contract import Curve, Generation, Portable, Trainer, TrainingData, Update
    from benchmark.harness.evaluation.cases import Case
    from benchmark.training.device import Device


@dataclass(frozen=True)
class Context:
    """What a stage needs besides its parameters and inputs; none of it changes the output.

    Attributes:
        out: Folder to write into.
        checkpoints: Folder where a killed run may have left checkpoints; all ranks share it.
        device: Where to compute.
        local: The stage's local values.
        progress: Progress callback; takes the share that is done.
    """

    out: Path
    checkpoints: Path
    device: Device
    local: Mapping[str, Any]
    progress: Callable[[float], None]


Params = Mapping[str, Any]


def run_stage(kind: str, params: Params, inputs: Inputs, context: Context) -> dict[str, Any]:
    """Carry out one stage; returns facts worth keeping beside its output."""
    functions = {
        "data": data, "train": train, "embed": embed, "side": side, "first": update,
        "update": update, "evaluate": evaluate,
    }  # fmt: skip
    return functions[kind](params, inputs, context)


def data(params: Params, _: Inputs, context: Context) -> dict[str, Any]:
    """Load a dataset and keep it as arrays."""
    root = context.local["data_root"]
    reader = read_options(params["dataset"], params["options"])
    dataset = reader.load(None if root is None else Path(root))
    write_dataset(dataset, context.out)
    return {
        "fingerprint": dataset.fingerprint(),
        "n_train": len(dataset.train),
        "n_test": len(dataset.evaluations["test"]),
        "n_classes": len(dataset.class_names),
        "facts": dict(dataset.facts),
    }


def train(params: Params, inputs: Inputs, context: Context) -> dict[str, Any]:
    """Train a generation alone: classification loss only."""
    from benchmark.training.embedding import new_model, train_embedding

    _check_ahead(inputs, context.local.get("ahead", ()))
    training = _training_data(params, inputs, context.local)
    trainer, spec = _trainer(params, context), _spec(params)
    if params.get("texts"):
        return _train_pair(spec, inputs, training, trainer, context)
    encoder, head = new_model(spec, training, trainer)
    curve = train_embedding(encoder, head, training, trainer, spec=spec)
    return _write_model(encoder, head, context.out) | _training_facts(training, curve)


def _training_facts(training: TrainingData, curve: Curve) -> dict[str, Any]:
    return {
        "n_images": len(training), "n_classes": len(training.classes),
        "curves": {"model": curve.state_dict()},
    }  # fmt: skip


def _train_pair(
    spec: ModelSpec, inputs: Inputs, training: TrainingData, trainer: Trainer, context: Context
) -> dict[str, Any]:
    """A generation with text queries: one model reads texts, another one images."""
    from benchmark.models.module import save_module
    from benchmark.training.text_image import train_pair

    names = read_dataset(inputs["data"]).class_names
    texts, encoder, head, curve = train_pair(spec, training, names, trainer)
    save_module(encoder.cpu(), context.out / f"{IMAGES}.safetensors")
    facts = _write_model(texts, head, context.out) | _training_facts(training, curve)
    return facts | {"image_parameters": sum(p.numel() for p in encoder.parameters())}


def side(params: Params, inputs: Inputs, context: Context) -> dict[str, Any]:
    """Train the side-information model of a generation."""
    module = importlib.import_module(f"benchmark.training.side_{params['module']}")
    training = _training_data(params, {"data": inputs.get("other", inputs["data"])})
    if "other" in inputs:
        from benchmark.training.data import resized

        training = resized(training, read_dataset(inputs["data"]).train.images.shape[1:])
    trainer = _trainer(params, context)
    model, curve = module.train(_spec(params), training, trainer, **params["options"])
    facts = _write_model(model, None, context.out)
    return facts | {"curves": {params["module"]: curve.state_dict()}}


def embed(params: Params, inputs: Inputs, context: Context) -> dict[str, Any]:
    """Embed the test items or the training images of a split."""
    from benchmark.models.module import load_module
    from benchmark.models.texts import TextEncoder, embed_texts
    from benchmark.training.device import torch_device
    from benchmark.training.embedding import embed as embed_images

    dataset, part = read_dataset(inputs["data"]), params["part"]
    items = _evaluation(dataset, part) if isinstance(part, str) else _rows(dataset, [part])
    model = load_module(inputs["model"] / f"{params['file']}.safetensors")
    device = torch_device(context.device)
    if isinstance(model, TextEncoder):  # the text of an item is the name of its class
        classes, place = np.unique(items.labels, return_inverse=True)
        texts = [dataset.class_names[c] for c in classes]
        vectors = embed_texts(model, texts, device).numpy()[place]
    else:
        vectors = embed_images(model, items.images, device)
    np.save(context.out / VECTORS, vectors)
    return {"n": len(vectors), "dim": int(vectors.shape[1])}


def update(params: Params, inputs: Inputs, context: Context) -> dict[str, Any]:
    """Let a method train or fit the new generation, given the earlier ones."""
    from benchmark.contract import UpdateJob

    method = registry.method(params["method"], params["config"])
    kept = params["old_head"] == "kept"
    n = sum(role.startswith("model") for role in inputs)
    chain = []
    for j in range(n):
        side_folder = inputs.get("side") if j == n - 1 else None
        chain.append(_generation(inputs[f"model{j}"], inputs[f"features{j}"], side_folder, kept))
    independent = None
    if "independent" in inputs:
        features = inputs["independent_features"]
        independent = _generation(inputs["independent"], features, inputs.get("new_side"), True)
    trainer = _trainer(params, context)
    job = UpdateJob(
        data=_training_data(params, inputs, context.local),
        chain=tuple(chain),
        independent=independent,
        spec=_spec(params),
        distance=params["distance"],
        trainer=trainer,
        n_classes=len(read_dataset(inputs["data"]).class_names),
    )
    result = method.update(job) if chain else method.first(job)
    return _write_update(result, method.own_model, context.out)


def evaluate(params: Params, inputs: Inputs, context: Context) -> dict[str, Any]:
    """Score every case by every task, on embeddings only."""
    from benchmark.harness.evaluation.cases import build_cases
    from benchmark.harness.evaluation.details import DetailsCollector
    from benchmark.harness.evaluation.partial_backfill import evaluate_backfilling
    from benchmark.harness.evaluation.side_info import score_side_information

    dataset = read_dataset(inputs["data"])
    items = _evaluated_items(dataset, params, context.local)
    tasks = [registry.task(name) for name in params["tasks"]]
    by_case = [task for task in tasks if isinstance(task, Task)]
    results: dict[str, dict[str, Any]] = {}
    details = DetailsCollector(params, inputs, items, dataset.class_names)
    for case in build_cases(params, inputs):
        scored = [
            task.evaluate(case.query, case.gallery, items, params)
            for task in by_case
            if _evaluates(task, case)
        ]
        if scored:
            results[case.name] = {
                part: {k: v for result in scored for k, v in getattr(result, part).items()}
                for part in ("scores", "intervals", "counts")
            }
        details.add(case, scored)
    (context.out / DETAILS).write_bytes(details.pack())
    (context.out / CASES).write_text(json.dumps(results, sort_keys=True))
    if len(by_case) < len(tasks):
        curves = evaluate_backfilling(params, inputs, items)
        (context.out / BACKFILLING).write_text(json.dumps(curves))
    return score_side_information(params, inputs, items)


def _evaluates(task: Task, case: Case) -> bool:
    """Whether a task evaluates such a case."""
    if task.text_queries or case.texts:
        return case.texts and task.text_queries
    return not case.swapped or task.both_directions


def _evaluation(dataset: Dataset, name: str) -> Evaluation:
    return read_options(dataset.name).evaluation(dataset, name)


def _evaluated_items(dataset: Dataset, params: Params, local: Params) -> Evaluation:
    """The items of the evaluation set, or those that a protocol narrows it to."""
    items = _evaluation(dataset, params["part"])
    if "narrow" not in params:
        return items
    with located(local.get("where", "")):
        return narrow(items, dataset.train.labels, **params["narrow"])


def _rows(dataset: Dataset, splits: list[Params], local: Params | None = None) -> ImageSet:
    where = (local or {}).get("where", "")
    rows = np.unique(np.concatenate([_split_rows(dataset, split, where) for split in splits]))
    return ImageSet(take(dataset.train.images, rows), dataset.train.labels[rows])


def _split_rows(dataset: Dataset, split: Params, where: str) -> Ints:
    """Rows of the training images that a generation sees, ``[k]``."""

    def class_ids(groups: Sequence[str]) -> Ints:
        group_of = read_options(dataset.name).class_group
        group = np.array([group_of(name) for name in dataset.class_names])
        for name in groups:
            if name not in group:
                raise unknown(f"group of dataset {dataset.name}", name, set(group.tolist()))
        return np.flatnonzero(np.isin(group, groups))

    with located(where):
        return rows_of(dataset.train.labels, split, class_ids)


def _check_ahead(inputs: Inputs, ahead: Sequence[Params]) -> None:
    """Check before the first training that every generation, and the evaluation, has data."""
    dataset = read_dataset(inputs["data"])
    for each in ahead:
        if "split" in each:
            _split_rows(dataset, each["split"], each["where"])
        else:
            _evaluated_items(dataset, each, each)


def _training_data(params: Params, inputs: Inputs, local: Params | None = None) -> TrainingData:
    import torch

    from benchmark.contract import TrainingData

    chosen = _rows(read_dataset(inputs["data"]), params["splits"], local)
    classes, labels = np.unique(chosen.labels, return_inverse=True)
    return TrainingData(chosen.images, torch.from_numpy(labels), torch.from_numpy(classes))


def _spec(params: Params) -> ModelSpec:
    return build(ModelSpec, params["spec"], "stage: spec")


def _trainer(params: Params, context: Context) -> Trainer:
    from benchmark.contract import Trainer

    recipe = build(Recipe, params["recipe"], "stage: recipe")
    return Trainer(recipe, params["seed"], context.device, context.checkpoints, context.progress)


def _generation(model: Path, features: Path, side_folder: Path | None, head: bool) -> Generation:
    import torch

    from benchmark.contract import Generation
    from benchmark.models.module import load_module

    loaded = load_module(model / MODEL).eval().requires_grad_(False)
    classifier = load_module(model / HEAD) if head and (model / HEAD).exists() else None
    if classifier is not None:
        classifier.eval().requires_grad_(False)
    side_info = None if side_folder is None else torch.from_numpy(load_vectors(side_folder))
    return Generation(loaded, classifier, torch.from_numpy(load_vectors(features)), side_info)  # type: ignore[arg-type]


def _write_model(model: Portable, head: Portable | None, out: Path) -> dict[str, Any]:
    from benchmark.models.module import save_module

    save_module(model.cpu(), out / MODEL)
    if head is not None:
        save_module(head.cpu(), out / HEAD)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "checkpoint": file_digest(out / MODEL),
    }


def _write_update(result: Update, own_model: bool, out: Path) -> dict[str, Any]:
    from benchmark.contract.conversion import PARTS
    from benchmark.models.module import save_module

    facts: dict[str, Any] = _write_model(result.model, result.head, out) if own_model else {}
    facts["curves"] = {name: curve.state_dict() for name, curve in result.curves.items()}
    counted: dict[int, int] = {}  # parts may share modules: a priority may hold the map
    for name in PARTS:
        part = getattr(result, name)
        if part is not None:
            save_module(part.cpu(), out / f"{name}.safetensors")
            counted |= {id(p): p.numel() for p in part.parameters()}
    facts["added_parameters"] = sum(counted.values())
    return facts
