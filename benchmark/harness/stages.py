"""The stages of a plan: plain functions from parameters and input folders to an output folder."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmark.config import registry
from benchmark.config.types import Augment, ModelSpec, Recipe
from benchmark.data.base import Dataset, Evaluation, ImageSet, Ints, take
from benchmark.data.stored import read_dataset, write_dataset
from benchmark.errors import located, unknown
from benchmark.harness.artifacts import DETAILS, HEAD, IMAGES, MODEL, REFILL, VECTORS
from benchmark.harness.evaluation.side_info import score_sides

if TYPE_CHECKING:
    from benchmark.contract.method import Generation, Update
    from benchmark.harness.evaluation.cases import Case
    from benchmark.models.module import Portable
    from benchmark.training.data import TrainingData
    from benchmark.training.device import Device
    from benchmark.training.loop import Trainer


@dataclass(frozen=True)
class Context:
    """What a stage needs besides its parameters and inputs; none of it changes the output.

    Attributes:
        out: Folder to write into.
        checkpoints: Folder where a killed run may have left checkpoints; all ranks share it.
        device: Where to compute.
        local: The stage's local values.
        progress: Called with the share that is done.
    """

    out: Path
    checkpoints: Path
    device: Device
    local: Mapping[str, Any]
    progress: Callable[[float], None]


Inputs = Mapping[str, Path]
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
    made: Dataset = registry.dataset(params["dataset"]).load(
        None if root is None else Path(root), **params["options"]
    )
    write_dataset(made, context.out)
    return {
        "fingerprint": made.fingerprint(),
        "n_train": len(made.train),
        "n_test": len(made.evaluations["test"]),
        "n_classes": len(made.class_names),
        "facts": dict(made.facts),
    }


def train(params: Params, inputs: Inputs, context: Context) -> dict[str, Any]:
    """Train a generation alone: classification loss only."""
    from benchmark.training.embedding import new_model, train_embedding

    _check_ahead(inputs, context.local.get("ahead", ()))
    chosen = _training_data(params, inputs, context.local)
    trainer = _trainer(params, context)
    if params.get("texts"):
        return _train_pair(params, inputs, chosen, trainer, context)
    encoder, head = new_model(_spec(params), chosen, trainer)
    curve = train_embedding(encoder, head, chosen, trainer, spec=_spec(params))
    return _write_model(encoder, head, context.out) | {
        "n_images": len(chosen), "n_classes": len(chosen.classes),
        "curves": {"model": curve.state_dict()},
    }  # fmt: skip


def _train_pair(
    params: Params, inputs: Inputs, chosen: TrainingData, trainer: Trainer, context: Context
) -> dict[str, Any]:
    """A generation that is asked with texts: its model reads these; images have another."""
    from benchmark.models.module import save_module
    from benchmark.training.text_image import train_pair

    names = read_dataset(inputs["data"]).class_names
    texts, encoder, head, curve = train_pair(_spec(params), chosen, names, trainer)
    save_module(encoder.cpu(), context.out / f"{IMAGES}.safetensors")
    return _write_model(texts, head, context.out) | {
        "n_images": len(chosen), "n_classes": len(chosen.classes),
        "curves": {"model": curve.state_dict()},
        "image_parameters": sum(p.numel() for p in encoder.parameters()),
    }  # fmt: skip


def side(params: Params, inputs: Inputs, context: Context) -> dict[str, Any]:
    """Train the side-information model of a generation."""
    module = importlib.import_module(f"benchmark.training.side_{params['module']}")
    chosen = _training_data(params, {"data": inputs.get("other", inputs["data"])})
    if "other" in inputs:
        from benchmark.training.data import resized

        chosen = resized(chosen, read_dataset(inputs["data"]).train.images.shape[1:])
    trainer = _trainer(params, context)
    model, curve = module.train(_spec(params), chosen, trainer, **params["options"])
    facts = _write_model(model, None, context.out)
    return facts | {"curves": {params["module"]: curve.state_dict()}}


def embed(params: Params, inputs: Inputs, context: Context) -> dict[str, Any]:
    """Embed the test items or the training images of a split."""
    from benchmark.models.module import load_module
    from benchmark.models.texts import TextEncoder, embed_texts
    from benchmark.training.embedding import embed as embed_images

    made = read_dataset(inputs["data"])
    part = params["part"]
    chosen = _evaluation(made, part) if isinstance(part, str) else _rows(made, [part])
    model = load_module(inputs["model"] / f"{params['file']}.safetensors")
    device = _trainer_device(context)
    if isinstance(model, TextEncoder):  # the text of an item is the name of its class
        classes, place = np.unique(chosen.labels, return_inverse=True)
        texts = [made.class_names[c] for c in classes]
        vectors = embed_texts(model, texts, device).numpy()[place]
    else:
        vectors = embed_images(model, chosen.images, device)
    np.save(context.out / VECTORS, vectors)
    return {"n": len(vectors), "dim": int(vectors.shape[1])}


def update(params: Params, inputs: Inputs, context: Context) -> dict[str, Any]:
    """Let a method train or fit the new generation, given the earlier ones."""
    from benchmark.contract.method import UpdateJob

    method = registry.method(params["method"], params["config"])
    kept = params["old_head"] == "kept"
    n = sum(role.startswith("model") for role in inputs)
    chain = [
        _generation(
            inputs[f"model{j}"], inputs[f"features{j}"],
            inputs.get("side") if j == n - 1 else None, kept,
        )
        for j in range(n)
    ]  # fmt: skip
    independent = None
    if "independent" in inputs:
        features = inputs["independent_features"]
        independent = _generation(inputs["independent"], features, inputs.get("new_side"), True)
    job = UpdateJob(
        data=_training_data(params, inputs, context.local),
        chain=tuple(chain),
        independent=independent,
        spec=_spec(params),
        distance=params["distance"],
        trainer=_trainer(params, context),
        n_classes=len(read_dataset(inputs["data"]).class_names),
    )
    made = method.update(job) if chain else method.first(job)
    return _write_update(made, method.own_model, context.out)


def evaluate(params: Params, inputs: Inputs, context: Context) -> dict[str, Any]:
    """Score every case by every task, on embeddings only."""
    from benchmark.harness.evaluation.cases import build_cases
    from benchmark.harness.evaluation.details import Collector

    made = read_dataset(inputs["data"])
    items = _judging(made, params, context.local)
    named = [registry.task(name) for name in params["tasks"]]
    tasks = [t for t in named if not getattr(t, "PARTIAL", False)]
    results: dict[str, dict[str, Any]] = {}
    shown = Collector(params, inputs, items, made.class_names)
    for case in build_cases(params, inputs):
        asked = [t for t in tasks if _asks(t, case)]
        got = [t.evaluate(case.query, case.gallery, items, params) for t in asked]
        if got:
            results[case.name] = {
                part: {k: v for result in got for k, v in getattr(result, part).items()}
                for part in ("scores", "intervals", "counts")
            }
        shown.add(case, got)
    (context.out / DETAILS).write_bytes(shown.pack())
    (context.out / "cases.json").write_text(json.dumps(results, sort_keys=True))
    if len(tasks) < len(named):
        from benchmark.harness.evaluation.partial_backfill import judge

        (context.out / REFILL).write_text(json.dumps(judge(params, inputs, items)))
    return score_sides(params, inputs, items)


def _asks(task: ModuleType, case: Case) -> bool:
    """Does a task judge such a case?"""
    if getattr(task, "TEXTS", False) or case.texts:
        return case.texts and getattr(task, "TEXTS", False)
    return not case.swapped or getattr(task, "SWAPPED", False)


def _evaluation(made: Dataset, name: str) -> Evaluation:
    derived = getattr(registry.dataset(made.name), "DERIVED", {})
    if name in derived:
        make, of = derived[name]
        chosen: Evaluation = make(made.evaluations[of])
        return chosen
    if name not in made.evaluations:
        raise unknown(f"evaluation set of {made.name}", name, made.evaluations)
    return made.evaluations[name]


def _judging(made: Dataset, params: Params, local: Params) -> Evaluation:
    """The items that judge, those that a protocol narrows them to."""
    items = _evaluation(made, params["part"])
    if "narrow" not in params:
        return items
    from benchmark.data.splits import narrow

    with located(local.get("where", "")):
        return narrow(items, made.train.labels, **params["narrow"])


def _rows(made: Dataset, splits: list[Params], local: Params | None = None) -> ImageSet:
    where = (local or {}).get("where", "")
    rows = np.unique(np.concatenate([_split_rows(made, split, where) for split in splits]))
    return ImageSet(take(made.train.images, rows), made.train.labels[rows])


def _split_rows(made: Dataset, split: Params, where: str) -> Ints:
    """Rows of the training images that a generation sees, ``[k]``."""
    from benchmark.data.splits import rows_of

    def class_ids(groups: Sequence[str]) -> Ints:
        group_of = registry.dataset(made.name).class_group
        found = np.array([group_of(name) for name in made.class_names])
        for name in groups:
            if name not in found:
                raise unknown(f"group of dataset {made.name}", name, set(found.tolist()))
        return np.flatnonzero(np.isin(found, groups))

    with located(where):
        return rows_of(made.train.labels, split, class_ids)


def _check_ahead(inputs: Inputs, ahead: Sequence[Params]) -> None:
    """Before the first generation is trained: has every one data, and does anything judge?"""
    made = read_dataset(inputs["data"])
    for each in ahead:
        if "split" in each:
            _split_rows(made, each["split"], each["where"])
        else:
            _judging(made, each, each)


def _training_data(params: Params, inputs: Inputs, local: Params | None = None) -> TrainingData:
    import torch

    from benchmark.training.data import TrainingData

    chosen = _rows(read_dataset(inputs["data"]), params["splits"], local)
    classes, labels = np.unique(chosen.labels, return_inverse=True)
    return TrainingData(chosen.images, torch.from_numpy(labels), torch.from_numpy(classes))


def _spec(params: Params) -> ModelSpec:
    return ModelSpec(**params["spec"])


def _recipe(params: Params) -> Recipe:
    values = dict(params["recipe"])
    return Recipe(**{**values, "augment": Augment(**values.get("augment", {}))})


def _trainer(params: Params, context: Context) -> Trainer:
    from benchmark.training.loop import Trainer

    return Trainer(
        _recipe(params), params["seed"], context.device, context.checkpoints, context.progress
    )


def _trainer_device(context: Context) -> Any:
    from benchmark.training.device import torch_device

    return torch_device(context.device)


def _generation(model: Path, features: Path, side_path: Path | None, head: bool) -> Generation:
    import torch

    from benchmark.contract.method import Generation
    from benchmark.models.module import load_module

    loaded = load_module(model / MODEL).eval().requires_grad_(False)
    stored = load_module(model / HEAD) if head and (model / HEAD).exists() else None
    if stored is not None:
        stored.eval().requires_grad_(False)
    side_info = None if side_path is None else torch.from_numpy(np.load(side_path / VECTORS))
    return Generation(loaded, stored, torch.from_numpy(np.load(features / VECTORS)), side_info)  # type: ignore[arg-type]


def _write_model(model: Portable, head: Portable | None, out: Path) -> dict[str, Any]:
    from benchmark.config.files import file_digest
    from benchmark.models.module import save_module

    save_module(model.cpu(), out / MODEL)
    if head is not None:
        save_module(head.cpu(), out / HEAD)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "checkpoint": file_digest(out / MODEL),
    }


def _write_update(made: Update, own_model: bool, out: Path) -> dict[str, Any]:
    from benchmark.contract.conversion import PARTS
    from benchmark.models.module import save_module

    facts: dict[str, Any] = _write_model(made.model, made.head, out) if own_model else {}
    facts["curves"] = {name: curve.state_dict() for name, curve in made.curves.items()}
    counted: dict[int, int] = {}  # parts may share modules: a priority holds the map it judges
    for name in PARTS:
        part = getattr(made, name)
        if part is not None:
            save_module(part.cpu(), out / f"{name}.safetensors")
            counted |= {id(p): p.numel() for p in part.parameters()}
    facts["added_parameters"] = sum(counted.values())
    return facts
