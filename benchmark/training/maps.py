"""Fitting a map on cached embeddings, within the track's budget of steps."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmark.models.module import Portable
from benchmark.seeds import derive
from benchmark.training.loop import Budget, Curve, Trainer, rate

MapLoss = Callable[..., Tensor]


class _Fit(nn.Module):
    def __init__(
        self, module: nn.Module, loss: MapLoss, tensors: list[Tensor | None], freeze_norm: float
    ) -> None:
        super().__init__()
        self.module, self.loss, self.freeze_norm = module, loss, freeze_norm
        self.tensors = tensors

    def forward(self, rows: Tensor) -> Tensor:
        device = next(t.device for t in self.tensors if t is not None)
        batch = [None if t is None else t[rows.to(device)] for t in self.tensors]
        return self.loss(self.module, *batch)

    def at(self, _: int, progress: float, __: torch.Generator) -> None:
        """Freeze the batch-norm statistics once the share of steps is reached."""
        for part in self.module.modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                part.train(progress < self.freeze_norm)


def fit_map(
    make: Callable[[], Portable],
    loss: MapLoss,
    tensors: tuple[Tensor | None, ...],
    trainer: Trainer,
    *,
    lr: float,
    weight_decay: float,
    warmup: float,
    freeze_norm: float = 1.0,
    schedule: str = "cosine",
    name: str = "map",
) -> tuple[Portable, dict[str, Curve]]:
    """Train a map with Adam on batches of paired vectors.

    Args:
        make: Makes the map; called under the seed of the update.
        loss: The map and a batch of each of ``tensors`` -> scalar. Matrix products run in the
            recipe's precision, so a map gives float32 where differences matter.
        tensors: Paired rows, ``[n, ...]``; ``None`` is handed on as it is.
        trainer: The loop; its recipe holds the steps and the batch.
        lr: Learning rate of Adam.
        weight_decay: Of Adam, added to the gradient.
        warmup: Share of the steps with a rising learning rate.
        freeze_norm: Share of the steps after which batch-norm statistics stay as they are.
        schedule: ``cosine``, ``linear`` or ``constant``.
        name: Name of the training in checkpoints and random streams.

    Returns:
        The map in evaluation mode, and its training curve by name.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(trainer.seed, name, "init"))
        module = make()
    device = trainer.torch_device()
    resident = [None if t is None else t.to(device) for t in tensors]
    fit = _Fit(module, loss, resident, freeze_norm)
    n = next(len(t) for t in tensors if t is not None)

    def adam(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, lr=lr, weight_decay=weight_decay)

    recipe = trainer.recipe
    curve = trainer.run(
        fit, n, Budget(recipe.transform_steps, recipe.transform_batch),
        optimizer=adam, schedule=lambda p: rate(p, schedule, warmup), on_epoch=fit.at, name=name,
    )  # fmt: skip
    return module.cpu().eval(), {name: curve}
