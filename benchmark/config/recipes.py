"""Model and recipe: a generation's architecture, and its training."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from benchmark.config.backbones import (
    BACKBONES,
    OWN_BACKBONE,
    backbone_version,
    backbones,
    is_own_backbone,
)
from benchmark.config.checks import holds
from benchmark.config.embedders import load_embedder
from benchmark.config.files import digest
from benchmark.config.reading import Model, build
from benchmark.errors import BenchError

OF_TEXTS = "text:"
"""Before the name of an embedder that is the frozen backbone of texts."""
_TAG = r"[a-zA-Z0-9][\w-]{0,99}"
PACKAGED = "package:"
"""Before the name of an embedder, whose installed package has the weights."""
_WEIGHTS = re.compile(
    rf"{_TAG}|sha256:[0-9a-f]{{64}}|{PACKAGED}[a-z0-9][a-z0-9.-]{{0,63}}"
    r"|[^\0\n]{1,4000}\.safetensors"
)

_RESNET = re.compile(r"timm:\w*resne")
_TRANSFORMER = re.compile(
    "(timm:|open_clip:)?(ViT|vit|deit|beit|cait|crossvit|eva|flexivit|pit|swin|volo|xcit)"
)

HeadKind = Literal["softmax", "norm-softmax", "cosface", "arcface"]
HEADS: tuple[str, ...] = get_args(HeadKind)
MARGINS: Mapping[str, float] = {"arcface": 0.5, "cosface": 0.35}
"""Margin of a head by default: Deng et al. (2019), section 3.1; Wang et al. (2018), section 4.2."""


OF_BACKBONE = ("weights", "weights_sha256", "input_size", "project", "last_stride", "frozen")
"""Settings of one backbone, which hold no more where a model gets another."""
OF_HEAD = ("scale", "margin")
"""Of one head, likewise."""
OF_MAPS = ("transform_steps", "transform_batch")
"""Settings of a recipe that nothing but a map's training reads."""


def is_weights_file(weights: str) -> bool:
    """Tell whether a model's ``weights`` are a file, not a tag."""
    return weights.endswith(".safetensors")


def is_here(weights: str) -> bool:
    """Tell whether a model's ``weights`` are a file here or in a package: known by its content."""
    return is_weights_file(weights) or weights.startswith(PACKAGED)


class ModelSpec(Model):
    """An embedding model and its classifier."""

    package: Annotated[str, Field(max_length=300)] = ""
    """Of a backbone that another package adds: the package and the hash of the module, which
    records have; they can be read without the package."""
    backbone: Annotated[str, Field(max_length=200)]
    """A name of ``benchmark.models.backbones`` (``convnet-16``, ``iresnet-50``, ``vit-s``),
    ``timm:<name>``, ``open_clip:<name>``, ``torchvision:alexnet``; of texts
    ``text:<embedder>``, always frozen, with the weights of an installed package; or a name that
    another package adds."""
    dim: int = Field(ge=1, le=2**16)
    """Embedding dimension."""
    weights: Annotated[
        str | None,
        holds(
            lambda w: w is None or _WEIGHTS.fullmatch(w),
            "a tag of the backbone's library, package:<embedder> or a .safetensors file",
        ),
    ] = None
    """Start of the backbone: a tag of timm or open_clip (``orig_in21k``), which they
    download, a file of an installed package (``package:efficientnet-lite0``, by the name of an
    embedder), or a local safetensors file; by default from random numbers."""
    weights_sha256: Annotated[
        str, holds(re.compile("(?:[0-9a-f]{64})?").fullmatch, "64 hexadecimal digits")
    ] = ""
    """Hash that the file of the weights must have; records have it of those that were used."""
    input_size: Annotated[int, Field(ge=8, le=2048)] | None = None
    """Side that images are scaled to before the backbone; by default their own."""
    frozen: bool = False
    """The backbone stays as its weights are and embeds each image once, for all that is trained;
    trained are the layers behind it."""
    # A validator before it makes Python values of JSON, whose lists are no tuples.
    hidden: Annotated[
        tuple[Annotated[int, Field(ge=1, le=2**16)], ...], Field(strict=False, max_length=16)
    ] = ()
    """Widths of layers between the backbone and the embedding, each with a batch norm and a
    ReLU."""
    texts: Annotated[
        str, holds(re.compile("(?:[a-z0-9][a-z0-9.-]{0,63})?").fullmatch, "an embedder's name")
    ] = ""
    """Of a generation whose queries are texts: an embedder that stays as it is, behind which a
    linear layer is trained; by default a small encoder is trained from nothing."""
    project: bool = True
    """Linear layer that maps the backbone's output to ``dim`` numbers; without, it has so
    many."""
    last_stride: Literal[1, 2] = 2
    """Stride of a ResNet's last stage: 1 leaves it maps twice as large (Luo et al., 2019)."""
    head: HeadKind = "softmax"
    """Classifier and loss."""
    scale: float = Field(64.0, gt=0, le=1e4)
    """Logit scale of the normalised heads."""
    margin: float | None = Field(None, ge=0, le=4)
    """Margin of cosface and arcface; by default the head's own, 0.35 and 0.5."""
    relu: bool = False
    """ReLU at the end of the embedding (BCT Table 3)."""
    triplet: float = Field(0.0, ge=0, le=1e6)
    """Weight of a batch-hard triplet loss beside the classifier's (Hermans et al., 2017); the
    model then ends in a BNNeck (Luo et al., 2019)."""
    per_class: int = Field(0, ge=0, le=2**20)
    """Images of a class in a batch, as triplets need; 0 draws images alike."""
    recipe: Mapping[str, JsonValue] = {}
    """Changes that its training makes to the track's recipe: a transformer wants another optimiser
    than a convolutional network (BT2 section 4.4)."""

    @property
    def is_transformer(self) -> bool:
        """Tell whether the backbone is a transformer, by the family that its name begins with."""
        return bool(_TRANSFORMER.match(self.backbone))

    @property
    def is_small(self) -> bool:
        """Tell a small network of our own, trained from random numbers, by its name."""
        own = OWN_BACKBONE.fullmatch(self.backbone)
        return own is not None and own[1] is not None and self.weights is None

    @property
    def embedder(self) -> str:
        """The embedder that is a backbone of texts; empty where images are embedded."""
        return self.backbone.removeprefix(OF_TEXTS) if self.backbone.startswith(OF_TEXTS) else ""

    @property
    def known_weights(self) -> str | None:
        """The weights by what they hold, ``sha256:...``, wherever they lie; else as they are."""
        if self.weights is not None and self.weights_sha256 and is_here(self.weights):
            return f"sha256:{self.weights_sha256}"
        return self.weights

    @property
    def frozen_part(self) -> dict[str, JsonValue]:
        """All of a frozen backbone that determines its features."""
        name = self.backbone
        part: dict[str, JsonValue] = {
            "backbone": name, "weights": self.known_weights, "input_size": self.input_size
        }  # fmt: skip
        if self.embedder:
            return part | {"run": digest(load_embedder(self.embedder).run)}
        version = backbone_version(name)
        return part | {"package": version} if version else part

    @property
    def features_key(self) -> str:
        """Name of the features of a frozen backbone."""
        return digest(self.frozen_part)

    @model_validator(mode="before")
    @classmethod
    def _a_tag_names_weights(cls, values: Any) -> Any:
        """Take ``timm:resnet18.tv_in1k`` as timm does: weights ``tv_in1k`` of ``resnet18``."""
        name = values.get("backbone") if isinstance(values, Mapping) else None
        if isinstance(name, str) and name.startswith(OF_TEXTS):  # always frozen, with its weights
            weights = values.get("weights") or PACKAGED + name.removeprefix(OF_TEXTS)
            return {**values, "weights": weights, "frozen": True}
        if not isinstance(name, str) or not name.startswith("timm:") or "." not in name:
            return values
        backbone, _, tag = name.partition(".")
        if values.get("weights") not in (None, tag):
            raise ValueError(
                f"weights: expected '{tag}' or none beside the backbone '{name}', got "
                f"'{values['weights']}'"
            )
        return {**values, "backbone": backbone, "weights": tag}

    @field_validator("backbone")
    @classmethod
    def _is_there(cls, name: str, info: ValidationInfo) -> str:
        if is_own_backbone(name) or info.data.get("package") or name in backbones():
            return name
        raise PydanticCustomError("expected", f"expected {BACKBONES}")

    @model_validator(mode="after")
    def _consistent(self) -> ModelSpec:
        if self.triplet and self.per_class < 2:
            raise ValueError(f"per_class: expected at least 2 beside triplet, got {self.per_class}")
        if self.last_stride == 1 and not _RESNET.match(self.backbone):
            raise ValueError(f"last_stride: expected a ResNet of timm, got '{self.backbone}'")
        if self.frozen and self.weights is None and is_own_backbone(self.backbone):
            raise ValueError("frozen: expected weights beside it, got none")
        if self.weights_sha256 and self.weights is None:
            raise ValueError("weights_sha256: expected weights beside it, got none")
        return self


class Augment(Model):
    """Random changes of a training batch, each drawn anew for each image."""

    rotate: float = Field(0.0, ge=0, le=180)
    """Largest rotation, degrees."""
    scale: float = Field(0.0, ge=0, le=10)
    """Largest relative change of size."""
    shift: float = Field(0.0, ge=0, le=1)
    """Largest shift, as a fraction of the side."""
    contrast: float = Field(0.0, ge=0, le=10)
    """Largest relative change of contrast."""
    brightness: float = Field(0.0, ge=0, le=10)
    """Largest change of brightness, as a fraction of the range."""
    flip: bool = False
    """Mirror left and right half of the time."""
    crop: float = Field(0.0, ge=0, le=1)
    """Smallest share of the area that a random crop shows, enlarged; 0 crops nothing."""
    aspect: float = Field(1.0, ge=1, le=100)
    """Largest ratio of a crop's sides, either way; 1 keeps that of the image."""
    saturation: float = Field(0.0, ge=0, le=10)
    """Largest relative change of saturation, of colour images."""
    hue: float = Field(0.0, ge=0, le=0.5)
    """Largest turn of the hue, as a fraction of its circle."""
    jitter: float = Field(1.0, ge=0, le=1)
    """Share of the images whose contrast, brightness, saturation and hue change."""
    grey: float = Field(0.0, ge=0, le=1)
    """Share of the images made grey."""
    blur: float = Field(0.0, ge=0, le=1)
    """Share of the images blurred, by a Gaussian of 0.1 to 2 pixels where a side has 224."""
    erase: float = Field(0.0, ge=0, le=1)
    """Share of the images of which a rectangle is erased (Zhong et al., 2020: random erasing)."""


PHOTOGRAPHS = Augment(
    crop=0.08, aspect=4 / 3, flip=True, contrast=0.8, brightness=0.4, saturation=0.8, hue=0.2,
    jitter=0.8, grey=0.2, blur=0.5,
)  # fmt: skip
"""SimCLR's views where a track names none: those of photographs.

Source: Chen et al. (2020), appendix A, at strength 1, which FCT appendix D.4.1 follows, and
google-research/simclr data_util.py. Brightness is a factor of 0.2 to 1.8 in that code and here a
sum: 0.4 of the range is what the factor moves a middle grey by. Contrast is about that grey, not
the image's mean.
"""
_NOT_OF_SIMCLR = (
    "simclr", "epochs", "side_epochs", "transform_steps", "transform_batch", "transform_views",
    "length",
)  # fmt: skip


_PASSES = re.compile(r"([1-9]\d{0,4}) epochs")
Passes = Annotated[str, holds(_PASSES.fullmatch, "a number of steps, or one such as '80 epochs'")]


def lengthened(values: Mapping[str, Any], length: int) -> dict[str, Any]:
    """Some values of a recipe, those that say how long something trains so many times as long.

    Example:
        >>> lengthened({"side_epochs": 2, "transform_steps": "80 epochs", "lr": 0.1}, 3)
        {'side_epochs': 6, 'transform_steps': '240 epochs', 'lr': 0.1}
    """
    made = dict(values)
    for name in ("epochs", "side_epochs", "transform_steps"):
        value = made.get(name)
        if isinstance(value, int):
            made[name] = value * length
        elif isinstance(value, str) and (passes := _PASSES.fullmatch(value)):
            made[name] = f"{int(passes[1]) * length} epochs"
    return made


class Recipe(Model):
    """Training of everything on a track, the same for every method."""

    epochs: int = Field(ge=0, le=100_000)
    """Passes over the training data of a generation; 0 takes a pretrained pair of a text and an
    image encoder as it is."""
    batch_size: int = Field(256, ge=1, le=2**20)
    """Images a step, over all devices."""
    optimizer: Literal["sgd", "adam", "adamw", "lars"] = "sgd"
    lr: float = Field(0.1, ge=0, le=1e4)
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(5e-4, ge=0, le=1e4)
    schedule: Literal["linear", "cosine", "constant", "steps"] = "linear"
    power: float = Field(1.0, gt=0, le=100)
    """Of the linear schedule: the share of the training that is left, to this power."""
    milestones: Annotated[
        tuple[Annotated[float, Field(gt=0, lt=1)], ...],
        holds(lambda m: list(m) == sorted(set(m)), "rising shares"),
    ] = ()
    """Of the schedule ``steps``: shares of the training after which the rate falls."""
    decay: float = Field(0.1, gt=0, le=1)
    """Factor of the rate at each milestone."""
    clip: float = Field(0.0, ge=0, le=1e6)
    """Largest norm of the gradient, which longer ones are scaled to; 0 leaves all as they are."""
    warmup: float = Field(0.0, ge=0, lt=1)
    """Share of the steps in which the learning rate rises linearly from 0."""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
    """As Lightning Fabric names it; used for training, embeddings are float32. ``16-mixed`` is
    ``bf16-mixed`` on a CPU, and this ``32-true`` on one without bfloat16 instructions, where it
    would be slower; records say what was used."""
    compile: bool = False
    """Compilation of the network by torch for training on GPUs: other last bits, more steps a
    second. Elsewhere, and where classifier and network share a neck, it is not."""
    transform_steps: Annotated[int, Field(ge=1, le=10**8)] | Passes = 600
    """Steps of a learned conversion on cached embeddings, or ``80 epochs`` over its pairs."""
    transform_batch: int = Field(256, ge=2, le=2**24)
    """Pairs a step of a learned conversion."""
    transform_views: Annotated[int, Field(ge=1, le=1024)] | Literal["epoch"] = 1
    """Augmented views of each training image from which conversions are learned, the same ones for
    every model; 1 is the image as it is, ``epoch`` new views in each epoch of a conversion that
    is trained (those in closed form have one)."""
    stored_views: int = Field(1, ge=1, le=64)
    """Views of each training image that a frozen backbone embeds and training draws from: the
    image as it is, and others changed by ``augment``, the same ones for every backbone."""
    side_epochs: int = Field(20, ge=1, le=100_000)
    """Passes of a side-information model."""
    augment: Augment = Augment()
    length: int = Field(1, ge=1, le=1000)
    """Factor by which everything trains longer: epochs, also of a model's own recipe and of
    side-information, and steps of conversions. A track's, not a model's."""
    simclr: Mapping[str, JsonValue] = {}
    """Changes that the training of SimCLR side-information makes to this recipe: its optimiser, and
    as ``augment`` its views, which are those of photographs where none are given."""

    def map_steps(self, n: int) -> int:
        """Steps of a learned conversion on ``n`` pairs."""
        if isinstance(self.transform_steps, int):
            return self.transform_steps
        passes = _PASSES.fullmatch(self.transform_steps)
        assert passes is not None  # checked above
        return int(passes[1]) * max(1, n // min(self.transform_batch, n))

    def lengthened(self) -> Recipe:
        """The recipe that takes ``length`` times as long as this one says."""
        values = {**lengthened(dict(self), self.length), "length": 1}
        return build(Recipe, values, "recipe: length")

    def for_simclr(self) -> Recipe:
        """The recipe of SimCLR's training, but for its epochs, which are ``side_epochs``."""
        values = {**dict(self), "augment": PHOTOGRAPHS, **self.simclr, "simclr": {}}
        return build(Recipe, values, "simclr")

    @model_validator(mode="after")
    def _consistent(self) -> Recipe:
        if (self.schedule == "steps") != bool(self.milestones):
            raise ValueError(
                "milestones: expected some with the schedule 'steps', and only there, got "
                f"{list(self.milestones)} with '{self.schedule}'"
            )
        for name in _NOT_OF_SIMCLR:
            if name in self.simclr:
                raise ValueError(f"simclr: expected keys of its training alone, got '{name}'")
        if self.simclr:
            try:
                self.for_simclr()
            except BenchError as error:  # pydantic passes on only what is a ValueError
                raise ValueError(str(error)) from error
        return self
