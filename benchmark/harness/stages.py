"""The stages of a plan: plain functions from parameters and input folders to an output folder.

It loads torch: import it only where a stage is carried out.
"""

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.config import registry
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
from benchmark.errors import RefusedError, located, unknown
from benchmark.harness import work as kinds
from benchmark.harness.evaluation.cases import Case, build_cases
from benchmark.harness.evaluation.details import DetailsCollector, score_side_information
from benchmark.harness.evaluation.partial_backfill import evaluate_backfilling
from benchmark.harness.features import blocks_of, compute_features, seen_dataset
from benchmark.harness.published_models import take_files
from benchmark.harness.store import (
    BACKFILLING,
    CASES,
    DETAILS,
    HEAD,
    IMAGES,
    MODEL,
    VECTORS,
    load_vectors,
)
from benchmark.harness.work import PlainValues
from benchmark.models.frozen import find_features
from benchmark.models.heads import cosine_scale
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

Facts = dict[str, Any]


@dataclass(frozen=True)
class Context:
    """Surroundings of a stage besides its work; none of it changes the output."""

    out: Path  # folder to write into
    checkpoints: Path  # folder where a killed run may have left checkpoints; all ranks share it
    device: Device
    progress: Callable[[float], None]  # takes the share that is done, after a checkpoint
    within: Callable[[float], None] = lambda share: None  # likewise, between checkpoints
    title: str = ""  # of the stage, for errors


def run_stage(work: kinds.StageWork[Path], context: Context) -> Facts:
    """Carry out one stage; returns facts worth keeping beside its output."""
    functions: dict[str, Callable[[Any, Context], Facts]] = {
        "data": data, "features": features, "train": train, "embed": embed, "side": side,
        "first": update, "update": update, "evaluate": evaluate, "take": take,
    }  # fmt: skip
    return functions[work.kind](work, context)


def data(work: kinds.DataWork[Path], context: Context) -> Facts:
    """Load a dataset and keep it as arrays."""
    reader = read_options(work.dataset, work.options)
    dataset = reader.load(work.data_root)
    write_dataset(dataset, context.out)
    return {
        "fingerprint": dataset.fingerprint(), "n_train": len(dataset.train),
        "n_test": len(dataset.evaluations["test"]), "n_classes": len(dataset.class_names),
        "facts": dict(dataset.facts),
    }  # fmt: skip


def features(work: kinds.FeatureWork[Path], context: Context) -> Facts:
    """Embed every image by a frozen backbone, once for all that is trained on it."""
    part = {k: value for k, value in work.spec.items() if k not in ("package", "run")}
    spec = _spec(part | {"dim": 1, "frozen": True}, work.weights)
    return compute_features(
        spec, read_dataset(work.data), work, context.out, torch_device(context.device),
        context.within,
    )  # fmt: skip


def train(work: kinds.ModelWork[Path], context: Context) -> Facts:
    """Train a generation alone by classification loss; of text queries a model of each modality."""
    dataset = seen_dataset(work)
    for demand in work.ahead:  # before the first training, every generation's, and evaluation's
        if demand.split is not None:
            _split_rows(dataset, demand.split, demand.where)
        else:
            _evaluated_items(dataset, demand.where, demand.part, demand.narrow)
    training = _training_data(dataset, work)
    trainer, spec = _trainer(work, context), _spec(work.spec, work.weights)
    facts = _weights(spec)
    model: Portable
    if work.texts:
        model, encoder, head, curve = train_pair(spec, training, dataset.class_names, trainer)
        save_module(encoder.cpu(), context.out / f"{IMAGES}.safetensors")
        facts["image_parameters"] = _size(encoder)
    else:
        model, head = embedding.new_model(spec, training, trainer)
        curve = embedding.train_embedding(model, head, training, trainer, spec=spec)
        facts["fit"] = embedding.fit_of(model, head, training, trainer.torch_device())
    return facts | _write_model(model, head, context.out) | {
        "n_images": len(training), "n_classes": len(training.classes),
        "curves": {"model": curve.state_dict()},
    }  # fmt: skip


def take(work: kinds.TakenWork[Path], context: Context) -> Facts:
    """Take a published model instead of training it."""
    take_files(work.files, Path(work.folder), work.address, context.out)
    return dict(work.facts)


def side(work: kinds.SideWork[Path], context: Context) -> Facts:
    """Train the side-information model of a generation."""
    names = {kind.module: f"benchmark.training.side_{kind.module}" for kind in SIDES.values()}
    module = importlib.import_module(registry.known("side-information", work.module, names))
    dataset = seen_dataset(work)
    training = _training_data(dataset if work.other is None else read_dataset(work.other), work)
    shape = dataset.train.images.shape[1:]
    if training.images.shape[1:] != shape:  # of another domain; the same size stays in its files
        training = resized(training, shape)
    trainer = _trainer(work, context)
    model, curve = module.train(_spec(work.spec), training, trainer, **work.options)
    facts = _write_model(model, None, context.out)
    return facts | {"curves": {work.module: curve.state_dict()}}


def embed(work: kinds.EmbeddingWork[Path], context: Context) -> Facts:
    """Embed the test items or the training images of a split."""
    dataset, part, views = seen_dataset(work), work.part, work.views
    evaluation = read_options(dataset.name).evaluation
    items = evaluation(dataset, part) if isinstance(part, str) else _rows(dataset, [part])
    model = load_module(work.model / f"{work.file}.safetensors")
    find_features(model, blocks_of(dataset.train.images))
    device = torch_device(context.device)
    if isinstance(model, TextModel):
        texts, place = _texts_of(items, dataset.class_names)
        vectors = embed_texts(model, texts, device).numpy()[place]
        vectors = np.tile(vectors, (views["count"] if views else 1, 1))
    elif views:
        vectors = _views(model, items.images, device, views, context.progress)
    else:
        vectors = embedding.embed(model, items.images, device)
        if work.mirrored:
            vectors += embedding.embed(model, items.images, device, change=embedding.mirror)
            vectors /= 2  # the lengths that maps are fitted to
    np.save(context.out / VECTORS, vectors)
    return {"n": len(vectors), "dim": int(vectors.shape[1])}


def _texts_of(items: ImageSet, class_names: Sequence[str]) -> tuple[list[str], Ints]:
    """Different captions of items, else names of their classes, and each item's place, ``[n]``."""
    if items.texts is not None:
        places = {text: i for i, text in enumerate(dict.fromkeys(items.texts))}
        return [*places], np.array([places[text] for text in items.texts])
    classes, place = np.unique(items.labels, return_inverse=True)
    return [class_names[c] for c in classes], place


def _views(
    model: Portable, images: Images, device: torch.device, views: PlainValues,
    progress: Callable[[float], None],
) -> np.ndarray:  # fmt: skip
    """Embeddings of augmented views, ``[views * n, d]``, view after view."""
    changes, made = build(Augment, views["augment"], "stage: augment"), []
    for view in range(views["count"]):
        made.append(embedding.embed_view(model, images, device, changes, views["seed"], view))
        progress((view + 1) / views["count"])
    return np.concatenate(made)


def update(work: kinds.UpdateWork[Path], context: Context) -> Facts:
    """Let a method train or fit the new generation, given the earlier ones."""
    method = registry.method(work.method, work.config)
    dataset, kept = seen_dataset(work), work.old_head == "kept"
    blocks, last = blocks_of(dataset.train.images), len(work.models) - 1
    chain = tuple(
        _generation(blocks, *both, kept, *((work.side, work.side_model) if j == last else ()))
        for j, both in enumerate(zip(work.models, work.features, strict=True))
    )
    independent = None
    if work.independent is not None:
        side = work.new_side, work.new_side_model
        features = work.independent_features
        independent = _generation(blocks, work.independent, features, True, *side)
    spec, data = _spec(work.spec, work.weights), _training_data(dataset, work)
    if spec.head == "softmax":  # which has no scale; methods that compare by cosines need one
        spec = spec.model_copy(update={"scale": cosine_scale(len(data.classes))})
    job = UpdateJob(
        data=data, chain=chain, independent=independent,
        spec=spec, distance=work.distance, trainer=_trainer(work, context),
        n_classes=len(dataset.class_names),
    )  # fmt: skip
    result = method.update(job) if chain else method.first(job)
    facts = _weights(spec) if method.own_model else {}
    if method.own_model:
        device = job.trainer.torch_device()
        facts["fit"] = embedding.fit_of(result.model, result.head, job.data, device)
    return facts | _write_update(result, method.own_model, context.out)


def evaluate(work: kinds.EvaluationWork[Path], context: Context) -> Facts:
    """Score every case by every task, on embeddings only."""
    dataset = read_dataset(work.data)
    items = _evaluated_items(dataset, work.where, work.part, work.narrow)
    tasks = [registry.task(name) for name in work.tasks]
    details = DetailsCollector(work, items, dataset.class_names)
    chosen = torch_device(context.device)
    # On a GPU with the run, else exactly, on the CPU.
    with on_device(str(chosen) if chosen.type == "cuda" else CPU):
        return _scored(work, context, items, tasks, details)


def _scored(
    work: kinds.EvaluationWork[Path], context: Context, items: Evaluation, tasks: Sequence[Any],
    details: DetailsCollector,
) -> Facts:  # fmt: skip
    """Score and write every case."""
    by_case, options = [task for task in tasks if isinstance(task, Task)], work.params()
    results: dict[str, dict[str, Any]] = {}
    for case in build_cases(work):
        with located(context.title):
            _require_finite(case)
        scored = [_score(task, case, items, options) for task in by_case if _evaluates(task, case)]
        if scored:
            results[case.name] = {
                part: {k: v for result in scored for k, v in getattr(result, part).items()}
                for part in ("scores", "intervals", "over", "counts")
            }
        details.add(case, scored)
    (context.out / DETAILS).write_bytes(details.pack())
    (context.out / CASES).write_text(json.dumps(results, sort_keys=True))
    if len(by_case) < len(tasks):
        curves = evaluate_backfilling(details.update, items)
        (context.out / BACKFILLING).write_text(json.dumps(curves))
    return score_side_information(work, items)


def _require_finite(case: Case) -> None:
    for name, vectors in (("queries", case.query), ("gallery", case.gallery)):
        if n := int((~np.isfinite(vectors).all(axis=1)).sum()):
            raise RefusedError(
                f"{case.name}: expected finite vectors of the {name}, got NaN or infinity in {n} "
                f"of {len(vectors)}: the method makes them, or its network diverged"
            )


def _evaluates(task: Task, case: Case) -> bool:
    if task.text_queries or case.texts:
        return case.texts and task.text_queries
    if case.second is not None and not isinstance(task, RankingTask):
        return False
    return not case.swapped or task.both_directions


def _score(task: Task, case: Case, items: Evaluation, options: PlainValues) -> TaskResult:
    if isinstance(task, RankingTask):
        return task.evaluate(case.query, case.gallery, items, options, case.second)
    return task.evaluate(case.query, case.gallery, items, options)


def _evaluated_items(
    dataset: Dataset, where: str, part: str, narrowed: PlainValues | None
) -> Evaluation:
    """The items of the evaluation set, or those that a protocol narrows it to."""
    items = read_options(dataset.name).evaluation(dataset, part)
    if narrowed is None:
        return items
    with located(where):
        return narrow(items, dataset.train.labels, **narrowed)


def _rows(dataset: Dataset, splits: Sequence[PlainValues], where: str = "") -> ImageSet:
    rows = np.unique(np.concatenate([_split_rows(dataset, split, where) for split in splits]))
    return take_items(dataset.train, rows)


def _split_rows(dataset: Dataset, split: PlainValues, where: str) -> Ints:
    """Rows of the training images that a generation sees, ``[k]``."""

    def class_ids(groups: Sequence[str]) -> Ints:
        group = np.array(read_options(dataset.name).class_groups(dataset))
        for name in groups:
            if name not in group:
                raise unknown(f"group of dataset {dataset.name}", name, set(group.tolist()))
        return np.flatnonzero(np.isin(group, groups))

    with located(where):
        return rows_of(dataset.train.labels, split, class_ids)


def _training_data(dataset: Dataset, work: kinds.TrainingWork[Path]) -> TrainingData:
    chosen = _rows(dataset, work.splits, work.where)
    classes, labels = np.unique(chosen.labels, return_inverse=True)
    rows, order = torch.from_numpy(labels), torch.from_numpy(classes)
    return TrainingData(chosen.images, rows, order, chosen.texts)


def _spec(values: PlainValues, weights: str | None = None) -> ModelSpec:
    """The model of a stage; a file of weights is known by its hash, and found where it lies."""
    spec = build(ModelSpec, values, "stage: spec")
    if weights is None:
        return spec
    named = str(spec.weights).removeprefix("sha256:")
    return spec.model_copy(update={"weights": weights, "weights_sha256": named})


def _weights(spec: ModelSpec) -> Facts:
    """The hash of the weights that a model starts from."""
    if spec.weights is None:
        return {}
    if spec.frozen:  # its features are of them
        return {"weights_sha256": spec.weights.removeprefix("sha256:")}
    return {"weights_sha256": sha256_of(weights_file(spec))}


def _trainer(work: kinds.TrainingWork[Path], context: Context) -> Trainer:
    recipe = build(Recipe, work.recipe, "stage: recipe")
    return Trainer(
        recipe, work.seed, context.device, context.checkpoints, context.progress, context.within
    )


def _generation(
    blocks: Sequence[Block], model: Path, features: Path | None, head: bool,
    side: Path | None = None, side_model: Path | None = None,
) -> Generation:  # fmt: skip
    """An earlier generation from folders; without a classifier where methods may not see it."""

    def load(folder: Path) -> Any:
        return find_features(load_module(folder / MODEL), blocks)

    encoder, classifier = load(model).eval().requires_grad_(False), None
    if head and (model / HEAD).exists():
        classifier = load_module(model / HEAD).eval().requires_grad_(False)
    vectors, side_info = (
        None if folder is None else torch.from_numpy(load_vectors(folder))
        for folder in (features, side)
    )
    embeds_side = None if side_model is None else load(side_model)
    return Generation(encoder, classifier, vectors, side_info, embeds_side)  # type: ignore[arg-type]


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
