"""A dataset as a folder of arrays: written once, mapped into memory by every stage.

Images that stay encoded are written as the list of their files, without their pixels.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from benchmark.config.reading import build
from benchmark.data.base import Dataset, Evaluation, Images, ImageSet
from benchmark.data.domains import JoinedImages
from benchmark.data.files import Files
from benchmark.data.images import EncodedImages, View
from benchmark.data.recordio import Records
from benchmark.errors import BenchError

_META = "dataset.json"


def write_dataset(dataset: Dataset, folder: Path) -> None:
    """Write every array of a dataset as ``.npy`` or ``.npz`` and everything else as JSON."""
    parts = {"train": dataset.train, **dataset.evaluations}
    meta = {
        "name": dataset.name,
        "class_names": dataset.class_names,
        "class_groups": dataset.class_groups,
        "facts": dict(dataset.facts),
        "parts": {name: _write(items, folder, name) for name, items in parts.items()},
    }
    (folder / _META).write_text(json.dumps(meta, ensure_ascii=False))


def _write(items: ImageSet, folder: Path, part: str) -> dict[str, Any]:
    """Write the arrays of a part; returns the rest."""
    columns = {name: column for name, column in vars(items).items() if column is not None}
    images, galleries = columns.pop("images"), columns.pop("galleries", ())
    texts = columns.pop("texts", None)
    if texts is not None:
        (folder / f"{part}.texts.json").write_text(json.dumps(texts, ensure_ascii=False))
    columns |= {f"gallery{i}": gallery for i, gallery in enumerate(galleries)}
    meta = {"group_names": columns.pop("group_names", ()), "n_galleries": len(galleries)}
    pictured, arrays = _write_images(images, folder, part)
    np.savez(folder / f"{part}.npz", **columns, **arrays)
    return meta | pictured


def _write_images(images: Images, folder: Path, part: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write pixels, or the list of files; returns what goes to JSON, and to the part's arrays."""
    if isinstance(images, JoinedImages):
        joined = []
        for i, each in enumerate(images.parts):
            meta, arrays = _write_images(each, folder, f"{part}.{i}")
            np.savez(folder / f"{part}.{i}.npz", **arrays)
            joined.append(meta)
        return {"joined": joined}, {"index": images.index}
    if not isinstance(images, EncodedImages):
        np.save(folder / f"{part}.images.npy", images[np.arange(images.shape[0])])
        return {}, {}
    arrays = {} if images.geometry is None else {"geometry": images.geometry}
    if isinstance(images.source, Records):
        arrays["places"] = images.source.places
    else:
        names = "\n".join(images.source.names).encode("utf-8", "surrogateescape")
        (folder / f"{part}.names.txt").write_bytes(names)
    return {"root": str(images.source.root.resolve()), "view": asdict(images.view)}, arrays


def read_dataset(folder: Path) -> Dataset:
    """Read a written dataset, its images on demand; BenchError if a file is missing or damaged."""
    try:
        meta = json.loads((folder / _META).read_text())
        sets = {name: _read(folder, name, part) for name, part in meta["parts"].items()}
        train = ImageSet(**sets.pop("train"))
        evaluations = {name: Evaluation(**columns) for name, columns in sets.items()}
    except (OSError, EOFError, ValueError, KeyError, TypeError, BadZipFile) as error:
        raise BenchError(f"{folder}: damaged dataset ({error}); delete the folder") from error
    groups = tuple(meta.get("class_groups", ()))  # those written before have none
    names = tuple(meta["class_names"])
    return Dataset(meta["name"], train, evaluations, names, meta["facts"], groups)


def image_roots(folder: Path) -> set[Path]:
    """Places of the images of a written dataset that stay in their files; none of arrays."""
    try:
        todo = [*json.loads((folder / _META).read_text())["parts"].values()]
    except (OSError, ValueError, KeyError, AttributeError):
        return set()  # damaged, which :func:`read_dataset` tells
    roots = set()
    while todo:
        part = todo.pop()
        todo += part.get("joined", ())
        roots |= {Path(part["root"])} if "root" in part else set()
    return roots


def _read(folder: Path, part: str, meta: dict[str, Any]) -> dict[str, Any]:
    """Columns of a part."""
    with np.load(folder / f"{part}.npz") as arrays:
        columns: dict[str, Any] = dict(arrays)
    columns["images"] = _images(folder, part, meta, columns)
    texts = folder / f"{part}.texts.json"
    if texts.exists():
        columns["texts"] = tuple(json.loads(texts.read_text()))
    if part != "train":
        galleries = [columns.pop(f"gallery{i}") for i in range(meta["n_galleries"])]
        columns |= {"galleries": tuple(galleries), "group_names": tuple(meta["group_names"])}
    return columns


def _images(folder: Path, part: str, meta: dict[str, Any], columns: dict[str, Any]) -> Images:
    """Images of a part: mapped, or the list of those that stay encoded; or several such."""
    if "joined" in meta:
        parts = []
        for i, each in enumerate(meta["joined"]):
            with np.load(folder / f"{part}.{i}.npz") as arrays:
                parts.append(_images(folder, f"{part}.{i}", each, dict(arrays)))
        return JoinedImages(tuple(parts), columns.pop("index"))
    if "view" not in meta:
        images: Images = np.load(folder / f"{part}.images.npy", mmap_mode="r")
        return images
    source: Files | Records
    if "places" in columns:
        source = Records(Path(meta["root"]), columns.pop("places"))
    else:
        text = (folder / f"{part}.names.txt").read_bytes().decode("utf-8", "surrogateescape")
        source = Files(Path(meta["root"]), tuple(text.split("\n")))
    view = build(View, meta["view"], f"{folder / _META}: {part}: view")
    return EncodedImages(source, view, columns.pop("geometry", None))
