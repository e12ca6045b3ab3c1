"""Embedding models: how they are made, trained and asked."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmark.config.recipes import Augment, ModelSpec, Recipe
from benchmark.config.seeds import drawing_from, generator
from benchmark.data.base import Images
from benchmark.models.backbones import Encoder, to_unit
from benchmark.models.heads import Head
from benchmark.training.augment import augment
from benchmark.training.loop import Budget, Curve, Trainer
from benchmark.training.triplet import balanced, batch_hard

if TYPE_CHECKING:
    from benchmark.training.data import TrainingData


@dataclass
class Batch:
    """What a loss sees of a batch.

    Attributes:
        images: Augmented images, ``[B, c, h, w]`` in [-1, 1].
        labels: Rows of the new classifier, ``[B]`` int64.
        index: Rows of the training data, ``[B]`` int64.
        new: Embeddings by the model in training, ``[B, d]`` float32, not normalised.
        old: Stored old embeddings of the same images, ``[B, d_old]``, without gradient; ``[B, 0]``
            where no generation went before.
        progress: Share of the training that is done, in [0, 1), step by step.
        rng: Random stream of this epoch, for choices of the method; augmentation has another.
    """

    images: Tensor
    labels: Tensor
    index: Tensor
    new: Tensor
    old: Tensor
    progress: float
    rng: torch.Generator


@dataclass(frozen=True)
class Epoch:
    """The moment before an epoch.

    Attributes:
        number: Of the epoch, from 0.
        progress: Share of the training that is done, in [0, 1).
        encoder: The model in training.
        device: Where it is trained.
    """

    number: int
    progress: float
    encoder: nn.Module
    device: torch.device

    def embed(self, images: Images) -> Tensor:
        """Embeddings of all images by the model as it stands, ``[n, d]`` float32 on the CPU."""
        return torch.from_numpy(embed(self.encoder, images, self.device))


Loss = Callable[[Batch, Head, Any], Tensor]


def new_model(
    spec: ModelSpec, data: TrainingData, recipe: Recipe, seed: int,
    dim: int | None = None, head_dim: int | None = None,
) -> tuple[Encoder, Head]:  # fmt: skip
    """A model and its classifier with initial weights that depend on sizes and ``seed`` only.

    Args:
        spec: Backbone, dimension and kind of classifier.
        data: Training data: size of the images, classes.
        recipe: Label smoothing.
        seed: Seed of the generation.
        dim: Dimension of the encoder, if not the spec's.
        head_dim: Dimension of the classifier, if not the encoder's.
    """
    _, channels, height, _ = data.images.shape
    dim = spec.dim if dim is None else dim
    with drawing_from(seed, "init"):
        # Given only where asked for: what a model was made with is a part of its file's hash.
        asked = {"relu": spec.relu, "neck": bool(spec.triplet)}
        ending = {key: True for key, wanted in asked.items() if wanted}
        encoder = Encoder(spec.backbone, dim, channels, height, **ending)
        head = Head(
            spec.head, dim if head_dim is None else head_dim, data.classes.tolist(), spec.scale,
            spec.margin, recipe.label_smoothing,
        )  # fmt: skip
    return encoder.to(memory_format=torch.channels_last), head


class _Learner(nn.Module):
    """Encoder, classifier and the method's own modules as one: one forward, one gradient."""

    def __init__(
        self, encoder: nn.Module, head: Head, state: nn.Module, loss: Loss, data: TrainingData,
        old: Tensor | None, how: Augment, device: torch.device, steps: int, triplet: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.encoder, self.head, self.state, self.loss = encoder, head, state, loss
        self.data, self.how, self.device, self.triplet = data, how, device, triplet
        self.labels = data.labels.to(device)
        self.old = torch.empty(len(data), 0) if old is None else old
        self.old = self.old.to(device)
        self.progress, self.one_step = 0.0, 1 / steps
        # Two streams: what a method draws must not change how its images are augmented.
        self.rng, self.choices = torch.Generator(), torch.Generator()

    def start(self, progress: float, rng: torch.Generator) -> None:
        """Take the progress and the random streams of an epoch."""
        self.progress, self.rng = progress, rng
        self.choices = generator(rng.initial_seed(), "choices")

    def forward(self, rows: Tensor) -> Tensor:
        images = augment(load_images(self.data.images, rows, self.device), self.how, self.rng)
        rows = rows.to(self.device)
        bare, new = self._embedded(images)
        old = self.old[rows]
        # Logits at scale 64 lose their differences in bfloat16: losses are float32.
        with torch.autocast(self.device.type, enabled=False):
            batch = Batch(
                images, self.labels[rows], rows, new.float(), old, self.progress, self.choices
            )
            self.progress += self.one_step
            loss = self.loss(batch, self.head, self.state)
            if self.triplet:
                loss = loss + self.triplet * batch_hard(bare.float(), batch.labels)
            return loss

    def _embedded(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """What a triplet loss judges and what all others do: ahead of the neck and past it."""
        if self.triplet and isinstance(self.encoder, Encoder):
            return self.encoder.around_neck(images)
        new = self.encoder(images)
        return new, new

    def prefetch(self, rows: Tensor) -> None:
        """The next batch: images that lie in files are decoded meanwhile."""
        ahead = getattr(self.data.images, "prefetch", None)
        if ahead is not None:
            ahead(rows.numpy())


def train_embedding(
    encoder: nn.Module,
    head: Head,
    loss: Loss,
    data: TrainingData,
    trainer: Trainer,
    *,
    state: nn.Module | None = None,
    old: Tensor | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    spec: ModelSpec | None = None,
    name: str = "model",
) -> Curve:
    """Train encoder, classifier and the modules of a method, in place.

    Args:
        encoder: Images -> embeddings.
        head: The new classifier.
        loss: Batch, classifier, state -> scalar.
        data: Images and labels.
        trainer: The loop.
        state: Modules of the method: parameters are trained along, buffers are kept with the
            checkpoint; what must stay frozen says ``requires_grad_(False)``.
        old: Stored old embeddings of the data, ``[n, d_old]``.
        on_epoch: Called before each epoch.
        spec: Of the model; says whether a triplet loss is added to any other, and how batches
            are drawn.
        name: Name of the training in checkpoints and random streams.
    """
    recipe, device = trainer.recipe, trainer.torch_device()
    own = nn.Module() if state is None else state  # an empty container is false, and yet a state
    batch = min(recipe.batch_size, len(data))
    budget = Budget(recipe.epochs * max(1, len(data) // batch), batch)
    triplet, per_class = (0.0, 0) if spec is None else (spec.triplet, spec.per_class)
    learner = _Learner(
        encoder, head, own, loss, data, old, recipe.augment, device, budget.steps, triplet
    )
    order = functools.partial(balanced, data.labels, batch, per_class) if per_class else None

    def before(epoch: int, progress: float, rng: torch.Generator) -> None:
        learner.start(progress, rng)
        if on_epoch is not None:
            on_epoch(Epoch(epoch, progress, encoder, device))

    return trainer.run(learner, len(data), budget, on_epoch=before, order=order, name=name)


def load_images(images: Images, rows: Tensor, device: torch.device) -> Tensor:
    """Rows of images as ``[k, c, h, w]`` float in [-1, 1] on the device, channels last."""
    pixels = torch.from_numpy(images[rows.numpy()])
    return to_unit(pixels.to(device)).contiguous(memory_format=torch.channels_last)


@torch.inference_mode()
def embed(model: nn.Module, images: Images, device: torch.device, batch: int = 512) -> np.ndarray:
    """Embeddings of all images, ``[n, d]`` float32, not normalised, no augmentation."""
    model = model.to(device, memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
    parts = []
    for start in range(0, images.shape[0], batch):
        rows = torch.arange(start, min(start + batch, images.shape[0]))
        parts.append(model(load_images(images, rows, device)).float().cpu().numpy())
    return np.concatenate(parts)
