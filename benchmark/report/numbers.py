"""Numbers and metric names as they are printed; the only place that knows percent."""

import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TypeVar

from benchmark.errors import AbsentError, BenchError, nearest, unknown
from benchmark.metrics.catalog import Metric, describe
from benchmark.metrics.estimate import Estimate

DASH = "-"
K = TypeVar("K")
_ORDER = ("cmc_at_", "map", "mrr", "minp", "rank_", "tar_at_far_", "tpir_at_fpir_")


@cache
def metric(key: str) -> Metric:
    """The metric of a key; one that the catalogue does not know is shown as it is."""
    try:
        return describe(key)
    except ValueError:
        return Metric(key, key, True, None, None, "", "share")


def number(value: float | None, unit: str = "share", *, signed: bool = False) -> str:
    """A score as tables print it; a difference with its sign.

    Example:
        >>> number(0.5746), number(None), number(0.5746, "coefficient"), number(0.012, signed=True)
        ('57.5', '-', '0.575', '+1.2')
        >>> number(-0.0004), number(-0.00004, "coefficient"), number(-0.0004, signed=True)
        ('0.0', '0.000', '+0.0')
    """
    if value is None:
        return DASH
    sign = "+z" if signed else "z"  # z: no -0.0
    if unit == "share":
        return f"{100 * value:{sign}.1f}"
    return f"{value:{sign}.3f}" if unit == "coefficient" else f"{value:{sign}g}"


def spread(value: float | None, low: float | None, high: float | None, unit: str = "share") -> str:
    """The wider side of an interval, ``±1.1``; empty where there is none.

    Example:
        >>> spread(0.574, 0.563, 0.586)
        '±1.2'
    """
    if value is None or low is None or high is None:
        return ""
    return "±" + number(max(value - low, high - value, 0.0), unit)


def with_ends(score: Estimate, scale: float = 1.0, digits: int = 2) -> str:
    """A number with the ends of its interval, each times a scale.

    Example:
        >>> with_ends(Estimate(0.5, -0.123, 0.9)), with_ends(Estimate(-0.001))
        ('0.50 (-0.12 to 0.90)', '0.00')
        >>> with_ends(Estimate(0.5, 0.4, 0.6), 100, 0), with_ends(Estimate(None))
        ('50 (40 to 60)', '-')
    """
    if score.value is None:
        return DASH
    value, *ends = (f"{scale * x:z.{digits}f}" for x in (score.value, *(score.ends or ())))
    return f"{value} ({' to '.join(ends)})" if ends else value


def of_seeds(answers: tuple[int, int] | None) -> str:
    """Yes or no, or on how many of the seeds.

    Example:
        >>> of_seeds((2, 3)), of_seeds((1, 1)), of_seeds((0, 2)), of_seeds(None)
        ('2 of 3', 'yes', 'no', '-')
    """
    if answers is None:
        return DASH
    yes, of = answers
    return "yes" if yes == of else f"{yes} of {of}" if yes else "no"


def best(values: Mapping[K, float | None], key: str, *, larger: bool = False) -> set[K]:
    """The rivals that are marked as the best; scores that look equal as printed share the mark.

    Nobody's is where that would say nothing: where all of several rivals have the same score, where
    the best is 0 and less cannot be, or where the metric does not say which is better. ``larger``:
    more is better whatever the metric's direction, as of gains.

    Example:
        >>> sorted(best({"a": 0.5, "b": 0.5001, "c": 0.4, "d": None}, "map"))
        ['a', 'b']
        >>> best({"a": 0.5, "b": 0.5001}, "map"), best({"a": 0.0, "b": None}, "map")
        (set(), set())
    """
    about = metric(key)
    known = {
        rival: float(number(value, about.unit))
        for rival, value in values.items()
        if value is not None and math.isfinite(value)
    }
    if not known or about.higher_is_better is None:
        return set()
    up = larger or about.higher_is_better
    top = (max if up else min)(known.values())
    leaders = {rival for rival, value in known.items() if value == top}
    nothing = up and not any(known.values())
    return set() if nothing or len(leaders) == len(values) > 1 else leaders


def ordered(keys: Iterable[str]) -> list[str]:
    """Metrics in reading order: by family, cut-offs rising, unknown ones last.

    Example:
        >>> ordered(["tar_at_far_1e-2", "map", "cmc_at_10", "tar_at_far_1e-4", "cmc_at_5"])
        ['cmc_at_5', 'cmc_at_10', 'map', 'tar_at_far_1e-4', 'tar_at_far_1e-2']
    """
    return sorted(set(keys), key=_place)


@cache
def _place(key: str) -> tuple[int, str, float, str]:
    family = next((i for i, p in enumerate(_ORDER) if key.startswith(p)), len(_ORDER))
    cut = re.search(r"_(\d+(?:\.\d+)?(?:e-\d+)?)$", key)
    return family, key[: cut.start()] if cut else key, float(cut[1]) if cut else 0.0, key


def words(names: str | Iterable[str]) -> list[str]:
    """Names, given as a list or with commas between, each once."""
    listed = names.split(",") if isinstance(names, str) else names
    return list(dict.fromkeys(name.strip() for name in listed if name.strip()))


def chosen(
    kind: str, names: str | Iterable[str], known: list[str], remedy: str = ""
) -> list[str]:  # fmt: skip
    """Chosen names, given as a list or with commas between; ``all`` are all that are known.

    ``remedy`` ends the message on a metric of the catalogue that records lack.

    Raises:
        BenchError: If there is none, or one is unknown; it names their kind and the nearest.
    """
    listed = words(names)
    if listed == ["all"]:
        return known
    for name in listed:
        if name not in known and kind.startswith("metric") and metric(name).rules:
            none = f"these records have none{nearest(name, known)}{remedy}"
            raise AbsentError(f"{kind} '{name}': {none}")
        if name not in known:
            raise unknown(kind, name, known)
    if not listed:
        raise BenchError(f"{kind}: expected at least one of {', '.join(known)}")
    return listed
