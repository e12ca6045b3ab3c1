"""The catalogue of metrics, each declared beside the function that computes it.

Tables, plots and pages read it, so modules of this package import nothing heavy.
"""

import difflib
import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

Function = TypeVar("Function", bound=Callable[..., object])
Unit = Literal["share", "coefficient", "count"]
Chance = Callable[[float, Mapping[str, float]], float]
"""Cut-off or target rate (0 without one) and a case's counts -> value of a random order; a KeyError
where a count is missing."""


@dataclass(frozen=True)
class Metric:
    """Facts that a reader must know to show a metric."""

    key: str  # stable name, as records store it: snake case with the cut-off last
    label: str  # what tables and axes print
    higher_is_better: bool | None  # direction; None where neither is better
    low: float | None  # smallest possible value, or None, as for ``high``
    high: float | None
    rules: str  # ties, empty queries, self-matches, normalisation; whole sentences
    unit: Unit = "share"  # ``share`` (printed as percent), ``coefficient`` or ``count``
    threshold: bool = False  # taken at a threshold that impostors decide
    rises: bool = False  # never falls as its cut-off or target rate rises
    chance: Chance | None = None  # what a random order of the gallery has; None where unknown
    family: str = ""  # the key with that left open: ``cmc_at_{k}``
    cut_off: float | None = None  # the cut-off or target rate itself; None without any


_FIELDS = {  # of a pattern: what it matches, and an example
    "k": (r"\d*[1-9]\d*", "1"),
    "rate": (r"[1-9](?:\.\d+)?e-\d+|0\.\d+|1", "1e-4"),
    "name": (".+?", "latin"),
    "metric": (".+", "cmc_at_1"),
}
_DECLARED: dict[str, Metric] = {}  # key or pattern -> metric, of the modules that are imported


def metric(
    key: str, label: str, rules: str, *, higher: bool | None = True, low: float | None = 0.0,
    high: float | None = 1.0, unit: Unit = "share", threshold: bool = False, rises: bool = False,
    chance: Chance | None = None,
) -> Callable[[Function], Function]:  # fmt: skip
    """Declare a metric that the decorated function computes; the function stays as it is.

    Arguments are those of :class:`Metric`. ``key`` may be a pattern, whose fields may stand in the
    label: ``{k}`` is a cut-off, ``{rate}`` a target rate, ``{name}`` some words, and ``{metric}`` a
    metric's key, from which range, unit and, where ``higher`` is not False, direction are taken;
    with ``rises`` it rises where that metric does.
    """

    def declare(function: Function) -> Function:
        _DECLARED[key] = Metric(
            key, label, higher, low, high, rules, unit, threshold, rises, chance
        )
        return function

    return declare


@cache
def declared() -> Mapping[str, Metric]:
    """Key, or pattern of keys -> metric, for all modules of this package."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")
    return _DECLARED


def examples() -> list[str]:
    """One key of each metric."""
    fields = {name: example for name, (_, example) in _FIELDS.items()}
    return [pattern.format(**fields) for pattern in declared()]


def describe(key: str) -> Metric:
    """Look up what a metric's key means: ``map``, ``tar_at_far_1e-4``, ``pooled_rank_1`` ...

    If the key is unknown, a ValueError names the nearest known one.

    Example:
        >>> describe("cmc_at_5").label
        'CMC@5'
        >>> describe("area_tar_at_far_1e-4").label
        'area of TAR@FAR 1e-4'
    """
    metric = _find(key)
    if metric is None:
        near = difflib.get_close_matches(key, examples(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"key: expected a known metric, got {key!r}{hint}")
    return metric


def chance(key: str, counts: Mapping[str, float]) -> float | None:
    """A metric's value for a random order of the gallery; None where that is not known.

    Args:
        key: As of :func:`describe`.
        counts: Of a case, as a record has them.

    Example:
        >>> chance("cmc_at_1", {"n_genuine": 1, "n_impostor": 29}), chance("tar_at_far_1e-2", {})
        (0.033..., 0.01)
    """
    about = describe(key)
    if about.chance is None:
        return None
    try:
        return about.chance(about.cut_off or 0.0, counts)
    except (KeyError, ZeroDivisionError):
        return None


def rate(value: float) -> str:
    """A target rate as keys write it.

    Example:
        >>> rate(0.0001), rate(0.05), rate(0.025), rate(0.000025)
        ('1e-4', '5e-2', '0.025', '2.5e-5')
    """
    digits, _, exponent = f"{value:e}".partition("e")
    power = int(exponent)
    digits = digits.rstrip("0").rstrip(".")
    if power >= 0 or ("." in digits and power >= -4):
        return f"{value:g}"
    return f"{digits}e{power}"


@cache
def _find(key: str) -> Metric | None:
    for pattern, metric in declared().items():
        fields = {name: f"(?P<{name}>{regex})" for name, (regex, _) in _FIELDS.items()}
        match = re.fullmatch(pattern.format(**fields), key)
        if match is None:
            continue
        parts = match.groupdict()
        if "metric" not in parts:
            at = next((float(parts[field]) for field in ("k", "rate") if field in parts), None)
            label = metric.label.format(**parts)
            return replace(metric, key=key, label=label, family=pattern, cut_off=at)
        inner = _find(parts["metric"])
        if inner is None:
            return None
        name = parts.get("name", "").replace("_", " ")
        label = metric.label.format(metric=inner.label, name=name)
        higher = False if metric.higher_is_better is False else inner.higher_is_better
        return replace(
            inner, key=key, label=label, higher_is_better=higher,
            rules=f"{metric.rules} {inner.rules}", rises=metric.rises and inner.rises,
            family=key.removesuffix(parts["metric"]) + inner.family,
        )  # fmt: skip
    return None
