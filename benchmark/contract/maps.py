"""Fitting a map on cached embeddings, within the track's budget of steps."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config.seeds import drawing_from
from benchmark.contract.bases import FeatureTransformation, FittedMap, VectorMap
from benchmark.contract.pairs import Fitted, Pairs
from benchmark.errors import nearest
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.models.parts import Frozen
from benchmark.models.transformation import Transformation, WithSide
from benchmark.training.loop import Budget, Curve, Trainer, rate
from benchmark.training.side_kinds import SIDES

MapLoss = Callable[..., Tensor]
Rows = Sequence[Tensor | None]
"""Paired rows, ``[n, ...]`` each; what is ``None`` is passed on as it is."""
Map = TypeVar("Map", bound=nn.Module)


class _Fit(nn.Module):
    def __init__(
        self, module: nn.Module, loss: MapLoss, rows: Callable[[int], Rows], steps: int,
        freeze_norm: float, frozen: nn.Module, device: torch.device,
    ) -> None:  # fmt: skip
        super().__init__()
        self.module, self.loss, self.rows, self.frozen = module, loss, rows, frozen
        self.steps, self.freeze_from, self.step = steps, freeze_norm * steps, 0
        self.device = device
        self.given: Rows = ()
        self.tensors: list[Tensor | None] = []

    def start(self, epoch: int, progress: float, _: torch.Generator) -> None:
        self.step = round(progress * self.steps)
        given = self.rows(epoch)
        if given is not self.given:  # the same rows stay on the device
            self.given = given
            self.tensors = [None if t is None else t.to(self.device) for t in given]

    def forward(self, rows: Tensor) -> Tensor:
        # By steps, not by epochs: where there are many pairs, all steps are in the first epoch.
        if self.step >= self.freeze_from:
            for part in self.module.modules():
                if isinstance(part, nn.modules.batchnorm._BatchNorm):
                    part.eval()
        self.step += 1
        batch = [None if t is None else t[rows.to(t.device)] for t in self.tensors]
        return self.loss(self.module, *batch)


def fit_map(
    make: Callable[[], Map], loss: MapLoss, rows: Callable[[int], Rows], n: int,
    trainer: Trainer, *, lr: float, weight_decay: float, warmup: float, freeze_norm: float = 1.0,
    frozen: Sequence[nn.Module | None] = (), name: str = "map",
) -> tuple[Map, dict[str, Curve]]:  # fmt: skip
    """Train a map with Adam and a cosine schedule; in evaluation mode, with its training curve.

    Args:
        make: Builds the map; called under the seed of the update.
        loss: The map and a batch of each of the rows -> scalar. Matrix products run in the
            recipe's precision, so a map gives float32 where differences matter.
        rows: Number of an epoch -> its paired rows: views of the same items.
        n: Rows.
        trainer: The loop; its recipe holds the steps or epochs, and the batch.
        lr: Learning rate.
        weight_decay: Added to the gradient, as Adam does.
        warmup: Share of the steps with a rising learning rate.
        freeze_norm: Share of the steps after which batch-norm statistics stay as they are.
        frozen: Modules that ``loss`` reads and that do not learn; on the CPU afterwards.
        name: Of the training, in checkpoints, random streams and the curves of the result.
    """
    with drawing_from(trainer.seed, name, "init"):
        module = make()
    device = trainer.torch_device()
    held = nn.ModuleList(Frozen(each) for each in frozen if each is not None)
    recipe = trainer.recipe
    budget = Budget(recipe.map_steps(n), recipe.transform_batch)
    fit = _Fit(module, loss, rows, budget.steps, freeze_norm, held, device)

    def adam(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        # A map's weights outweigh its batches: one pass over them instead of some ten a step.
        return torch.optim.Adam(parameters, lr=lr, weight_decay=weight_decay, fused=True)

    curve = trainer.run(
        fit, n, budget, optimizer=adam, schedule=lambda p: rate(p, "cosine", warmup),
        on_epoch=fit.start, name=name,
    )  # fmt: skip
    held.cpu()
    return module.cpu().eval(), {name: curve}


def _by_epoch(pairs: Pairs, rows: Callable[[Pairs], Rows]) -> Callable[[int], Rows]:
    """Rows of the pairs of each epoch; those that are always the same are made once."""
    if pairs.renew is None:
        same = rows(pairs)
        return lambda _: same
    return lambda epoch: rows(pairs.of_epoch(epoch))


def squared_distance(left: Tensor, right: Tensor) -> Tensor:
    """Squared distance of rows, summed over dimensions, averaged over the batch."""
    return (left - right).square().sum(dim=1).mean()


def kl_divergence(head: Head, p: Tensor, q: Tensor) -> Tensor:
    """KL(p || q) of a classifier's outputs, without its margin, for two embeddings; the mean."""
    log_p, log_q = (head.logits(x).log_softmax(dim=1) for x in (p, q))
    return F.kl_div(log_q, log_p, reduction="batchmean", log_target=True)


@dataclass(frozen=True)
class LearnedMap(FeatureTransformation):
    """Base of maps that are trained as FCT trains its own."""

    ranges: ClassVar = {
        "lr": "(0, inf)", "weight_decay": "[0, inf)", "warmup": "[0, 1)", "freeze_norm": "[0, 1]",
    }  # fmt: skip

    lr: float = 5e-4  # of Adam, FCT appendix D.5 and FastFill appendix A.2
    weight_decay: float = 2.0**-15  # FCT appendix D.5
    warmup: float = 5 / 80  # share of the steps, FCT appendix D.5 and FastFill appendix A.2
    freeze_norm: float = 0.5  # share of the steps until BN statistics stay, FCT appendix D.5

    def train(
        self, make: Callable[[], Map], loss: MapLoss, rows: Callable[[Pairs], Rows], pairs: Pairs,
        trainer: Trainer, *frozen: nn.Module | None, name: str = "map",
    ) -> tuple[Map, dict[str, Curve]]:  # fmt: skip
        """:func:`fit_map` with these parameters, on ``rows`` of the pairs of each epoch."""
        return fit_map(
            make, loss, _by_epoch(pairs, rows), len(pairs.old), trainer,
            lr=self.lr, weight_decay=self.weight_decay, warmup=self.warmup,
            freeze_norm=self.freeze_norm, frozen=frozen, name=name,
        )  # fmt: skip


@dataclass(frozen=True)
class TrainedVectorMap(VectorMap):
    """Base of maps of vectors alone that are trained; override :meth:`network`, :meth:`loss`."""

    ranges: ClassVar = {"lr": "(0, inf)", "weight_decay": "[0, inf)", "warmup": "[0, 1)"}

    lr: float = 5e-4  # of Adam, FCT appendix D.5
    weight_decay: float = 0.0  # ours
    warmup: float = 5 / 80  # share of the steps, FCT appendix D.5

    @abstractmethod
    def network(self, source: Tensor, target: Tensor) -> Portable:
        """The map as it starts, for pairs ``[n, d_source]`` and ``[n, d_target]``."""

    def loss(self, map: Any, x: Tensor, y: Tensor) -> Tensor:
        """Of a batch of pairs, a scalar; by default the squared distance."""
        return squared_distance(map(x), y)

    def fit_vectors(self, source: Tensor, target: Tensor, trainer: Trainer) -> FittedMap:
        """Train on the same pairs in every epoch."""
        pair = (source, target)
        return self._fit(pair, lambda _: pair, trainer)

    def fit_pairs(self, pairs: Pairs, trainer: Trainer) -> FittedMap:
        """Train on the pairs of each epoch."""
        return self._fit(self.ends(pairs), _by_epoch(pairs, self.ends), trainer)

    def _fit(
        self, start: tuple[Tensor, Tensor], rows: Callable[[int], Rows], trainer: Trainer
    ) -> FittedMap:
        return fit_map(
            lambda: self.network(*start), self.loss, rows, len(start[0]), trainer,
            lr=self.lr, weight_decay=self.weight_decay, warmup=self.warmup,
        )  # fmt: skip


@dataclass(frozen=True)
class SideInformationMap(LearnedMap):
    """Base of maps of FCT's architecture: h and, before a later update, g of side-information."""

    ranges: ClassVar = {"width": "[1, inf)"}
    asks_old_lengths = True

    side: str = "none"  # or a kind of FCT section 5.1, as FastFill appendix B.2
    width: int = 2048  # of the mixer, FCT appendix D.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.side not in ("none", *SIDES):
            known = nearest(self.side, SIDES)
            raise ValueError(f"side: unknown side-information '{self.side}'{known}")

    @property
    def needs(self) -> tuple[str, ...]:
        """The new model and, in the variants, side-information."""
        return ("independent",) if self.side == "none" else ("independent", f"side:{self.side}")

    def network(self, pairs: Pairs, dim: int, normalise: bool, **options: Any) -> Transformation:
        """FCT's network from stored vectors and side-information to ``dim`` numbers."""
        dim_side = 0 if pairs.side is None else pairs.side.shape[1]
        return Transformation(
            pairs.old.shape[1], dim_side, dim, self.width, normalise,
            normalise_old=pairs.old_normalised, **options,
        )  # fmt: skip

    def with_side(
        self, h: Transformation, curves: dict[str, Curve], pairs: Pairs, trainer: Trainer,
        priority: Portable | None = None,
    ) -> Fitted:  # fmt: skip
        """Result with h; in a chain also g, by squared error under any loss (FCT 4.4)."""
        target = pairs.new_side
        if target is None:
            return Fitted(h, priority=priority, curves=curves)
        g, more = self.train(
            lambda: self.network(pairs, target.shape[1], normalise=False),
            lambda g, old, side, new: squared_distance(g(old, side)[0], new),
            lambda p: (p.old, p.side, p.new_side), pairs, trainer, name="side",
        )  # fmt: skip
        return Fitted(WithSide(h, g), priority=priority, curves={**curves, **more})
