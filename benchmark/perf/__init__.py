"""Timings of what must be fast, as rows that a table prints: ``bench perf NAME``.

A benchmark is a module of this package with ``rows(**sizes)``; adding one needs no second edit.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError

_HELPERS = {"__init__", "measure", "peers", "problems"}
SIZES = ("queries", "gallery", "dim", "classes", "items", "side")


def names() -> list[str]:
    """The benchmarks there are."""
    files = Path(__file__).parent.glob("*.py")
    return sorted(path.stem for path in files if path.stem not in _HELPERS)


def run(name: str, **sizes: int | None) -> list[dict[str, Any]]:
    """Run one benchmark.

    Args:
        name: ``ranking``, ``verification``, ``identification``, ``backfill``, ...
        **sizes: Those of ``SIZES`` that the benchmark has; each has its defaults, which None
            stands for.

    Returns:
        Rows of ``name``, ``seconds``, ``against`` (the row it is compared with, or None), ``ratio``
        (seconds over that row's), ``memory_mib`` (growth of the peak) and ``size``.

    Raises:
        ValueError: If the name or a size is unknown, or a size is below 1 (``side``: below 0).
        BenchError: If the benchmark has no such size.
    """
    if name not in names():
        raise ValueError(f"name: expected one of {', '.join(names())}, got {name!r}")
    given: Mapping[str, int] = {key: value for key, value in sizes.items() if value is not None}
    for key, value in given.items():
        if key not in SIZES:
            raise ValueError(f"sizes: expected {', '.join(SIZES)}, got {key!r}")
        least = 0 if key == "side" else 1
        if value < least:
            raise ValueError(f"{key}: expected at least {least}, got {value}")
    module = importlib.import_module(f"{__name__}.{name}")
    known = inspect.signature(module.rows).parameters
    for key in given:
        if key not in known:
            raise BenchError(f"perf {name}: has no size '{key}'; it has {', '.join(known)}")
    found: list[dict[str, Any]] = module.rows(**given)
    return found
