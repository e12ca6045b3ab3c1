"""Stages that a test makes by hand: evaluations of folders, and trainings of a title alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmark.harness.graph import Stage
from benchmark.harness.work import DataWork, EvaluationWork, ModelWork
from benchmark.records.stage_titles import StageTitle

USUAL = {"part": "test", "distance": "cosine", "far": [0.1], "fpir": [0.1], "tasks": ["retrieval"]}


def of_folders(folders: Mapping[str, Path], **params: Any) -> EvaluationWork[Path]:
    """``vectors0``, ``update1``, ``side0``, ``direct0-2``, ... as an evaluation has them."""
    n = sum(role.startswith("vectors") for role in folders)
    direct = {(j, i): f"direct{j}-{i}" for i in range(n) for j in range(i)}
    return EvaluationWork(
        **USUAL | params, data=Path(), vectors=tuple(folders[f"vectors{i}"] for i in range(n)),
        updates=tuple(folders.get(f"update{i}") for i in range(n)),
        sides=tuple(folders.get(f"side{i}") for i in range(n)),
        direct={k: folders[role] for k, role in direct.items() if role in folders},
        head_new=folders.get("head_new"), head_old=folders.get("head_old"),
    )  # fmt: skip


def titled(title: str) -> Stage:
    """A stage of a title: an evaluation, or else a training."""
    about = StageTitle.parse(title)
    data = Stage(about, DataWork(dataset="toy", options={}, source={}))
    if about.verb == "evaluate":
        inputs = {"data": data, "vectors": (), "updates": (), "direct": {}, "sides": ()}
        return Stage(about, EvaluationWork(**USUAL, generations=(), seed=about.seed, **inputs))
    usual = {"spec": {}, "recipe": {}, "splits": [], "seed": about.seed or 0}
    return Stage(about, ModelWork(data=data, **usual))
