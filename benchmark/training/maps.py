"""Fitting a map on cached embeddings, within the track's budget of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from benchmark.seeds import drawing_from
from benchmark.training.loop import Budget, Curve, Trainer, rate

MapLoss = Callable[..., Tensor]
Map = TypeVar("Map", bound=nn.Module)


class _Fit(nn.Module):
    def __init__(
        self, module: nn.Module, loss: MapLoss, tensors: list[Tensor | None], steps: int,
        freeze_norm: float, state: nn.Module,
    ) -> None:  # fmt: skip
        super().__init__()
        self.module, self.loss, self.tensors, self.state = module, loss, tensors, state
        self.steps, self.freeze_from, self.step = steps, freeze_norm * steps, 0

    def forward(self, rows: Tensor) -> Tensor:
        # By steps, not by epochs: where there are many pairs, all steps are in the first epoch.
        if self.step >= self.freeze_from:
            _freeze_norm(self.module)
        self.step += 1
        device = next(t.device for t in self.tensors if t is not None)
        batch = [None if t is None else t[rows.to(device)] for t in self.tensors]
        return self.loss(self.module, *batch)

    def at(self, _: int, progress: float, __: torch.Generator) -> None:
        """Take the step that an epoch starts from, after a resumption too."""
        self.step = round(progress * self.steps)


def _freeze_norm(module: nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.eval()


def fit_map(
    make: Callable[[], Map],
    loss: MapLoss,
    tensors: tuple[Tensor | None, ...],
    trainer: Trainer,
    *,
    lr: float,
    weight_decay: float,
    warmup: float,
    freeze_norm: float = 1.0,
    schedule: str = "cosine",
    state: nn.Module | None = None,
    name: str = "map",
) -> tuple[Map, dict[str, Curve]]:
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
        state: A module that ``loss`` holds itself: on the device of the batches during the fit;
            what of it must not learn is ``Frozen``. On the CPU again afterwards.
        name: Name of the training in checkpoints and random streams.

    Returns:
        The map in evaluation mode, and its training curve by name.
    """
    with drawing_from(trainer.seed, name, "init"):
        module = make()
    device = trainer.torch_device()
    resident = [None if t is None else t.to(device) for t in tensors]
    recipe = trainer.recipe
    own = nn.Module() if state is None else state
    fit = _Fit(module, loss, resident, recipe.transform_steps, freeze_norm, own)
    n = next(len(t) for t in tensors if t is not None)

    def adam(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, lr=lr, weight_decay=weight_decay)

    curve = trainer.run(
        fit, n, Budget(recipe.transform_steps, recipe.transform_batch),
        optimizer=adam, schedule=lambda p: rate(p, schedule, warmup), on_epoch=fit.at, name=name,
    )  # fmt: skip
    own.cpu()
    return module.cpu().eval(), {name: curve}
