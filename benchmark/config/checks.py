"""Checks and types of fields, used when a method, a protocol or a track is built."""

import math
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

LARGEST = 1e100
"""Of numbers that records hold: sums and squares of such ones are finite."""
Entries = TypeVar("Entries", bound=Sequence[Hashable])


def in_range(params: Any, **ranges: str) -> None:
    """Hold fields to intervals: ``in_range(self, weight="[0, inf)", drop="[0, 1)")``.

    A square bracket includes its end, a round one does not; ValueError on any other value, NaN and
    infinity included.
    """
    for name, interval in ranges.items():
        value = getattr(params, name)
        try:
            low, high = (float(end) for end in interval[1:-1].split(","))
        except ValueError:
            raise ValueError(
                f"ranges: {name}: expected an interval such as [0, inf), got {interval!r}"
            ) from None
        left, right = ("<=" if interval[end] in "[]" else "<" for end in (0, -1))
        above = value >= low if left == "<=" else value > low
        below = value <= high if right == "<=" else value < high
        if not (above and below):
            limit = f" {right} {high:g}" if high < math.inf or value == high else ""
            raise ValueError(f"{name}: expected {low:g} {left} {name}{limit}, got {value}")


def holds(check: Callable[[Any], Any], expected: str) -> AfterValidator:
    """A check for ``Annotated``: what is true for values that fit, and what fits, in words."""

    def checked(value: Any) -> Any:
        if not check(value):
            raise PydanticCustomError("expected", f"expected {expected}")
        return value

    return AfterValidator(checked)


def unique(entries: Entries) -> Entries:
    """Refuse an entry, or a name of entries that have names, that is given twice.

    Example:
        >>> unique(["random", "entropy", "random"])
        Traceback (most recent call last):
        ValueError: expected each once, got 'random' twice
    """
    seen = set()
    for entry in entries:
        name = getattr(entry, "name", entry)
        if name in seen:
            raise ValueError(f"expected each once, got '{name}' twice")
        seen.add(name)
    return entries


SEEDS = 2**63
Seed = Annotated[int, Field(ge=0, lt=SEEDS)]
Version = Annotated[int, Field(ge=1, le=10**6)]
_NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:[-.][a-z0-9]+)*")
Name = Annotated[str, holds(_NAME.fullmatch, "small letters, digits, hyphens and dots")]
"""Of generations and settings, which stand in cases, keys of ``--set`` and folders."""
Names = Annotated[tuple[str, ...], AfterValidator(unique)]
_ID = re.compile(r"\w[\w.+-]{0,99}(?::.{1,64})?")
Id = Annotated[str, holds(_ID.fullmatch, "letters, digits and .+-_, at most 100 of them")]
"""Of protocols and tracks: a file's name without its ending, maybe with a setting's name."""
_LONGEST = 10_000


def _is_text(text: str) -> bool:
    return len(text) <= _LONGEST and text.replace("\n", "").isprintable()


Text = Annotated[str, holds(_is_text, "plain text without control characters")]
Words = Annotated[Text, holds(str.strip, "a few words")]
Interval = Annotated[
    tuple[float, float], holds(lambda ends: 0 <= ends[0] < ends[1] <= 1, "0 <= low < high <= 1")
]
"""``[low, high]`` with 0 <= low < high <= 1."""
