"""The stage ``features``: images by a frozen backbone, each different image once."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmark.config.reading import build
from benchmark.config.recipes import Augment, ModelSpec
from benchmark.config.seeds import generator
from benchmark.data.base import Dataset, Images, Ints
from benchmark.data.features import Block, Features, StoredViews
from benchmark.data.serialization import read_dataset
from benchmark.harness.artifacts import FROZEN, Inputs
from benchmark.harness.cost import multiply_adds
from benchmark.models.backbones import to_unit
from benchmark.training.augment import augment
from benchmark.training.embedding import frozen_backbone

ARRAY, ROWS, TRAIN = "features.npy", "rows.npz", "train"
_BATCH = 32


def compute_features(
    spec: ModelSpec, dataset: Dataset, params: Mapping[str, Any], out: Path, device: torch.device,
    within: Callable[[float], None] = lambda share: None,
) -> dict[str, Any]:  # fmt: skip
    """Write features ``[m, d]`` of the different images of a dataset, and the rows of each part.

    Args:
        spec: The frozen model, its weights where they lie.
        dataset: Images of one size.
        params: ``precision`` of the features; maybe the number of a ``view`` and its ``augment``,
            by which the training images, and no others, are changed first.
        out: Folder to write into.
        device: Device of the backbone.
        within: Called with the share that is done.

    Returns:
        Key and width of the features, and what an image costs.
    """
    parts = {TRAIN: dataset.train.images}
    changes, rng = Augment(), generator(0, "stored view", params.get("view", 0))
    if "view" in params:
        changes = build(Augment, params["augment"], "stage: augment")
    else:
        parts |= {name: items.images for name, items in dataset.evaluations.items()}
    _, channels, side, _ = dataset.train.images.shape
    network = frozen_backbone(spec, channels, side).to(device)
    found, rows = list[np.ndarray](), {name: np.empty(0, np.int64) for name in parts}
    places: dict[bytes, int] = {}
    total, done = sum(images.shape[0] for images in parts.values()), 0
    for name, pixels in _batches(parts):
        keys = [hashlib.blake2b(image.tobytes(), digest_size=16).digest() for image in pixels]
        new = [k for k, key in enumerate(keys) if key not in places and key not in keys[:k]]
        places |= {keys[k]: len(places) + i for i, k in enumerate(new)}
        if new:
            batch = to_unit(torch.from_numpy(pixels[new]))
            seen = augment(batch, changes, rng) if "view" in params else batch
            found.append(_embedded(network, seen.to(device)).astype(params["precision"]))
        rows[name] = np.concatenate([rows[name], [places[key] for key in keys]])
        done += len(keys)
        within(done / total)
    features = np.concatenate(found)
    np.save(out / ARRAY, features)
    arrays: dict[str, Any] = {f"of-{name}": places for name, places in rows.items()}
    np.savez(out / ROWS, key=spec.features_key, **arrays)
    work, _ = multiply_adds(network.cpu(), torch.zeros(1, channels, side, side))
    return {
        "key": spec.features_key, "dim": int(features.shape[1]), "n": len(features),
        "backbone_parameters": sum(p.numel() for p in network.parameters()),
        "backbone_multiply_adds": work,
    }  # fmt: skip


def _batches(parts: Mapping[str, Images]) -> Iterator[tuple[str, np.ndarray]]:
    """Images of each part, some at a time."""
    for name, images in parts.items():
        for rows in torch.split(torch.arange(images.shape[0]), _BATCH):
            yield name, np.asarray(images[rows.numpy()])


@torch.inference_mode()
def _embedded(network: nn.Module, images: torch.Tensor) -> np.ndarray:
    made: np.ndarray = network(images.contiguous(memory_format=torch.channels_last)).cpu().numpy()
    return made


def seen_dataset(inputs: Inputs) -> Dataset:
    """The dataset of a stage; where backbones are frozen, their features in place of its images."""
    dataset = read_dataset(inputs["data"])
    backbones: dict[str, list[Path]] = {}
    # Views are few, their roles in order of their numbers.
    for role in sorted(inputs, key=lambda name: (len(name), name)):
        if role.startswith(FROZEN):
            backbones.setdefault(role.partition(".")[0], []).append(inputs[role])
    if not backbones:
        return dataset
    views = [backbones[name] for name in sorted(backbones)]
    train = Features.of([_read(folders, TRAIN) for folders in views])
    evaluations = {
        name: replace(items, images=Features.of([_read(folders[:1], name) for folders in views]))
        for name, items in dataset.evaluations.items()
    }
    return replace(dataset, train=replace(dataset.train, images=train), evaluations=evaluations)


def _read(folders: Sequence[Path], part: str) -> StoredViews:
    """Features of a part by one backbone, mapped into memory."""
    views, rows, key = list[np.ndarray](), list[Ints](), ""
    for folder in folders:
        views.append(np.load(folder / ARRAY, mmap_mode="r"))
        with np.load(folder / ROWS) as arrays:
            rows.append(arrays[f"of-{part}"])
            key = str(arrays["key"])
    return StoredViews(key, tuple(views), tuple(rows))


def blocks_of(images: Images) -> tuple[Block, ...]:
    """Backbones whose features stand in place of images; none where these are pixels."""
    return images.blocks if isinstance(images, Features) else ()
