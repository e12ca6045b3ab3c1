"""What each generation of a protocol sees on a track, from the track's declared numbers alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmark.data.splits import boundary

if TYPE_CHECKING:
    from benchmark.protocol import GenerationSpec, Track
    from benchmark.setup import Setup


@dataclass(frozen=True)
class Size:
    """A generation's training data.

    Attributes:
        classes: How many classes; exact, unless it is asked for groups.
        images: About how many images: classes differ in size.
        exact: Are both the whole data set's?
    """

    classes: int
    images: int
    exact: bool


def declared(track: Track) -> dict[str, int]:
    """``train_classes`` and ``train_images`` of a track without its data, where they are known.

    A dataset that is drawn tells them by ``numbers``, for any options; of others the track does.
    """
    from benchmark.registry import dataset

    numbers = getattr(dataset(track.dataset), "numbers", None)
    return dict(track.facts) if numbers is None else numbers(**track.data)


def size(generation: GenerationSpec, facts: dict[str, int]) -> Size | None:
    """A generation's share of the declared numbers; ``None`` where nothing is declared.

    Example:
        >>> from benchmark.protocol import GenerationSpec
        >>> size(GenerationSpec("old", (0.0, 0.5)), {"train_classes": 365, "train_images": 1803460})
        Size(classes=182, images=899260, exact=False)
    """
    if not {"train_classes", "train_images"} <= set(facts) or generation.roles:
        return None
    n, total = facts["train_classes"], facts["train_images"]
    low, high = (boundary(share, n) for share in generation.classes)
    share = (generation.images[1] - generation.images[0]) * (high - low) / n
    whole = (high - low, share) == (n, 1.0)
    return Size(high - low, round(total * share), whole)


def generation_lines(setup: Setup) -> Iterator[str]:
    """A line for each generation: its data and its model."""
    facts = declared(setup.track)
    for generation, model in zip(setup.protocol.generations, setup.models, strict=True):
        found = size(generation, facts)
        data = _shares(generation)
        if found is not None:
            about = "" if found.exact else "about "
            data += (
                f": {found.classes:,} of {facts['train_classes']:,} classes, {about}"
                f"{found.images:,} of {facts['train_images']:,} images"
            )
        asks = ", asked with texts" if generation.queries == "texts" else ""
        losses = f"{model.head} and triplet" if model.triplet else model.head
        yield (
            f"{generation.name:<8}{data}; {model.backbone}, {model.dim} dimensions, {losses}{asks}"
        )


def _shares(generation: GenerationSpec) -> str:
    """``classes 0-30 %``."""
    parts = []
    for name, (low, high) in (("classes", generation.classes), ("images", generation.images)):
        if (low, high) != (0.0, 1.0):
            parts.append(f"{name} {100 * low:.4g}-{100 * high:.4g} %")
    if generation.groups:
        parts.append(f"groups {', '.join(generation.groups)}")
    parts += [f"{100 * share:.4g} % of {name}" for name, share in generation.thinned.items()]
    return ", ".join(parts) or "all data"
