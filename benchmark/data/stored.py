"""A dataset as a folder of arrays: written once, mapped into memory by every stage."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.data.base import Dataset, Evaluation, ImageSet
from benchmark.data.encoded import EncodedImages, read_encoded
from benchmark.errors import BenchError

_WORDS = "dataset.json"
_OPTIONAL = ("weight", "pairs")


def write_dataset(made: Dataset, folder: Path) -> None:
    """Write every array of a dataset as ``.npy`` and the words as JSON."""
    words: dict[str, Any] = {
        "name": made.name,
        "class_names": made.class_names,
        "facts": dict(made.facts),
        "evaluations": {},
    }
    _write(made.train, folder, "train")
    for name, evaluation in made.evaluations.items():
        _write(evaluation, folder, name)
        words["evaluations"][name] = {
            "group_names": evaluation.group_names, "n_galleries": len(evaluation.galleries)
        }  # fmt: skip
    (folder / _WORDS).write_text(json.dumps(words, ensure_ascii=False))


def _write(images: ImageSet, folder: Path, part: str) -> None:
    for field in dataclasses.fields(images):
        value = getattr(images, field.name)
        if field.name == "galleries":
            for i, gallery in enumerate(value):
                np.save(folder / f"{part}.gallery{i}.npy", gallery)
        elif isinstance(value, EncodedImages):
            value.write(folder, part)
        elif field.name != "group_names" and value is not None:
            np.save(folder / f"{part}.{field.name}.npy", value[np.arange(len(value))])


def read_dataset(folder: Path) -> Dataset:
    """Read what :func:`write_dataset` wrote; images stay on disk until they are asked for.

    Raises:
        BenchError: If a file is missing or damaged.
    """
    try:
        words = json.loads((folder / _WORDS).read_text())
        train = ImageSet(_load(folder, "train", "images"), _load(folder, "train", "labels"))
        evaluations = {
            name: _evaluation(folder, name, facts) for name, facts in words["evaluations"].items()
        }
    except (OSError, ValueError, KeyError) as error:
        raise BenchError(f"{folder}: damaged dataset ({error}); delete the folder") from error
    names = tuple(words["class_names"])
    return Dataset(words["name"], train, evaluations, names, words["facts"])


def _load(folder: Path, part: str, column: str) -> Any:
    if column == "images":
        encoded = read_encoded(folder, part)
        if encoded is not None:
            return encoded
    path = folder / f"{part}.{column}.npy"
    if column in _OPTIONAL and not path.exists():
        return None
    mode = "r" if column == "images" else None
    return np.load(path, mmap_mode=mode, allow_pickle=False)  # type: ignore[arg-type]


def _evaluation(folder: Path, part: str, facts: dict[str, Any]) -> Evaluation:
    columns = {
        f.name: _load(folder, part, f.name)
        for f in dataclasses.fields(Evaluation)
        if f.name not in ("galleries", "group_names")
    }
    galleries = tuple(_load(folder, part, f"gallery{i}") for i in range(facts["n_galleries"]))
    return Evaluation(**columns, galleries=galleries, group_names=tuple(facts["group_names"]))
