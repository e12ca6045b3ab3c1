"""A bare PyTorch loop, the harness, and each training-time method on the same model and data."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmark.config.recipes import Augment, ModelSpec, Recipe
from benchmark.config.registry import method, method_class, method_files
from benchmark.contract.bases import CompatibleTraining
from benchmark.contract.method import Generation, UpdateJob
from benchmark.models.heads import Head
from benchmark.perf import measure
from benchmark.training.augment import augment
from benchmark.training.data import TrainingData
from benchmark.training.device import Device, effective_precision
from benchmark.training.embedding import load_images, new_model, train_embedding
from benchmark.training.loop import Trainer

ROUNDS = 3
_BARE, _ALONE = "bare loop", "harness, the model alone"


def rows(queries: int = 8192, dim: int = 64, classes: int = 512) -> list[dict[str, Any]]:
    """Time one epoch of all, in turn; see ``benchmark.perf.run``.

    A method's row has what it prepares before the first epoch, so on several epochs it costs no
    more than here. Old features are random.
    """
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(queries) % classes)  # pairs of a class in every batch
    images = rng.integers(0, 256, (queries, 1, 32, 32), dtype=np.uint8)
    data = TrainingData(images, torch.from_numpy(labels), torch.arange(classes))
    spec = ModelSpec(backbone="convnet-32", dim=dim, head="arcface", scale=16.0, margin=0.2)
    recipe = Recipe(
        epochs=1, batch_size=128, precision="bf16-mixed",
        augment=Augment(rotate=10, scale=0.1, shift=0.06, contrast=0.2),
    )  # fmt: skip
    job = _job(spec, data, recipe)
    training = [n for n in method_files() if issubclass(method_class(n), CompatibleTraining)]
    calls: dict[str, Callable[[], object]] = {
        _BARE: lambda: train_bare(
            *new_model(spec, data, Trainer(recipe, 0)), data, recipe, torch.device("cpu")
        ),
        _ALONE: lambda: _harness(spec, data, recipe),
        **{name: functools.partial(method(name).update, job) for name in training},
    }
    timings = measure.together(calls, ROUNDS, warm_up=True)
    size = f"{queries} images, {classes} classes, dimension {dim}"
    first = {_BARE: timings.pop(_BARE), _ALONE: timings[_ALONE]}
    return measure.rows(first, size, _BARE) + measure.rows(timings, size, _ALONE)[1:]


def _job(spec: ModelSpec, data: TrainingData, recipe: Recipe) -> UpdateJob:
    """An update with all that a method may need."""
    features = torch.randn(len(data), spec.dim, generator=torch.Generator().manual_seed(0))
    model = new_model(spec, data, Trainer(recipe, 1))[0].eval().requires_grad_(False)
    head = Head("softmax", spec.dim, data.classes.tolist()).eval().requires_grad_(False)
    old = Generation(model, head, features)
    trainer = Trainer(recipe, 0, Device("cpu"))
    return UpdateJob(data, (old,), old, spec, "cosine", trainer, len(data.classes))


def _harness(spec: ModelSpec, data: TrainingData, recipe: Recipe) -> None:
    trainer = Trainer(recipe, 0, Device("cpu"))
    encoder, head = new_model(spec, data, trainer)
    train_embedding(encoder, head, data, trainer)


def train_bare(
    encoder: torch.nn.Module, head: Head, data: TrainingData, recipe: Recipe,
    device: torch.device, forward: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> None:  # fmt: skip
    """Train an encoder and a head for an epoch; ``forward`` is the encoder, compiled perhaps."""
    # What the device can do at speed, as the harness chooses.
    mixed = effective_precision(recipe.precision, device.type) == "bf16-mixed"
    optimizer = torch.optim.SGD(
        [*encoder.parameters(), *head.parameters()], lr=recipe.lr, momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
    )  # fmt: skip
    rng, labels = torch.Generator().manual_seed(0), data.labels.to(device)
    batches = torch.split(torch.randperm(len(data), generator=rng), recipe.batch_size)
    steps = len(data) // recipe.batch_size
    for step, rows in enumerate(batches[:steps]):
        images = augment(load_images(data.images, rows, device), recipe.augment, rng)
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            features = (forward or encoder)(images)
        loss = head(features.float(), labels[rows.to(device)])
        optimizer.param_groups[0]["lr"] = recipe.lr * (1 - step / steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if device.type == "cuda":
        torch.cuda.synchronize()
