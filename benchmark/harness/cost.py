"""Costs of a method for a deployment: parameters, multiply-adds, bytes an item."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from benchmark.config import registry
from benchmark.data.features import Block
from benchmark.data.serialization import read_dataset
from benchmark.harness.evaluation.cases import load_merge
from benchmark.harness.graph import EvaluationStage, Result, Stage, StageOf
from benchmark.harness.store import Store
from benchmark.harness.work import EmbeddingWork, ModelWork, TakenWork
from benchmark.models.frozen import StoredFeatures, find_features
from benchmark.models.module import load_module
from benchmark.records.record import Cost

EmbeddingStage = StageOf[EmbeddingWork[Stage]]
_FLOAT = 4  # bytes of a stored number


def cost(result: Result, metas: Mapping[str, Any], store: Store) -> Cost:
    """The cost of a result, from facts and times of each of its stages by the stage's name."""
    facts = [metas[s.name]["facts"] for s in result.updates]
    # Not the models of side-information, which are no part of the new one.
    trained = [
        metas[s.name]["facts"] for s in result.stages if isinstance(s.work, ModelWork | TakenWork)
    ]
    new_model = next((f for f in reversed(facts) if "parameters" in f), trained[-1])
    added = sum(f.get("added_parameters", 0) for f in facts)
    work = {} if result.evaluation is None else _work(result.evaluation, metas, store)
    evaluation = result.evaluation or result.bound
    newest = evaluation.work.vectors[-1]
    frozen = sum(f["backbone_parameters"] for f in _backbones(newest, metas, store))
    parameters = {"parameters": new_model["parameters"] + frozen, "added_parameters": added}
    return Cost(**parameters, **work, **_at_query_time(result))


def _at_query_time(result: Result) -> dict[str, int]:
    """Cost of a query beyond one model run and one index; nothing if that is all."""
    method = registry.method(result.label, result.config)
    usual = {"model_runs": 1, "indexes": 1, "new_embeddings": 0}
    declared = {name: getattr(method, name) for name in usual}
    if declared["model_runs"] > 1:  # in a chain each model of it
        declared["model_runs"] = max(declared["model_runs"], len(result.updates) + 1)
    tasks = () if result.evaluation is None else result.evaluation.work.tasks
    if declared["new_embeddings"] and "backfilling" in tasks:  # filled items have an index, too
        declared["indexes"] = max(declared["indexes"], 2)
    return {} if declared == usual else declared


def _work(evaluation: EvaluationStage, metas: Mapping[str, Any], store: Store) -> dict[str, Any]:
    """Multiply-adds and bytes of one item."""
    work = evaluation.work
    embedded = work.vectors
    updates = [store.path(update.name) for update in work.updates if update is not None]
    old, new = (metas[embedded[i].name]["facts"]["dim"] for i in (0, -1))
    sides = metas[evaluation.name]["facts"].get("side", {}).get("generations", {})
    side = next(iter(sides.values()), {"dim": 0, "bytes": 0})
    first_side = torch.zeros(1, side["dim"]) if sides else None
    stored: tuple[Any, ...] = (torch.zeros(1, old), first_side)
    queries: tuple[Any, ...] = (torch.zeros(1, new),)
    convert = query = 0
    for folder in updates:
        products, stored = _apply(folder / "convert.safetensors", *stored)
        convert += products
    for i, folder in reversed(list(enumerate(updates))):
        if (folder / "joint_view.safetensors").exists():
            dim = metas[embedded[i].name]["facts"]["dim"]
            view = folder / "joint_view.safetensors"
            products, queries = _apply(view, *queries, torch.zeros(1, dim))
        else:
            products, queries = _apply(folder / "query_view.safetensors", *queries)
        query += products
    # Side-information that a conversion computes has numbers where the first may have bits.
    beside = side["bytes"] if stored[1] is first_side else _FLOAT * stored[1].shape[1]
    merges = filter(None, map(load_merge, updates))
    both = any(merge.searches and merge.fused_by != "second" for merge in merges)  # two indexes
    return {
        "multiply_adds": _embedding(embedded[-1], metas, store),
        # With text queries images have an encoder of their own.
        "old_multiply_adds": _embedding([*work.images, embedded[0]][0], metas, store),
        "convert_multiply_adds": convert,
        "query_multiply_adds": query,
        "bytes_before": float(_FLOAT * old + side["bytes"]),
        "bytes_after": float(_FLOAT * (stored[0].shape[1] + both * new) + beside),
        "bytes_new": float(_FLOAT * new),
    }


def _apply(path: Path, *arrays: Any) -> tuple[int, tuple[Any, ...]]:
    """Multiply-adds of a part of an update, and its output; without one the input."""
    if not path.exists():
        return 0, arrays
    work, out = multiply_adds(load_module(path), *arrays)
    return work, out if isinstance(out, tuple) else (out,)


def _embedding(stage: EmbeddingStage, metas: Mapping[str, Any], store: Store) -> int:
    """Multiply-adds of embedding an image as a stage does; of a frozen backbone, too."""
    blocks = tuple((f["key"], f["dim"]) for f in _features(stage, metas))
    if blocks:
        shape: tuple[int, ...] = (sum(width for _, width in blocks), 1, 1)
    else:
        shape = read_dataset(store.path(stage.work.data.name)).train.images.shape[1:]
    frozen = sum(f["backbone_multiply_adds"] for f in _backbones(stage, metas, store))
    return _of_image(_model_file(stage, store), shape, blocks) + int(frozen)


def _model_file(stage: EmbeddingStage, store: Store) -> Path:
    return store.path(stage.work.model.name) / f"{stage.work.file}.safetensors"


def _features(stage: EmbeddingStage, metas: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Facts of the features that a stage sees in place of images."""
    return [metas[view.name]["facts"] for views in stage.work.frozen for view in views]


def _backbones(
    stage: EmbeddingStage, metas: Mapping[str, Any], store: Store
) -> list[Mapping[str, Any]]:
    """Facts of the frozen backbones that a stage's model stands on."""
    facts = _features(stage, metas)
    parts = load_module(_model_file(stage, store)).modules() if facts else ()
    used = {part.key for part in parts if isinstance(part, StoredFeatures)}
    return [each for each in facts if each["key"] in used]


@cache
def _of_image(path: Path, shape: tuple[int, ...], blocks: tuple[Block, ...]) -> int:
    module = find_features(load_module(path), blocks)
    return multiply_adds(module, torch.zeros(1, *shape))[0]


def multiply_adds(module: nn.Module, *inputs: Any) -> tuple[int, Any]:
    """Number of products that a module sums, and its output.

    Counted are convolutions and matrix products, as torch counts them (two operations each);
    what is done element by element is left out.

    Example:
        >>> import torch
        >>> multiply_adds(torch.nn.Linear(8, 3), torch.zeros(1, 8))[0]
        24
    """
    module.eval()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        out = module(*inputs)
    return counter.get_total_flops() // 2, out
