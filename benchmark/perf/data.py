"""Decoding from folders and from a .rec, beside torchvision's own loader in the same run.

Pictures are drawn: soft noise, whose JPEGs are as large as photographs'. All lie in the system's
cache, so disks are not measured. ``images/s a core`` counts the processor time of all threads and
processes, ``images/s`` the clock.
"""

import io
import os
import struct
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmark.data.files import Files
from benchmark.data.images import EncodedImages, View
from benchmark.data.recordio import read_faces
from benchmark.perf import measure

ROUNDS = 3
_BATCH = 64
_PHOTOGRAPH, _FACE = (500, 375), (112, 112)
_RESIZED, _SIDE = 256, 224
_KEY = struct.Struct("<IIIfQQ")
_MAGIC = 0xCED7230A


def rows(queries: int = 512, items: int = 4096, samples: int = 2) -> list[dict[str, Any]]:
    """Time ``queries`` photographs and ``items`` aligned faces, the last rows by some workers.

    ``samples`` is the number of workers. A ratio is of seconds a core; see ``benchmark.perf.run``.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            photographs = _photographs(root / "photographs", queries, samples)
            return photographs + _faces(root, items, samples)
    finally:
        torch.set_num_threads(before)


def _photographs(root: Path, n: int, workers: int) -> list[dict[str, Any]]:
    from torchvision.datasets import ImageFolder
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    names = _draw(root, n, _PHOTOGRAPH)
    resize = v2.Compose([v2.Resize(_RESIZED, antialias=True), v2.CenterCrop(_SIDE)])
    by_pillow = ImageFolder(root, v2.Compose([resize, v2.PILToTensor()]))
    by_torchvision = ImageFolder(
        root, resize, loader=lambda path: decode_image(path, ImageReadMode.RGB)
    )
    view = View(_SIDE, _SIDE, keep=_SIDE / _RESIZED)
    own = EncodedImages(Files(root, names), view)
    base = "torchvision: ImageFolder, decode_image, v2 transforms"
    calls = {
        base: lambda: _loop(by_torchvision),
        "torchvision: ImageFolder, Pillow (its default)": lambda: _loop(by_pillow),
        "folder, one thread": lambda: _batches(own, 1),
        f"torchvision: DataLoader, {workers} workers": lambda: _loader(by_torchvision, workers),
        f"folder, {workers} threads": lambda: _batches(own, workers),
    }
    width, height = _PHOTOGRAPH
    return _table(calls, n, f"{n} JPEGs of {width} x {height} to {_SIDE} x {_SIDE}", base)


def _faces(root: Path, n: int, workers: int) -> list[dict[str, Any]]:
    from torchvision.io import ImageReadMode, decode_jpeg

    faces = [_jpeg(_FACE, seed) for seed in range(min(n, 256))]
    _write_records(root / "train", [faces[i % len(faces)] for i in range(n)])
    records, _ = read_faces(root / "train.rec", root / "train.idx")
    own = EncodedImages(records, View(*_FACE, fit="whole"))
    tensors = [torch.frombuffer(bytearray(face), dtype=torch.uint8) for face in faces]

    def alone() -> None:
        for i in range(n):
            decode_jpeg(tensors[i % len(tensors)], ImageReadMode.RGB)

    base = "torchvision: decode_jpeg alone, from memory"
    calls = {
        base: alone,
        ".rec, one thread": lambda: _batches(own, 1),
        f".rec, {workers} threads": lambda: _batches(own, workers),
    }
    return _table(calls, n, f"{n} aligned faces of {_FACE[0]} x {_FACE[1]}", base)


def _table(
    calls: Mapping[str, Callable[[], object]], n: int, size: str, base: str
) -> list[dict[str, Any]]:
    """The best of some rounds of each, in turn."""
    timings = measure.together(calls, ROUNDS, warm_up=True)
    out = measure.rows({name: each.busy for name, each in timings.items()}, size, base)
    for row in out:
        best = timings[row["name"]]
        speed = f"{n / best.busy_s:,.0f} images/s a core, {n / best.seconds:,.0f} images/s"
        row["size"] += f": {speed}"
    return out


def _loop(dataset: Any) -> None:
    for i in range(len(dataset)):
        dataset[i]


def _loader(dataset: Any, workers: int) -> None:
    from torch.utils.data import DataLoader

    context = "fork" if os.name == "posix" else None
    loader = DataLoader(dataset, _BATCH, num_workers=workers, multiprocessing_context=context)
    for _ in loader:
        pass


def _batches(images: EncodedImages, threads: int) -> None:
    images.threads = threads
    for first in range(0, len(images), _BATCH):
        images[np.arange(first, min(first + _BATCH, len(images)))]


def _draw(root: Path, n: int, size: tuple[int, int]) -> tuple[str, ...]:
    """JPEGs of two classes; their names."""
    names = tuple(f"{'ab'[i % 2]}/{i}.jpg" for i in range(n))
    drawn = [_jpeg(size, seed) for seed in range(min(n, 32))]
    for i, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(drawn[i % len(drawn)])
    return names


def _jpeg(size: tuple[int, int], seed: int) -> bytes:
    """Colours that change softly, and the noise of a camera."""
    rng = np.random.default_rng(seed)
    width, height = size
    coarse = rng.integers(0, 256, (height // 16, width // 16, 3), dtype=np.uint8)
    soft = np.asarray(Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC), np.int64)
    noisy = np.clip(soft + rng.integers(-12, 13, soft.shape), 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(noisy).save(file, "JPEG", quality=90)
    return file.getvalue()


def _write_records(stem: Path, images: list[bytes]) -> None:
    """A .rec and its index, as InsightFace packs faces, every image of a person of its own."""
    places = []
    with stem.with_suffix(".rec").open("wb") as file:
        for label, image in enumerate(images):
            places.append(f"{label}\t{file.tell()}\n")
            length = _KEY.size - 8 + len(image)
            file.write(_KEY.pack(_MAGIC, length, 0, float(label), label, 0) + image)
            file.write(b"\0" * (-length % 4))
    stem.with_suffix(".idx").write_text("".join(places))
