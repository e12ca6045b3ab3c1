"""Do two generations see the same classes or images? What ``apart`` rules out, and methods ask."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmark.config.types import GenerationSpec, Interval

Members = Callable[[Iterable[str]], Iterable[str]]
"""Names of groups -> what they are made of: on a track the dataset's groups, before it is known
the names themselves."""


def common(one: Interval, other: Interval) -> list[float]:
    """What two intervals share; empty if nothing."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return [low, high] if low < high else []


def share_classes(one: GenerationSpec, other: GenerationSpec, members: Members) -> bool:
    """May two generations have a class in common?

    Fractions count within a generation's groups, so they part the classes of two generations
    only where both have the same groups; otherwise only groups without a common member do.

    Example:
        >>> from benchmark.config.types import GenerationSpec
        >>> old = GenerationSpec("old", (0.0, 0.5), groups=("home",))
        >>> new = GenerationSpec("new", (0.5, 1.0), groups=("home", "scarce"))
        >>> share_classes(old, new, tuple)
        True
    """
    mine, others = {*members(one.groups)}, {*members(other.groups)}
    if mine == others:
        return bool(common(one.classes, other.classes))
    return not mine or not others or not mine.isdisjoint(others)


def overlap(generations: Sequence[GenerationSpec], members: Members) -> str | None:
    """Why some generations are not apart; ``None`` if no two may share an image.

    Images count within each class, whatever the groups, so their intervals can always be compared.
    """
    for one, other in itertools.combinations(generations, 2):
        images = common(one.images, other.images)
        if images and share_classes(one, other, members):
            return (
                f"'{one.name}' and '{other.name}' share {_shared(one, other, members)} and "
                f"images {images}, which 'apart' rules out"
            )
    return None


def _shared(one: GenerationSpec, other: GenerationSpec, members: Members) -> str:
    mine, others = {*members(one.groups)}, {*members(other.groups)}
    if mine == others:
        return f"classes {common(one.classes, other.classes)}"
    both = sorted(mine & others or mine | others)
    return f"groups {', '.join(both)}, within which their fractions count differently,"
