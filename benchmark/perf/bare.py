"""Training as a script of a few lines has it, to compare with: no checkpoints, no contract."""

from collections.abc import Callable

import torch

from benchmark.config.recipes import Recipe
from benchmark.models.heads import Head
from benchmark.training.augment import augment
from benchmark.training.data import TrainingData
from benchmark.training.device import effective_precision
from benchmark.training.embedding import load_images


def train(
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
