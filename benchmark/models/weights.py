"""Pretrained weights of a backbone: found, checked and loaded, never unpickled.

They are named in :class:`benchmark.config.recipes.ModelSpec`: a tag of the library that the
backbone is from, which that library's hub has as safetensors, a local safetensors file, or a file
of an installed package, known by its SHA-256, of which torch reads tensors alone.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from benchmark.config.embedders import load_embedder
from benchmark.config.files import sha256_of
from benchmark.config.recipes import PACKAGED, ModelSpec, is_here, is_weights_file
from benchmark.errors import BenchError, nearest

T = TypeVar("T")
Shapes = Mapping[str, tuple[int, ...]]
_HUB_FILE = "model.safetensors"
_CLIP_HUB_FILE = "open_clip_model.safetensors"
_WRAPPERS = ("_orig_mod.", "module.")
"""Words that ``torch.compile`` and data-parallel training put before the name of each tensor."""
_PLACES = ("pos_embed", "positional_embedding")
"""Tensors of a transformer that an image of another size has more or fewer rows of."""


def weights_file(spec: ModelSpec) -> Path:
    """The file of a model's weights, which is downloaded where a tag names it.

    Raises:
        BenchError: If the tag is unknown, nothing can be downloaded, or the file is another than
            ``weights_sha256`` says.
    """
    assert spec.weights is not None
    if spec.weights.startswith(PACKAGED):
        path = _packaged(spec)
    else:
        path = Path(spec.weights) if is_weights_file(spec.weights) else _downloaded(spec)
    if not path.is_file():
        raise BenchError(f"weights: expected a safetensors file, got {path}, which does not exist")
    found = sha256_of(path)
    if spec.weights_sha256 not in ("", found):
        raise BenchError(f"weights: {path}: expected SHA-256 {spec.weights_sha256}, got {found}")
    return path


def _packaged(spec: ModelSpec) -> Path:
    """A file of an installed package, checked."""
    embedder = load_embedder(str(spec.weights).removeprefix(PACKAGED))
    if spec.backbone not in (f"timm:{embedder.architecture}", f"text:{embedder.id}"):
        raise BenchError(f"weights: {spec.weights}: expected one of {spec.backbone}, got others")
    return embedder.paths()["weights"]


def read_renamed(path: Path, architecture: str) -> dict[str, Tensor]:
    """Weights of a network of timm under other names, in its order; BenchError if not of it."""
    import timm

    with torch.device("meta"):
        wanted: Any = timm.create_model(architecture, pretrained=False).state_dict()
    stored = torch.load(path, map_location="cpu", weights_only=True)
    shapes = [[tuple(each.shape) for each in held.values()] for held in (stored, wanted)]
    if shapes[0] != shapes[1]:
        raise BenchError(f"weights: {path}: not of {architecture}")
    return dict(zip(wanted, stored.values(), strict=True))


def check_tag(spec: ModelSpec) -> None:
    """Raise a BenchError unless the tag of a model's weights is one of its backbone."""
    library, _, name = spec.backbone.partition(":")
    if library == "timm":
        import timm

        tags = [each.partition(".")[2] for each in timm.list_pretrained(f"{name}.*")]
    elif library == "open_clip":
        from benchmark.models.clip import open_clip

        tags = open_clip().list_pretrained_tags_by_model(name)
    else:
        tags = []
    if spec.weights not in tags:
        known = nearest(str(spec.weights), tags) or f": {', '.join(tags) or 'there is none'}"
        raise BenchError(
            f"weights: expected a safetensors file or a tag of {spec.backbone}, got "
            f"'{spec.weights}'{known}"
        )


def _downloaded(spec: ModelSpec) -> Path:
    """A tag's file in the hub's own cache."""
    check_tag(spec)
    library, _, name = spec.backbone.partition(":")
    if library == "timm":
        import timm

        config: Any = timm.get_pretrained_cfg(f"{name}.{spec.weights}")
        repository, file = str(config.hf_hub_id), config.hf_hub_filename or _HUB_FILE
    else:
        from benchmark.models.clip import open_clip

        known = open_clip().get_pretrained_cfg(name, spec.weights)
        repository, file = str(known.get("hf_hub", "")).rstrip("/"), _CLIP_HUB_FILE
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repository, file))
    except Exception as error:  # of the network, the hub, the disk
        reason = " ".join(str(error).split())
        raise BenchError(
            f"weights: {spec.weights} of {spec.backbone} cannot be downloaded; give a local "
            f"safetensors file: {reason:.200}"
        ) from error


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file; BenchError if it is none."""
    return _read(path, lambda file, key: file.get_tensor(key))


def shapes_of(path: Path) -> Shapes:
    """Sizes of the tensors of a safetensors file; reads no more than its header."""
    return _read(path, lambda file, key: tuple(file.get_slice(key).get_shape()))


def _read(path: Path, part: Callable[[Any, str], T]) -> dict[str, T]:
    try:
        with safe_open(path, "pt") as file:
            return {key: part(file, key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise BenchError(f"weights: {path}: not a safetensors file: {error}") from error


def load_weights(model: nn.Module, spec: ModelSpec, path: Path, part: str = "trunk") -> None:
    """Load a backbone's weights into it; its own classifier in the file is passed over.

    A transformer's places are interpolated to the size of the images, and the first convolution's
    weights summed or repeated for other channels, as timm does both.

    Raises:
        BenchError: If a tensor is missing, unexpected, of another size or not of finite numbers.
    """
    library, _, name = spec.backbone.partition(":")
    renamed = library == "timm" and path.suffix == ".pth"
    tensors = read_renamed(path, name) if renamed else read_weights(path)
    held, loaded = model.state_dict(), backbone_part(tensors, spec, part)
    for key, value in loaded.items():
        _require_sound(key, value, path)
    for key, value in loaded.items():
        if key in held and held[key].shape != value.shape:
            loaded[key] = _fitted(key, value, held[key], model)
    wanted = {key: tuple(value.shape) for key, value in held.items()}
    check_shapes({key: tuple(value.shape) for key, value in loaded.items()}, wanted, str(path))
    model.load_state_dict(loaded)


def check_weights(model: nn.Module, spec: ModelSpec, path: Path, part: str = "trunk") -> None:
    """Raise a BenchError if a file can be no weights of a backbone, whatever the images' size."""
    wanted = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    found = dict(backbone_part(shapes_of(path), spec, part))
    for key in wanted.keys() & found.keys():
        one, other = wanted[key], found[key]
        places = key.endswith(_PLACES) and len(one) == len(other) and one[-1] == other[-1]
        channels = len(one) == 4 and len(other) == 4 and one[:1] + one[2:] == other[:1] + other[2:]
        if places or (channels and key == _first_convolution(model)):
            found[key] = one
    check_shapes(found, wanted, str(path))
    with safe_open(path, "pt") as file:
        for key in file.keys():  # noqa: SIM118
            _require_sound(key, file.get_tensor(key), path)


def _require_sound(key: str, value: Tensor, path: Path) -> None:
    """BenchError if a tensor has a number that is none, or a variance below 0."""
    if not value.is_floating_point():
        return
    if not bool(value.isfinite().all()):
        raise BenchError(f"weights: {path}: '{key}': expected finite numbers, got NaN or infinity")
    if key.endswith("running_var") and bool((value < 0).any()):
        raise BenchError(f"weights: {path}: '{key}': expected variances, got one below 0")


def check_shapes(found: Shapes, wanted: Shapes, where: str) -> None:
    """Name the first tensor that is missing, unexpected or of another size in a BenchError."""
    for key in sorted(wanted.keys() | found.keys()):
        one, other = (each.get(key) for each in (wanted, found))
        if one != other:
            sizes = ("no such tensor" if each is None else str(each) for each in (one, other))
            raise BenchError("weights: {}: '{}': expected {}, got {}".format(where, key, *sizes))


def backbone_part(tensors: Mapping[str, T], spec: ModelSpec, part: str) -> dict[str, T]:
    """Tensors of a file that are a backbone's, by its own names.

    What wraps a model (``_orig_mod.``) is no part of them. Files of CLIP hold both towers, of which
    ``part`` is ``visual`` or ``text``; those of our runs a whole model; others a classifier, too.
    """
    tensors = _unwrapped(tensors)
    library, _, name = spec.backbone.partition(":")
    if library == "open_clip":
        both = {
            key if key.startswith(("visual.", "text.", "logit_")) else f"text.{key}": value
            for key, value in tensors.items()
        }
        return _below(both, f"{part}.")
    if any(key.startswith("trunk.") for key in tensors):
        return _below(tensors, "trunk.")
    if library != "timm":
        return dict(tensors)
    import timm

    heads = timm.get_pretrained_cfg(name, allow_unregistered=True)
    classifier = heads.classifier if heads is not None else None
    names = [classifier] if isinstance(classifier, str) else [*(classifier or ())]
    dropped = tuple(f"{each}." for each in names)
    return {key: value for key, value in tensors.items() if not key.startswith(dropped)}


def _unwrapped(tensors: Mapping[str, T]) -> Mapping[str, T]:
    for prefix in _WRAPPERS * 2:  # either may stand before the other
        if tensors and all(key.startswith(prefix) for key in tensors):
            tensors = _below(tensors, prefix)
    return tensors


def _below(tensors: Mapping[str, T], prefix: str) -> dict[str, T]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _fitted(key: str, value: Tensor, like: Tensor, model: nn.Module) -> Tensor:
    """Places for images of another size, or a first convolution for other channels."""
    if key.endswith("pos_embed") and value.ndim == 3 and value.shape[2] == like.shape[2]:
        from timm.layers.pos_embed import resample_abs_pos_embed

        tokens = int(getattr(model, "num_prefix_tokens", 0))
        size = getattr(getattr(model, "patch_embed", None), "grid_size", None)
        if size is not None:
            return resample_abs_pos_embed(value, list(size), num_prefix_tokens=tokens)
    if key == _first_convolution(model) and value.shape[1] == 3 and like.shape[1] != 3:
        from timm.models import adapt_input_conv

        adapted: Tensor = adapt_input_conv(like.shape[1], value)
        return adapted
    return value


def _first_convolution(model: nn.Module) -> str:
    names = (name for name, module in model.named_modules() if isinstance(module, nn.Conv2d))
    return f"{next(names, '')}.weight"


def statistics_of(spec: ModelSpec) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Mean and deviation, of pixels in [0, 1], that pretrained weights were trained with.

    ``None`` where images in [-1, 1] are what the backbone was made for. Those of a file are its
    library's usual ones.
    """
    library, _, name = spec.backbone.partition(":")
    if spec.weights is None or library not in ("timm", "open_clip"):
        return None
    if library == "timm":
        import timm

        tag = "" if is_here(spec.weights) else f".{spec.weights}"
        config: Any = timm.get_pretrained_cfg(name + tag)
        return tuple(config.mean), tuple(config.std)
    from benchmark.models.clip import MEAN, STD

    return MEAN, STD
