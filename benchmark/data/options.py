"""Options of a dataset: a frozen dataclass, read strictly. Not a dataset itself."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from benchmark.errors import BenchError

T = TypeVar("T")


def read(kind: type[T], dataset: str, options: Mapping[str, object]) -> T:
    """An ``Options`` dataclass from keyword options; every mistake is one line.

    Args:
        kind: A frozen dataclass whose defaults are ints, floats, bools or strings.
        dataset: Its name, for messages.
        options: Option name -> value. An int serves where a float is expected.

    Returns:
        The options, each of its default's type.

    Raises:
        BenchError: An unknown option (the nearest known one is named) or a value of another type.
    """
    known: dict[str, Any] = {f.name: f.default for f in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, object] = {}
    for name, given in options.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(known)}"
            raise BenchError(f"dataset {dataset}: unknown option {name!r}{hint}")
        expected = type(known[name])
        whole = isinstance(given, int) and not isinstance(given, bool)
        value = float(given) if expected is float and whole else given  # type: ignore[arg-type]
        if type(value) is not expected:
            raise BenchError(
                f"dataset {dataset}: option {name} expects {expected.__name__}, got {value!r}"
            )
        values[name] = value
    return kind(**values)


def in_range(dataset: str, name: str, value: float, low: float, high: float) -> None:
    """Refuse a value outside ``[low, high]``.

    Raises:
        BenchError: Naming the option, its range and the value (NaN is outside).
    """
    if not low <= value <= high:
        raise BenchError(
            f"dataset {dataset}: option {name} expects {low:g} to {high:g}, got {value:g}"
        )
