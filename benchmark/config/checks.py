"""What fields may hold, checked when a method, a protocol or a track is built."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

Entries = TypeVar("Entries", bound=Sequence[Hashable])

NAME = re.compile(r"[a-z0-9]+(?:[-.][a-z0-9]+)*")
"""Names of generations and settings, which stand in cases, keys of ``--set`` and folders."""


def in_range(params: Any, **ranges: str) -> None:
    """Hold fields to intervals: ``in_range(self, weight="[0, inf)", drop="[0, 1)")``.

    Args:
        params: What has the fields.
        **ranges: An interval for each; a square bracket includes its end, a round one does not.

    Raises:
        ValueError: On a field outside its interval, NaN and infinity included.
    """
    for name, interval in ranges.items():
        value = getattr(params, name)
        low, high = (float(end) for end in interval[1:-1].split(","))
        left, right = ("<=" if interval[end] in "[]" else "<" for end in (0, -1))
        above = value >= low if left == "<=" else value > low
        below = value <= high if right == "<=" else value < high
        if not (above and below):
            limit = f" {right} {high:g}" if high < math.inf or value == high else ""
            raise ValueError(f"{name}: expected {low:g} {left} {name}{limit}, got {value}")


def name_of(name: str) -> str:
    """Refuse a name that is more than small letters, digits and hyphens."""
    if not NAME.fullmatch(name):
        raise ValueError(f"expected small letters, digits and hyphens, got '{name}'")
    return name


def not_blank(text: str) -> str:
    """Refuse a text without a word."""
    if not text.strip():
        raise ValueError("expected a few words, got none")
    return text


def fractions(interval: tuple[float, float]) -> tuple[float, float]:
    """Refuse an interval that is empty, reversed or not within [0, 1]."""
    low, high = interval
    if not 0.0 <= low < high <= 1.0:
        raise ValueError(f"expected 0 <= low < high <= 1, got [{low}, {high}]")
    return interval


def unique(entries: Entries) -> Entries:
    """Refuse an entry that is given twice.

    Example:
        >>> unique(["random", "entropy", "random"])
        Traceback (most recent call last):
        ValueError: expected each once, got 'random' twice
    """
    seen = set()
    for entry in entries:
        if entry in seen:
            raise ValueError(f"expected each once, got '{entry}' twice")
        seen.add(entry)
    return entries
