"""The one training loop: of every embedding model, map and side-information model."""

import hashlib
import io
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from benchmark.config.recipes import Recipe
from benchmark.config.seeds import derive, generator
from benchmark.errors import BenchError, DivergedError
from benchmark.training.device import Device, effective_precision, make_fabric, torch_device

log = logging.getLogger(__name__)
_DIGEST = hashlib.sha256().digest_size
_TOLD = 100
"""Times that a callback hears of the progress within an epoch, about."""
_SAVE_EVERY_S = 5.0
"""Seconds between checkpoints, which would take most of the time of short epochs."""
_LOOK_EVERY = 50
"""Steps between looks at the loss, for which a GPU waits and all devices meet."""


@contextmanager
def checkpoints_each_epoch() -> Iterator[None]:
    """Write a checkpoint after each epoch of every training meanwhile, however short."""
    global _SAVE_EVERY_S  # noqa: PLW0603
    before, _SAVE_EVERY_S = _SAVE_EVERY_S, 0.0
    try:
        yield
    finally:
        _SAVE_EVERY_S = before


EpochCallback = Callable[[int, float, torch.Generator], None]


@dataclass
class Curve:
    """Training loss and learning rate, one number an epoch."""

    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    steps_an_epoch: int = 0

    def state_dict(self) -> dict[str, Any]:
        """Plain values, for checkpoints and records."""
        return asdict(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take the values of :meth:`state_dict`."""
        vars(self).update(state)


@dataclass(frozen=True)
class Budget:
    """Length of a training: optimiser steps in all, and items a step over all devices."""

    steps: int
    batch_size: int

    @classmethod
    def of_epochs(cls, recipe: Recipe, n: int) -> Self:
        """The recipe's epochs over ``n`` items."""
        batch = min(recipe.batch_size, n)
        return cls(recipe.epochs * max(1, n // batch), batch)


@dataclass(frozen=True)
class Trainer:
    """Optimises a module on batches and goes on from the checkpoint of a killed training."""

    recipe: Recipe  # optimiser and schedule
    seed: int  # seed of everything random
    device: Device = field(default_factory=Device)  # where to train
    folder: Path | None = None  # folder of checkpoints; ``None`` keeps none
    # called after each epoch, once its checkpoint is written, with the share that is done, 0 to 1
    progress: Callable[[float], None] = lambda share: None
    # called likewise within epochs: where there are many items, all steps are in the first one
    within: Callable[[float], None] = lambda share: None

    def run(
        self, system: nn.Module, n: int, budget: Budget | None = None, *,
        optimizer: Callable[[list[nn.Parameter]], torch.optim.Optimizer] | None = None,
        schedule: Callable[[float], float] | None = None,
        on_epoch: EpochCallback | None = None,
        order: Callable[[torch.Generator], torch.Tensor] | None = None, hand: int = 1,
        name: str = "main",
    ) -> Curve:  # fmt: skip
        """Train ``system`` in place.

        Args:
            system: Called with the rows of a batch, ``[k]`` int64; gives the loss, a scalar. It
                loads its data itself: what goes through Fabric's wrapper as an argument comes
                out in the precision of the matrix products.
            n: Items to draw from. An epoch visits each once, in a new order; an incomplete
                last batch is left out.
            budget: Steps and batch size; by default, as of the next two, the recipe's.
            optimizer: Parameters -> optimiser.
            schedule: Progress in [0, 1) -> factor of the learning rate.
            on_epoch: Called before each epoch with its number, the progress, and a random stream
                for everything that the epoch draws.
            order: Random stream -> the rows of an epoch in their order, ``n`` or more; by
                default each item once.
            hand: Rows that follow each other and must stay together on a device; all devices get
                as many hands of a batch.
            name: Name of the checkpoint and of the random streams.

        Raises:
            BenchError: If the loss stops being a finite number on any device, or if hands cannot
                be dealt evenly.
        """
        recipe = self.recipe
        budget = budget or Budget.of_epochs(recipe, n)
        used = effective_precision(recipe.precision, self.torch_device().type)
        fabric = make_fabric(self.device, precision=used)
        fabric.launch()
        batch = min(budget.batch_size, n)
        an_epoch = max(1, n // batch)
        plain = (optimizer or self._optimizer)([p for p in system.parameters() if p.requires_grad])
        shape = recipe.schedule, recipe.warmup, recipe.power, recipe.milestones, recipe.decay
        factor = schedule or (lambda progress: rate(progress, *shape))
        rates = torch.optim.lr_scheduler.LambdaLR(plain, lambda step: factor(step / budget.steps))
        model, wrapped = fabric.setup(system, plain)
        curve = Curve(steps_an_epoch=an_epoch)
        checkpoint = {"system": system, "optimizer": plain, "rates": rates, "curve": curve}
        if scaler := getattr(fabric.strategy.precision, "scaler", None):  # of 16-mixed
            checkpoint["scaler"] = scaler
        path = None if self.folder is None else self.folder / f"{name}.checkpoint.pt"
        if path is not None:
            _resume(checkpoint, path)
        rank, world, saved = fabric.global_rank, fabric.world_size, time.monotonic()
        _check_hands(batch, hand, world)
        n_epochs = math.ceil(budget.steps / an_epoch)
        for epoch in range(len(curve.loss), n_epochs):
            steps = min(an_epoch, budget.steps - epoch * an_epoch)
            rng = self._seed_epoch(fabric, name, epoch)
            if on_epoch is not None:
                on_epoch(epoch, epoch * an_epoch / budget.steps, rng)
            system.train()  # the callback may have embedded something
            stream = generator(self.seed, name, "order", epoch)
            rows = torch.randperm(n, generator=stream) if order is None else order(stream)
            batches = [rows[i * batch : (i + 1) * batch] for i in range(steps)]
            shares = [share(rows, hand, rank, world) for rows in batches]
            curve.lr.append(wrapped.param_groups[0]["lr"])
            tell = partial(self._tell, epoch * an_epoch, steps, budget.steps)
            try:
                loss = _train_epoch(
                    fabric, model, system, wrapped, rates, shares, tell, recipe.clip
                )
            except _NoNumberError as error:
                more = "" if used == "32-true" else ", or set recipe.precision=32-true"
                raise DivergedError(
                    f"training '{name}' diverged: the loss is {error} in epoch {epoch}; "
                    f"lower recipe.lr{more}"
                ) from None
            curve.loss.append(loss)
            due = epoch + 1 == n_epochs or time.monotonic() - saved >= _SAVE_EVERY_S
            if rank == 0 and path is not None and due:
                _save(checkpoint, path)
                saved = time.monotonic()
            self.progress(min(1.0, (epoch + 1) * an_epoch / budget.steps))
        system.eval()
        return curve

    def _seed_epoch(self, fabric: Any, name: str, epoch: int) -> torch.Generator:
        """Seed the device's global generator; gives the stream of all else that an epoch draws."""
        # Dropout and the like draw from the global one.
        everywhere = torch.default_generator if fabric.device.type == "cpu" else torch
        everywhere.manual_seed(derive(self.seed, name, "global", epoch))
        # Every device augments its own share; one device alone has the plain stream.
        suffix = (fabric.global_rank,) if fabric.world_size > 1 else ()
        return generator(self.seed, name, "batches", epoch, *suffix)

    def _tell(self, before: int, steps: int, of: int, step: int) -> None:
        """Say what share is done after a step of an epoch, some hundred times an epoch."""
        if step < steps and step % max(1, steps // _TOLD) == 0:
            self.within(min(1.0, (before + step) / of))

    def torch_device(self) -> torch.device:
        """The device that this process trains on."""
        return torch_device(self.device)

    def _optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        r, optim = self.recipe, torch.optim
        if r.optimizer == "lars":
            return _lars(parameters, r)
        kinds: dict[str, Any] = {
            "sgd": partial(optim.SGD, momentum=r.momentum),
            # All tensors at once: the same to rounding as one after the other, sooner.
            "adam": partial(optim.Adam, foreach=True), "adamw": partial(optim.AdamW, foreach=True),
        }  # fmt: skip
        made: optim.Optimizer = kinds[r.optimizer](parameters, lr=r.lr, weight_decay=r.weight_decay)
        return made


def _check_hands(batch: int, hand: int, world: int) -> None:
    """Refuse a batch whose hands cannot be dealt evenly to so many devices."""
    if hand > 1 and batch % (hand * world):
        raise BenchError(
            f"recipe.batch_size: expected a multiple of {hand * world} ({hand} images a class "
            f"on each of {world} devices), got {batch}"
        )


def _lars(parameters: list[nn.Parameter], recipe: Recipe) -> torch.optim.Optimizer:
    """LARS (You et al., 2017), as SimCLR's code has it.

    Biases and batch norms, the parameters of one axis, have neither decay nor a rate of their own.
    """
    from timm.optim.lars import Lars  # takes seconds, for one optimiser of several

    decayed = [p for p in parameters if p.ndim > 1]
    others = {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0}
    groups: Any = [{"params": decayed, "weight_decay": recipe.weight_decay}, others]
    made: torch.optim.Optimizer = Lars(groups, lr=recipe.lr, momentum=recipe.momentum)
    return made


def _save(checkpoint: dict[str, Any], path: Path) -> None:
    """Write a checkpoint behind its digest, whole or not at all."""
    content = io.BytesIO()
    torch.save({k: v.state_dict() for k, v in checkpoint.items()}, content)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(_digest(path, content.getbuffer()))
        file.write(content.getbuffer())
    part.replace(path)


def _resume(checkpoint: dict[str, Any], path: Path) -> None:
    """Take a checkpoint up; without it, or with a damaged one, the training begins anew."""
    if not path.exists():
        return
    content = memoryview(path.read_bytes())
    if content[:_DIGEST] != _digest(path, content[_DIGEST:]):
        log.warning("bench: %s: damaged checkpoint; the training begins anew", path)
        return
    try:
        file = io.BytesIO(content[_DIGEST:])
        states = torch.load(file, map_location="cpu", weights_only=True)
        for key, part in checkpoint.items():
            part.load_state_dict(states[key])
    except Exception as error:  # what another version of torch wrote makes it raise anything
        text = " ".join(str(error).split())
        raise BenchError(f"{path}: cannot be taken up ({text}); delete it") from error


def _digest(path: Path, content: bytes | memoryview) -> bytes:
    """SHA-256 of a checkpoint and of where it lies: another training's must not be taken up."""
    sha = hashlib.sha256(f"{path.parent.name}/{path.name}\n".encode())
    sha.update(content)
    return sha.digest()


class _NoNumberError(Exception):
    """The loss, which is no finite number."""


def share(rows: torch.Tensor, hand: int, rank: int, world: int) -> torch.Tensor:
    """Rows of a batch that a device gets: every ``world``-th hand of so many rows.

    Example:
        >>> share(torch.arange(8), 2, rank=1, world=2).tolist()
        [2, 3, 6, 7]
    """
    return rows.reshape(-1, hand)[rank::world].flatten()


def _train_epoch(
    fabric: Any, model: nn.Module, system: nn.Module, optimizer: torch.optim.Optimizer,
    rates: torch.optim.lr_scheduler.LRScheduler, batches: list[torch.Tensor],
    tell: Callable[[int], None], clip: float,
) -> float:  # fmt: skip
    """One step a batch, of whose number ``tell`` is told; the mean loss over all devices.

    All devices stop within some steps of one whose loss is no finite number. Gradients whose norm
    is above ``clip`` are scaled to it, unless that is 0. A ``prefetch`` of the system loads the
    next rows meanwhile.
    """
    prefetch: Callable[[Any], None] | None = getattr(system, "prefetch", None)
    total, found = torch.zeros((), device=fabric.device), 0.0
    for step, rows in enumerate(batches, 1):
        loss = model(rows)
        if step < len(batches) and prefetch is not None:
            prefetch(batches[step].numpy())
        optimizer.zero_grad()
        fabric.backward(loss)
        if clip:
            fabric.clip_gradients(model, optimizer, max_norm=clip, error_if_nonfinite=False)
        optimizer.step()
        rates.step()
        total += loss.detach()
        if step % _LOOK_EVERY == 0 or step == len(batches):
            found = fabric.all_reduce(total.clone(), reduce_op="sum").item()
            if not math.isfinite(found):
                raise _NoNumberError(found)
        tell(step)
    return found / (len(batches) * fabric.world_size)


def rate(
    progress: float, schedule: str, warmup: float, power: float = 1.0,
    milestones: Sequence[float] = (), decay: float = 0.1,
) -> float:  # fmt: skip
    """Factor of the learning rate at ``progress`` in [0, 1].

    Example:
        >>> [rate(p, "linear", 0.2) for p in (0.0, 0.1, 0.2, 0.6)]
        [0.0, 0.5, 1.0, 0.5]
        >>> [rate(p, "linear", 0.0, power=2.0) for p in (0.0, 0.5)]
        [1.0, 0.25]
        >>> [rate(p, "steps", 0.0, milestones=(0.5, 0.75)) for p in (0.4, 0.5, 0.7)]
        [1.0, 0.1, 0.1]
    """
    if progress < warmup:
        return progress / warmup
    if schedule == "steps":
        passed: float = decay ** sum(progress >= milestone for milestone in milestones)
        return passed
    left = (1.0 - progress) / (1.0 - warmup)
    cosine = 0.5 - 0.5 * math.cos(math.pi * left)
    return {"linear": left**power, "cosine": cosine, "constant": 1.0}[schedule]
