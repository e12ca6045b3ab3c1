"""What fields may hold, checked when a method, a protocol or a track is made."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

NAME = re.compile(r"[a-z0-9]+(?:[-.][a-z0-9]+)*")
"""Names of generations and settings, which stand in cases, keys of ``--set`` and folders."""


def in_range(made: Any, **ranges: str) -> None:
    """Hold fields to intervals: ``in_range(self, weight="[0, inf)", drop="[0, 1)")``.

    Args:
        made: What has the fields.
        **ranges: An interval for each; a square bracket includes its end, a round one does not.

    Raises:
        ValueError: On a field outside its interval, NaN and infinity included.
    """
    for name, interval in ranges.items():
        value = getattr(made, name)
        low, high = (float(end) for end in interval[1:-1].split(","))
        left, right = ("<=" if interval[end] in "[]" else "<" for end in (0, -1))
        above = value >= low if left == "<=" else value > low
        below = value <= high if right == "<=" else value < high
        if not (above and below):
            limit = f" {right} {high:g}" if high < math.inf or value == high else ""
            raise ValueError(f"{name}: expected {low:g} {left} {name}{limit}, got {value}")


def named(name: str) -> None:
    """Refuse a name that is more than small letters, digits and hyphens.

    Raises:
        ValueError: Saying so.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"name: expected small letters, digits and hyphens, got '{name}'")


def positive_version(version: int) -> None:
    """Refuse a version below 1.

    Raises:
        ValueError: Saying so.
    """
    if version < 1:
        raise ValueError(f"version: expected at least 1, got {version}")


def fractions(key: str, interval: tuple[float, float]) -> None:
    """Refuse an interval that is empty, reversed or not within [0, 1].

    Raises:
        ValueError: Naming ``key``.
    """
    low, high = interval
    if not 0.0 <= low < high <= 1.0:
        raise ValueError(f"{key}: expected 0 <= low < high <= 1, got [{low}, {high}]")


def each_once(key: str, entries: Iterable[object]) -> None:
    """Refuse an entry that is given twice.

    Raises:
        ValueError: Naming ``key`` and the entry.

    Example:
        >>> each_once("orders", ["random", "entropy", "random"])
        Traceback (most recent call last):
        ValueError: orders: expected each once, got 'random' twice
    """
    seen = set()
    for entry in entries:
        if entry in seen:
            raise ValueError(f"{key}: expected each once, got '{entry}' twice")
        seen.add(entry)
