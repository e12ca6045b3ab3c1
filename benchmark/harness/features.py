"""The stage ``features``: images or texts by a frozen backbone, each different one once."""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.config.embedders import load_embedder
from benchmark.config.reading import build
from benchmark.config.recipes import Augment, ModelSpec
from benchmark.config.seeds import generator
from benchmark.data.base import Dataset, Images, Ints
from benchmark.data.features import Block, Features, StoredViews
from benchmark.data.serialization import read_dataset
from benchmark.data.texts import from_bytes
from benchmark.harness.cost import multiply_adds
from benchmark.harness.work import FeatureWork, WorkOnData
from benchmark.models.backbones import to_unit
from benchmark.models.embedder_runners import TextEmbedder
from benchmark.models.frozen import folded
from benchmark.models.trials import misfits_told
from benchmark.training.augment import augment
from benchmark.training.embedding import frozen_backbone

ARRAY, ROWS, TRAIN = "features.npy", "rows.npz", "train"


def compute_features(
    spec: ModelSpec, dataset: Dataset, work: FeatureWork[Path], out: Path, device: torch.device,
    within: Callable[[float], None] = lambda share: None,
) -> dict[str, Any]:  # fmt: skip
    """Write features ``[m, d]`` of the different images of a dataset, and the rows of each part.

    Images are of one size; in a view the training images, and no others, are changed first. Gives
    key and width of the features, and what an image costs.
    """
    parts = {TRAIN: dataset.train.images}
    if not work.view:
        parts |= {name: items.images for name, items in dataset.evaluations.items()}
    backbone = (_Texts if spec.embedder else _Pictures)(spec, dataset, work, device)
    found, rows = list[np.ndarray](), {name: np.empty(0, np.int64) for name in parts}
    places: dict[bytes, int] = {}
    total, done = sum(images.shape[0] for images in parts.values()), 0
    for name, pixels in _batches(parts, backbone.batch):
        keys = [hashlib.blake2b(image.tobytes(), digest_size=16).digest() for image in pixels]
        first = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))
        new = sorted(k for key, k in first.items() if key not in places)
        places |= {keys[k]: len(places) + i for i, k in enumerate(new)}
        if new:
            found.append(backbone(pixels[new]).astype(work.precision))
        rows[name] = np.concatenate([rows[name], [places[key] for key in keys]])
        done += len(keys)
        within(done / total)
    features = np.concatenate(found)
    np.save(out / ARRAY, features)
    arrays: dict[str, Any] = {f"of-{name}": places for name, places in rows.items()}
    np.savez(out / ROWS, key=spec.features_key, **arrays)
    return {
        "key": spec.features_key, "dim": int(features.shape[1]), "n": len(features),
        "backbone_parameters": backbone.parameters,
        "backbone_multiply_adds": backbone.multiply_adds,
    }  # fmt: skip


class _Pictures:
    """A frozen backbone of images: called with pixels ``[n, c, h, w]``."""

    batch = 32

    def __init__(
        self, spec: ModelSpec, dataset: Dataset, work: FeatureWork[Path], device: torch.device
    ) -> None:  # fmt: skip
        _, *size = dataset.train.images.shape
        network = frozen_backbone(spec, *size[:2])
        with misfits_told(spec, size[1:]):
            self.multiply_adds = multiply_adds(network, torch.zeros(1, *size))[0]
        self.parameters = sum(p.numel() for p in network.parameters())
        some = torch.linspace(-1, 1, 2 * math.prod(size)).reshape(2, *size)
        rounded = work.precision == "float16"  # by more than folding changes
        self.network = (folded(network, some) if rounded else network).to(device)
        self.device, self.view = device, work.view
        self.rng = generator(0, "stored view", self.view)
        self.changes = build(Augment, work.augment or {}, "stage: augment")

    @torch.inference_mode()
    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        images = to_unit(torch.from_numpy(pixels))
        if self.view:
            images = augment(images, self.changes, self.rng)
        images = images.to(self.device).contiguous(memory_format=torch.channels_last)
        made: np.ndarray = self.network(images).cpu().numpy()
        return made


class _Texts:
    """An embedder of texts, on the processor: called with their bytes ``[n, 1, 1, l]``."""

    batch = 4096

    def __init__(self, spec: ModelSpec, *_: Any) -> None:
        self.network = TextEmbedder(load_embedder(spec.embedder))
        self.parameters = self.network.embedder.parameters

    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        return self.network(from_bytes(pixels), queries=False)

    @property
    def multiply_adds(self) -> int:
        return self.network.multiply_adds


def _batches(parts: Mapping[str, Images], size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Images of each part, some at a time."""
    for name, images in parts.items():
        for rows in torch.split(torch.arange(images.shape[0]), size):
            yield name, np.asarray(images[rows.numpy()])


def seen_dataset(work: WorkOnData[Path]) -> Dataset:
    """The dataset of a stage; where backbones are frozen, their features in place of its images."""
    dataset, frozen = read_dataset(work.data), work.frozen
    if not frozen:
        return dataset
    train = Features.of([_read(folders, TRAIN) for folders in frozen])
    evaluations = {
        name: replace(items, images=Features.of([_read(folders[:1], name) for folders in frozen]))
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
