"""Declarations of metrics, each beside the function that computes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True)
class Metric:
    """What a reader must know to show a metric.

    Attributes:
        key: Stable name, as records store it: snake case with the cut-off last.
        label: What tables and axes print.
        higher_is_better: Direction; None where neither is better.
        low: Smallest possible value, or None.
        high: Largest possible value, or None.
        rules: Ties, empty queries, self-matches, normalisation; whole sentences.
        unit: ``share`` (printed as percent), ``coefficient`` or ``count``.
    """

    key: str
    label: str
    higher_is_better: bool | None
    low: float | None
    high: float | None
    rules: str
    unit: Literal["share", "coefficient", "count"] = "share"


DECLARED: dict[str, Metric] = {}
"""Key or pattern -> metric, of the modules that are imported; ``catalog`` has all."""


def metric(
    key: str,
    label: str,
    rules: str,
    *,
    higher: bool | None = True,
    low: float | None = 0.0,
    high: float | None = 1.0,
    unit: Literal["share", "coefficient", "count"] = "share",
) -> Callable[[Function], Function]:
    """Declare a metric that the decorated function computes; the function stays as it is.

    Arguments are those of :class:`Metric`. ``key`` may be a pattern, whose fields may stand in the
    label: ``{k}`` is a cut-off, ``{rate}`` a target rate, ``{name}`` some words, and ``{metric}`` a
    metric's key, from which direction, range and unit are then taken.
    """

    def declare(function: Function) -> Function:
        DECLARED[key] = Metric(key, label, higher, low, high, rules, unit)
        return function

    return declare
