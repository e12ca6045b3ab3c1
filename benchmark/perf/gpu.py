"""Ranking and training on the accelerator, beside the exact CPU path and beside a bare loop.

Without an accelerator the same code runs on the CPU, on small sizes, and the rows say so.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmark.config.recipes import Augment, ModelSpec, Recipe
from benchmark.metrics import retrieval
from benchmark.perf import measure
from benchmark.perf.training import train_bare
from benchmark.ranking import ranks
from benchmark.training.data import TrainingData
from benchmark.training.device import Device
from benchmark.training.embedding import compiled, new_model, train_embedding
from benchmark.training.loop import Trainer

ROUNDS = 3
_EXACT, _BARE = "exact path, CPU", "bare loop"


def rows(
    queries: int = 0, gallery: int = 0, dim: int = 128, classes: int = 1000, samples: int = 0,
    side: int = 0,
) -> list[dict[str, Any]]:  # fmt: skip
    """Time full metrics of ``queries`` x ``gallery``, and steps of a ResNet-50.

    ``samples`` images a step of ``side`` pixels. Sizes of 0: 50,000 x 50,000 and 256 images of 224
    pixels on a GPU; 2,000 x 5,000 and 4 images of 64 pixels without one.
    """
    there = torch.cuda.is_available()
    sizes = (50_000, 50_000, 256, 224) if there else (2_000, 5_000, 4, 64)
    chosen = zip((queries, gallery, samples, side), sizes, strict=True)
    queries, gallery, samples, side = (given or default for given, default in chosen)
    device = torch.device("cuda" if there else "cpu")
    name = torch.cuda.get_device_name() if there else "no accelerator: the CPU by the same code"
    out = _ranking((queries, gallery), dim, min(classes, queries), device, name)
    return out + _training(samples, side, device, name)


def _ranking(
    shape: tuple[int, int], dim: int, classes: int, device: torch.device, name: str
) -> list[dict[str, Any]]:
    """All metrics by both paths, and how far their means are apart."""
    rng = np.random.default_rng(0)
    problem = measure.clustered(shape, dim, classes, 1.5, rng)
    where = device.type if device.type != "cpu" else "torch:cpu"
    calls: dict[str, Callable[[], object]] = {
        _EXACT: lambda: _metrics(ranks.rank(*problem)),
        f"on {name}": lambda: _metrics(ranks.rank(*problem, device=where)),
    }
    means = [np.array(_metrics(ranks.rank(*problem, device=d))) for d in ("cpu", where)]
    apart = float(np.abs(means[0] - means[1]).max())
    size = f"ranking {shape[0]} x {shape[1]} x {dim}, means within {apart:.1g}"
    return measure.rows(measure.together(calls, ROUNDS), size, _EXACT)


def _metrics(ranking: ranks.Ranking) -> list[float]:
    """Every metric of a ranking."""
    hits = [retrieval.cmc(ranking, k).mean() for k in (1, 5, 10)]
    minp = ranking.inverse_negative_penalty[ranking.answered].mean()
    return [float(x) for x in (*hits, retrieval.average_precision(ranking).mean(), minp)]


def _training(batch: int, side: int, device: torch.device, name: str) -> list[dict[str, Any]]:
    """Steps of the harness and of a bare loop, the same in all but what surrounds them."""
    n, classes = batch * 8, 100
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, 3, side, side), dtype=np.uint8)
    labels = torch.from_numpy(rng.permutation(np.arange(n) % classes))
    data = TrainingData(images, labels, torch.arange(classes))
    spec = ModelSpec(backbone="timm:resnet50", dim=128, head="softmax")
    precision = "bf16-mixed" if device.type == "cuda" else "32-true"
    recipe = Recipe(
        epochs=1, batch_size=batch, lr=1e-3, precision=precision, augment=Augment(flip=True),
        compile=device.type == "cuda",
    )  # fmt: skip
    trainer = Trainer(recipe, 0, Device(device.type))
    encoder, head = new_model(spec, data, trainer)
    encoder, head = encoder.to(device), head.to(device)
    forward = compiled(encoder) if recipe.compile else encoder
    calls: dict[str, Callable[[], object]] = {
        _BARE: lambda: train_bare(encoder, head, data, recipe, device, forward),
        "harness": lambda: train_embedding(encoder, head, data, trainer),
    }
    timings = measure.together(calls, ROUNDS, warm_up=True)
    out = measure.rows(timings, "", _BARE)
    for row in out:
        speed = f"{8 / timings[row['name']].seconds:.3g} steps/s"
        row["size"] = f"ResNet-50, {batch} images of {side} x {side}, {precision}, {name}: {speed}"
    return out
