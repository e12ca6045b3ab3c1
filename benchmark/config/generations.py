"""A protocol's generations: their share of the training data, and whether two of them overlap."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from benchmark.config.checks import Interval, Name, Names, holds
from benchmark.config.method_names import RESERVED
from benchmark.config.reading import Model

Members = Callable[[Iterable[str]], Iterable[str]]
"""Names of groups -> the dataset's groups; before the dataset is known the names themselves."""


class GenerationSpec(Model):
    """One generation of a protocol: its share of the training data and its model."""

    name: Annotated[
        Name, holds(lambda name: name not in RESERVED, f"none of {', '.join(RESERVED)}")
    ]
    """Its name in cases (``old``, ``new``) and in ``--set old.head=...``."""
    classes: Interval = (0.0, 1.0)
    """Interval of the classes, as fractions."""
    images: Interval = (0.0, 1.0)
    """Interval of the images of each class, as fractions."""
    model: str | None = None
    """Name of the track's model; by default ``old`` for the first, else ``new``."""
    groups: Names = ()
    """Only classes of these of the track's groups; fractions count within them."""
    thinned: Mapping[str, Annotated[float, Field(gt=0, le=1)]] = {}
    """One of the track's groups -> the share of its classes that stays."""
    queries: Literal["images", "texts"] = "images"
    """Kind of its queries. With ``texts`` it is a text and an image encoder that are trained as
    one; methods see the embeddings of the images' texts (BT2 4.7)."""

    @property
    def roles(self) -> set[str]:
        """Groups of the track that it names."""
        return {*self.groups, *self.thinned}


def intersection(one: tuple[float, float], other: tuple[float, float]) -> list[float]:
    """The stretch where two intervals overlap; empty if nowhere."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return [low, high] if low < high else []


def shared_classes(one: GenerationSpec, other: GenerationSpec, members: Members) -> str:
    """Classes that two generations may have in common, in words; empty if there are none.

    Fractions count within a generation's groups, so they part the classes of two generations
    only where both have the same groups; otherwise only groups without a common member do.

    Example:
        >>> old = GenerationSpec(name="old", classes=(0.0, 0.5), groups=("home",))
        >>> new = GenerationSpec(name="new", classes=(0.5, 1.0), groups=("home", "scarce"))
        >>> shared_classes(old, new, tuple)
        'groups home, within which their fractions count differently,'
    """
    left, right = {*members(one.groups)}, {*members(other.groups)}
    if left == right:
        classes = intersection(one.classes, other.classes)
        return f"classes {classes}" if classes else ""
    if left and right and left.isdisjoint(right):
        return ""
    groups = ", ".join(sorted(left & right or left | right))
    return f"groups {groups}, within which their fractions count differently,"


def overlap(generations: Sequence[GenerationSpec], members: Members) -> str | None:
    """Reason why some generations are not apart; ``None`` if no two may share an image.

    Images count within each class, whatever the groups, so their intervals can always be compared.
    """
    for one, other in itertools.combinations(generations, 2):
        images = intersection(one.images, other.images)
        classes = shared_classes(one, other, members)
        if images and classes:
            return (
                f"'{one.name}' and '{other.name}' share {classes} and "
                f"images {images}, which 'apart' rules out"
            )
    return None
