"""Embedding models: initial weights, training, and embeddings of images."""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config.recipes import Augment, ModelSpec
from benchmark.config.seeds import drawing_from, generator
from benchmark.data.base import Images, take
from benchmark.data.features import Features
from benchmark.data.images import EncodedImages
from benchmark.errors import BenchError
from benchmark.models.backbones import Encoder, to_unit
from benchmark.models.frozen import find_features
from benchmark.models.heads import Head, SimplexHead
from benchmark.models.trials import misfits_told, try_on
from benchmark.models.weights import load_weights, statistics_of, weights_file
from benchmark.training.augment import augment
from benchmark.training.data import TrainingData
from benchmark.training.loop import Budget, Curve, Trainer
from benchmark.training.triplet import balanced, batch_hard


@dataclass
class Batch:
    """A training batch, as a loss sees it.

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
    """The state of a training before epoch ``number``; ``progress`` is as of :class:`Batch`."""

    number: int
    progress: float
    encoder: nn.Module
    device: torch.device

    def embed(self, images: Images) -> Tensor:
        """Embeddings of all images by the model as it stands, ``[n, d]`` float32 on the CPU."""
        return torch.from_numpy(embed(self.encoder, images, self.device))


_LOOKED_AT = 512
"""Training images on which a trained model is compared with a guess."""
Loss = Callable[[Batch, Head, Any], Tensor]


def new_model(
    spec: ModelSpec, data: TrainingData, trainer: Trainer,
    dim: int | None = None, head_dim: int | None = None,
) -> tuple[Encoder, Head]:  # fmt: skip
    """A model and its classifier with initial weights that depend on sizes and the seed only.

    The encoder has ``dim`` dimensions, by default the spec's, and the classifier ``head_dim``, by
    default the encoder's.
    """
    _, channels, *size = data.images.shape
    blocks = data.images.blocks if isinstance(data.images, Features) else ()
    if spec.frozen:
        channels = dict(blocks)[spec.features_key]
    dim = spec.dim if dim is None else dim
    batch = min(trainer.recipe.batch_size, len(data))
    with drawing_from(trainer.seed, "init"):
        with misfits_told(spec, size):
            encoder = Encoder(spec.backbone, dim, channels, size[0], **_options(spec, dim))
        head = Head(
            spec.head, dim if head_dim is None else head_dim, data.classes.tolist(), spec.scale,
            spec.margin, trainer.recipe.label_smoothing,
        )  # fmt: skip
    if spec.frozen:
        find_features(encoder, blocks)
    elif spec.weights is not None:
        # Layers of our own follow the backbone.
        backbone = encoder.trunk[0] if spec.hidden else encoder.trunk  # type: ignore[index]
        load_weights(backbone, spec, weights_file(spec), "visual")
    encoder = encoder.to(memory_format=torch.channels_last)
    some = load_images(data.images, torch.arange(min(batch, 2)), torch.device("cpu"))
    with misfits_told(spec, size, batch):
        try_on(encoder, some)
    return encoder, head


def raw_model(spec: ModelSpec, data: TrainingData) -> tuple[Encoder, int]:
    """A model that gives the features of a frozen backbone, and their number; else a ValueError."""
    if not (spec.frozen and isinstance(data.images, Features)):
        raise ValueError("raw_model: expected a frozen backbone and its features")
    width = dict(data.images.blocks)[spec.features_key]
    encoder = Encoder(spec.backbone, width, width, 1, project=False, stored=spec.features_key)
    return find_features(encoder, data.images.blocks), width


def frozen_backbone(spec: ModelSpec, channels: int, image_size: int) -> Encoder:
    """The backbone of a frozen model with its weights: images in [-1, 1] -> features ``[n, d]``."""
    mean, std = statistics_of(spec) or ((), ())
    with misfits_told(spec, (image_size, image_size)):
        encoder = Encoder(
            spec.backbone, 1, channels, image_size, input_size=spec.input_size, mean=mean, std=std
        )
    encoder.project = nn.Identity()
    if spec.weights is not None:
        load_weights(encoder.trunk, spec, weights_file(spec), "visual")
    return encoder.to(memory_format=torch.channels_last).eval().requires_grad_(False)


def _options(spec: ModelSpec, dim: int) -> dict[str, Any]:
    """Further arguments of the encoder: only those that are set, as they are a part of files' hash.

    A model that a method gives another dimension ends in a linear layer, whatever its spec says.
    """
    given: dict[str, Any] = {
        "relu": spec.relu, "neck": bool(spec.triplet), "hidden": list(spec.hidden)
    }  # fmt: skip
    if spec.frozen:
        given["stored"] = spec.features_key
    else:
        mean, std = statistics_of(spec) or ((), ())
        given |= {"input_size": spec.input_size, "mean": list(mean), "std": list(std)}
    options = {name: value for name, value in given.items() if value}
    if not spec.project and dim == spec.dim:
        options["project"] = False
    if spec.last_stride != 2:
        options["last_stride"] = spec.last_stride
    return options


class ImageSystem(nn.Module):
    """Base of what the loop trains on images: called with rows, it gives their loss."""

    def __init__(
        self, images: Images, device: torch.device, changes: Augment | None = None
    ) -> None:
        super().__init__()
        self.images, self.device, self.changes = images, device, changes or Augment()
        self.rng = torch.Generator()

    def start(self, epoch: int, progress: float, rng: torch.Generator) -> None:  # noqa: ARG002
        """Take the random stream of an epoch."""
        self.rng = rng

    def augmented(self, rows: Tensor) -> Tensor:
        """Augmented images ``[B, c, h, w]`` in [-1, 1]; of stored features a view that is drawn."""
        if isinstance(self.images, Features):
            seen = _in_random_views(self.images.take_rows(rows.numpy()), self.rng)
            return load_images(seen, torch.arange(len(rows)), self.device)
        return augment(load_images(self.images, rows, self.device), self.changes, self.rng)


def _in_random_views(images: Features, rng: torch.Generator) -> Features:
    return images.seen_in(
        torch.randint(images.n_views, (len(images.images),), generator=rng).numpy()
    )


class _Learner(ImageSystem):
    """Encoder, classifier and the method's state as one: one forward, one gradient."""

    def __init__(
        self, encoder: nn.Module, head: Head, state: nn.Module, loss: Loss, data: TrainingData,
        old: Tensor | None, trainer: Trainer, steps: int, triplet: float,
    ) -> None:  # fmt: skip
        super().__init__(data.images, trainer.torch_device(), trainer.recipe.augment)
        self.encoder, self.head, self.state, self.loss = encoder, head, state, loss
        self.labels = data.labels.to(self.device)
        self.old = (torch.empty(len(data), 0) if old is None else old).to(self.device)
        self.progress, self.one_step, self.triplet = 0.0, 1 / steps, triplet
        self.prefetch = getattr(data.images, "prefetch", None)  # of images that lie in files
        wanted = trainer.recipe.compile and self.device.type == "cuda" and not triplet
        self.embed = compiled(encoder) if wanted else encoder.__call__
        self.choices = torch.Generator()  # a method's draws must not change the augmentation

    def start(self, epoch: int, progress: float, rng: torch.Generator) -> None:
        super().start(epoch, progress, rng)
        self.progress, self.choices = progress, generator(rng.initial_seed(), "choices")

    def forward(self, rows: Tensor) -> Tensor:
        images, rows = self.augmented(rows), rows.to(self.device)
        if self.triplet and isinstance(self.encoder, Encoder):
            before_neck, new = self.encoder.around_neck(images)
        else:
            before_neck = new = self.embed(images)
        # Logits at scale 64 lose their differences in bfloat16: losses are float32.
        with torch.autocast(self.device.type, enabled=False):
            batch = Batch(
                images, self.labels[rows], rows, new.float(), self.old[rows], self.progress,
                self.choices,
            )  # fmt: skip
            self.progress += self.one_step
            loss = _checked(self.loss(batch, self.head, self.state))
            if self.triplet:
                loss = loss + self.triplet * batch_hard(before_neck.float(), batch.labels)
            return loss


def _checked(loss: Any) -> Tensor:
    """The loss that a method returned; BenchError unless it is a number that can be lowered."""
    expected = "loss: expected one number with a gradient, a Tensor of shape []"
    if not isinstance(loss, Tensor):
        raise BenchError(f"{expected}, got {type(loss).__name__}")
    if loss.ndim or not loss.is_floating_point():
        raise BenchError(f"{expected}, got {loss.dtype} of shape {list(loss.shape)}")
    if not loss.requires_grad:
        raise BenchError(f"{expected}; it depends on no parameter of the new model")
    return loss


def train_embedding(
    encoder: nn.Module, head: Head, data: TrainingData, trainer: Trainer, *,
    loss: Loss = lambda batch, head, _: head(batch.new, batch.labels),
    state: nn.Module | None = None, old: Tensor | None = None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None, spec: ModelSpec | None = None,
    name: str = "model",
) -> Curve:  # fmt: skip
    """Train encoder, classifier and the modules of a method, in place.

    Args:
        encoder: Images -> embeddings.
        head: The new classifier.
        data: Images and labels.
        trainer: The loop.
        loss: Batch, classifier, state -> scalar; by default the classifier's own.
        state: Modules of the method: parameters are trained along, buffers are kept with the
            checkpoint; what must stay frozen says ``requires_grad_(False)``.
        old: Stored old embeddings of the data, ``[n, d_old]``.
        on_epoch: Called before each epoch.
        spec: Spec of the model: whether a triplet loss is added, and how batches are drawn. A
            method whose classifier stays as it was uses no labels, so has no such loss.
        name: Name of the training in checkpoints and random streams.
    """
    state = nn.Module() if state is None else state  # an empty container is false, yet a state
    budget = Budget.of_epochs(trainer.recipe, len(data))
    still = [not parameter.requires_grad for parameter in head.parameters()]
    unused = still and all(still) and not isinstance(head, SimplexHead)  # which nothing trains
    triplet = 0.0 if spec is None or unused else spec.triplet
    learner = _Learner(encoder, head, state, loss, data, old, trainer, budget.steps, triplet)
    order, hand = None, 1
    if spec is not None and spec.per_class:
        hand = spec.per_class
        order = functools.partial(balanced, data.labels, budget.batch_size, hand)

    def before(epoch: int, progress: float, rng: torch.Generator) -> None:
        learner.start(epoch, progress, rng)
        on_epoch(Epoch(epoch, progress, encoder, learner.device))

    return trainer.run(
        learner, len(data), budget, on_epoch=before, order=order, hand=hand, name=name
    )


def compiled(encoder: nn.Module) -> Callable[[Tensor], Tensor]:
    """A network compiled by torch, of the same parameters; it is no module, so checkpoints stay."""
    forward: Callable[[Tensor], Tensor] = torch.compile(encoder.forward, dynamic=False)
    return forward


def load_images(images: Images, rows: Tensor, device: torch.device) -> Tensor:
    """Rows of images as ``[k, c, h, w]`` float in [-1, 1] on the device, channels last."""
    if device.type == "cuda" and isinstance(images, EncodedImages):
        pixels = images.on_device(rows.numpy(), str(device))
    else:
        pixels = torch.from_numpy(images[rows.numpy()]).to(device)
    return to_unit(pixels).contiguous(memory_format=torch.channels_last)


@torch.inference_mode()
def embed(
    model: nn.Module, images: Images, device: torch.device, batch: int = 512,
    change: Callable[[Tensor], Tensor] = lambda images: images,
) -> np.ndarray:  # fmt: skip
    """Embeddings of all images, ``[n, d]`` float32, not normalised; ``change`` is of a batch."""
    model = model.to(device, memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
    chunks = torch.split(torch.arange(images.shape[0]), batch)
    prefetch: Callable[[Any], None] | None = getattr(images, "prefetch", None)
    made = []
    for rows, following in itertools.zip_longest(chunks, chunks[1:]):
        pixels = load_images(images, rows, device)
        if prefetch is not None and following is not None:
            prefetch(following.numpy())
        made.append(model(change(pixels)).float().cpu().numpy())
    return np.concatenate(made)


def fit_of(
    model: nn.Module, head: Head | None, data: TrainingData, device: torch.device
) -> dict[str, Any]:
    """The classifier's loss on some training images as they are, and that of a guess, ``ln C``.

    Nothing where there is no classifier of the whole embedding and of these classes; a loss that is
    no finite number is ``None``. Whatever terms a method adds, a model that learned something is
    below a guess. The scale of a normalised classifier's logits is fixed, so it cannot make
    them as even as a guess's; of it there is also their mean loss with ``random_labels``.
    """
    rows = np.unique(np.linspace(0, len(data) - 1, min(_LOOKED_AT, len(data))).astype(np.int64))
    if head is None or len(head.classes) < 2 or head.classes.tolist() != data.classes.tolist():
        return {}
    found = torch.from_numpy(embed(model, take(data.images, rows), device))
    if found.shape[1] != head.dim:
        return {}
    with torch.inference_mode():
        logits = head.to("cpu").logits(found)
        loss = F.cross_entropy(logits, data.labels[torch.from_numpy(rows)].cpu()).item()
        random = (logits.logsumexp(dim=1) - logits.mean(dim=1)).mean().item()
    fit = {"loss": loss if math.isfinite(loss) else None, "chance": math.log(len(head.classes))}
    return fit | ({"random_labels": random} if head.normalised and math.isfinite(random) else {})


def mirror(images: Tensor) -> Tensor:
    """Left and right exchanged, ``[n, c, h, w]``."""
    return images.flip(3)


def embed_view(
    model: nn.Module, images: Images, device: torch.device, changes: Augment, seed: int, view: int
) -> np.ndarray:
    """Embeddings ``[n, d]`` float32 of a view, whose pictures depend on ``seed`` and ``view``."""
    rng = generator(seed, "view", view)
    if isinstance(images, Features):
        return embed(model, _in_random_views(images, rng), device)
    return embed(model, images, device, change=lambda batch: augment(batch, changes, rng))
