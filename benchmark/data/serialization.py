"""A dataset as a folder of arrays: written once, mapped into memory by every stage.

Images that stay encoded are written as the list of their files, without their pixels.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.config.reading import build
from benchmark.data.base import Dataset, Evaluation, ImageSet
from benchmark.data.decode import View
from benchmark.data.encoded import EncodedImages
from benchmark.data.files import Files
from benchmark.data.recordio import Records
from benchmark.errors import BenchError

_META = "dataset.json"
_OPTIONAL = ("weight", "pairs")


def write_dataset(dataset: Dataset, folder: Path) -> None:
    """Write every array of a dataset as ``.npy`` and everything else as JSON."""
    _write(dataset.train, folder, "train")
    for name, items in dataset.evaluations.items():
        _write(items, folder, name)
    meta = {
        "name": dataset.name,
        "class_names": dataset.class_names,
        "facts": dict(dataset.facts),
        "evaluations": {
            name: {"group_names": items.group_names, "n_galleries": len(items.galleries)}
            for name, items in dataset.evaluations.items()
        },
    }
    (folder / _META).write_text(json.dumps(meta, ensure_ascii=False))


def _write(images: ImageSet, folder: Path, part: str) -> None:
    for field in fields(images):
        value = getattr(images, field.name)
        if field.name == "galleries":
            for i, gallery in enumerate(value):
                np.save(folder / f"{part}.gallery{i}.npy", gallery)
        elif isinstance(value, EncodedImages):
            _write_encoded(value, folder, part)
        elif field.name != "group_names" and value is not None:
            np.save(folder / f"{part}.{field.name}.npy", value[np.arange(len(value))])


def _write_encoded(images: EncodedImages, folder: Path, part: str) -> None:
    source = images.source
    meta = {"root": str(source.root.resolve()), "view": asdict(images.view)}
    (folder / f"{part}.encoded.json").write_text(json.dumps(meta))
    if isinstance(source, Files):
        names = "\n".join(source.names).encode("utf-8", "surrogateescape")
        (folder / f"{part}.names.txt").write_bytes(names)
    else:
        np.save(folder / f"{part}.places.npy", source.places)
    if images.geometry is not None:
        np.save(folder / f"{part}.geometry.npy", images.geometry)


def read_dataset(folder: Path) -> Dataset:
    """Read what :func:`write_dataset` wrote; images stay on disk until they are used.

    Raises:
        BenchError: If a file is missing or damaged.
    """
    try:
        meta = json.loads((folder / _META).read_text())
        train = ImageSet(_images(folder, "train"), np.load(folder / "train.labels.npy"))
        evaluations = {
            name: _evaluation(folder, name, facts) for name, facts in meta["evaluations"].items()
        }
    except (OSError, ValueError, KeyError) as error:
        raise BenchError(f"{folder}: damaged dataset ({error}); delete the folder") from error
    return Dataset(meta["name"], train, evaluations, tuple(meta["class_names"]), meta["facts"])


def _evaluation(folder: Path, part: str, facts: dict[str, Any]) -> Evaluation:
    columns: dict[str, Any] = {"images": _images(folder, part)}
    for field in fields(Evaluation):
        path = folder / f"{part}.{field.name}.npy"
        if field.name not in ("images", "galleries", "group_names"):
            missing = field.name in _OPTIONAL and not path.exists()
            columns[field.name] = None if missing else np.load(path)
    galleries = [np.load(folder / f"{part}.gallery{i}.npy") for i in range(facts["n_galleries"])]
    names = tuple(facts["group_names"])
    return Evaluation(**columns, galleries=tuple(galleries), group_names=names)


def _images(folder: Path, part: str) -> Any:
    """Images of a part: mapped, or the list of those that stay encoded."""
    path = folder / f"{part}.encoded.json"
    if not path.exists():
        return np.load(folder / f"{part}.images.npy", mmap_mode="r")
    meta = json.loads(path.read_text())
    root, names = Path(meta["root"]), folder / f"{part}.names.txt"
    source: Files | Records
    if names.exists():
        text = names.read_bytes().decode("utf-8", "surrogateescape")
        source = Files(root, tuple(text.split("\n")))
    else:
        source = Records(root, np.load(folder / f"{part}.places.npy"))
    geometry = folder / f"{part}.geometry.npy"
    boxes = np.load(geometry) if geometry.exists() else None
    return EncodedImages(source, build(View, meta["view"], str(path)), boxes)
