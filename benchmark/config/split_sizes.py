"""Sizes of each generation's training data, from the track's declared numbers alone."""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from benchmark.config import registry
from benchmark.config.generations import GenerationSpec
from benchmark.config.setup import Setup
from benchmark.config.tracks import Track

FEW_CLASSES = "expected two classes or more to tell apart, got one"


class Size(NamedTuple):
    """Classes and images of a generation; exactly, or about where classes differ in size."""

    classes: int
    images: int
    exact: bool


def declared_sizes(track: Track) -> dict[str, int]:
    """``train_classes`` and ``train_images`` of a track without its data, where they are known.

    A dataset that is drawn has them for any options, of others the track has.
    """
    dataset = registry.check_options(track.dataset, track.data, f"{track.id}.yaml: data")
    return dataset.sizes() or dict(track.facts)


def size(
    generation: GenerationSpec, facts: dict[str, int], every_class: bool = False
) -> Size | None:
    """A generation's share of the declared numbers; ``None`` where nothing is declared.

    With ``every_class`` each class keeps an image at least.

    Example:
        >>> half = GenerationSpec(name="old", classes=(0.0, 0.5))
        >>> size(half, {"train_classes": 365, "train_images": 1803460})
        Size(classes=182, images=899260, exact=False)
    """
    if not _known(facts) or generation.roles:
        return None
    n, total = facts["train_classes"], facts["train_images"]
    low, high = (boundary(share, n) for share in generation.classes)
    if total % n == 0:
        first, last = _images(generation, total // n, every_class)
        return Size(high - low, (high - low) * (last - first), exact=True)
    share = (generation.images[1] - generation.images[0]) * (high - low) / n
    images = max(round(total * share), (high - low) * every_class)
    return Size(high - low, images, exact=(high - low, share) == (n, 1.0))


def lack(
    generation: GenerationSpec, facts: dict[str, int],
    members: Callable[[Iterable[str]], list[str]], every_class: bool = False,
) -> str | None:  # fmt: skip
    """Reason why a generation surely sees nothing, or one class; ``None`` if it may see more.

    Without the declared numbers (``facts``) nothing is sure. How large groups are, only the data
    tells: they are no larger than the whole. ``members``: names of groups -> the dataset's groups.

    Example:
        >>> facts = {"train_classes": 1300, "train_images": 31200}
        >>> lack(GenerationSpec(name="old", images=(0.0, 0.01)), facts, list)
        "images [0, 0.01] of each class's 24: expected at least one, got none"
    """
    if not _known(facts):
        return None
    n, total = facts["train_classes"], facts["train_images"]
    low, high = (boundary(share, n) for share in generation.classes)
    most = high if generation.groups else high - low
    if not most:
        return none_of("classes", generation.classes, f"{n:,}")
    if most == 1:
        return f"classes {_interval(generation.classes)} of {n:,}: {FEW_CLASSES}"
    gone = [role for role, share in generation.thinned.items() if not boundary(share, most)]
    if generation.groups and {*members(generation.groups)} <= {*members(gone)}:
        return f"thinned to {_thinned(generation)}: expected at least one class, got none"
    # Classes of one size have the same share each, of others only the first image is sure.
    even = total % n == 0
    first, last = _images(generation, total // n if even else total, every_class)
    if first == last if even else not last:
        of = f"each class's {total // n:,}" if even else f"{total:,}"
        return none_of("images", generation.images, of)
    return None


def _images(generation: GenerationSpec, n: int, every_class: bool) -> tuple[int, int]:
    """First image of a class of ``n``, and the first that is left out again."""
    first, last = (boundary(share, n) for share in generation.images)
    if every_class:
        first = min(first, n - 1)
        last = max(last, first + 1)
    return first, last


def none_of(key: str, interval: tuple[float, float], of: str) -> str:
    """Words for an interval in which nothing lies."""
    return f"{key} {_interval(interval)} of {of}: expected at least one, got none"


def _interval(interval: tuple[float, float]) -> str:
    return f"[{interval[0]:g}, {interval[1]:g}]"


def _known(facts: dict[str, int]) -> bool:
    return {"train_classes", "train_images"} <= set(facts)


def generation_lines(setup: Setup) -> Iterator[str]:
    """A line for each generation: its data and its model."""
    facts = declared_sizes(setup.track)
    for generation, model in zip(setup.protocol.generations, setup.models, strict=True):
        share = size(generation, facts, setup.protocol.every_class)
        data = _shares(generation)
        if share is not None:
            about = "" if share.exact else "about "
            data += (
                f": {share.classes:,} of {facts['train_classes']:,} classes, {about}"
                f"{share.images:,} of {facts['train_images']:,} images"
            )
        queries = ", text queries" if generation.queries == "texts" else ""
        losses = f"{model.head} and triplet" if model.triplet else model.head
        spec = f"{model.backbone}, {model.dim} dimensions, {losses}"
        yield f"{generation.name:<8}{data}; {spec}{queries}"


def _shares(generation: GenerationSpec) -> str:
    """``classes 0-30 %``."""
    intervals = generation.model_dump(include={"classes", "images"}, exclude_defaults=True)
    parts = [f"{k} {100 * low:.4g}-{100 * high:.4g} %" for k, (low, high) in intervals.items()]
    if generation.groups:
        parts.append(f"groups {', '.join(generation.groups)}")
    if generation.thinned:
        parts.append(_thinned(generation))
    return ", ".join(parts) or "all data"


def _thinned(generation: GenerationSpec) -> str:
    """``10 % of scarce``."""
    return ", ".join(f"{100 * share:.4g} % of {name}" for name, share in generation.thinned.items())


def boundary(fraction: float, n: int) -> int:
    """Number of ``n`` that lie before a fraction: its decimal digits times it, halves to even.

    >>> [boundary(0.3, 93431), 93431 - boundary(0.3, 93431)]
    [28029, 65402]
    >>> [boundary(0.5, 365), boundary(0.1, 8631), boundary(0.5, 1000)]
    [182, 863, 500]
    """
    return round(Fraction(repr(float(fraction))) * n)
