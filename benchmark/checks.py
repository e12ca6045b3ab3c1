"""Ranges of hyper-parameters, checked when a method is made."""

from __future__ import annotations

import math
from typing import Any


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
