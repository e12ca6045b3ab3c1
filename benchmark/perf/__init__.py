"""Timings of what must be fast, as rows that a table prints: ``bench perf NAME``.

A benchmark is a module of this package with ``rows(**sizes)``; adding one needs no second edit.
"""

import importlib
import inspect
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError
from benchmark.records import provenance

_HELPERS = {"__init__", "measure", "readme"}
SIZES = ("queries", "gallery", "dim", "classes", "items", "side", "samples")


def names() -> list[str]:
    """The benchmarks there are."""
    files = Path(__file__).parent.glob("*.py")
    return sorted(path.stem for path in files if path.stem not in _HELPERS)


def run(name: str, **sizes: int | None) -> list[dict[str, Any]]:
    """Run one benchmark of :func:`names`, with those of ``SIZES`` that it has; None is its default.

    ``queries`` are also probe templates or training images, ``gallery`` enrolled templates,
    ``classes`` subjects, ``items`` stored vectors or records of a site; ``side`` is the
    dimension of side-information; ``samples`` are simulated evaluations.
    Rows have ``name``, ``seconds``, ``against`` (the row it is compared with, or None), ``ratio``
    (seconds over that row's), ``memory_mib`` (growth of the peak) and ``size``; ``tolerance`` and
    simulations have columns of their own. A ValueError says that the name or a size is unknown, or
    a size is below 1 (``side``: below 0), a BenchError that the benchmark has no such size.
    """
    if name not in names():
        raise ValueError(f"name: expected one of {', '.join(names())}, got {name!r}")
    given = {key: value for key, value in sizes.items() if value is not None}
    rows = importlib.import_module(f"{__name__}.{name}").rows
    known = [key for key in inspect.signature(rows).parameters if key in SIZES]
    for key, value in given.items():
        least = 0 if key == "side" else 1
        if key not in SIZES:
            raise ValueError(f"sizes: expected {', '.join(SIZES)}, got {key!r}")
        if key not in known:
            raise BenchError(f"perf {name}: has no size '{key}'; it has {', '.join(known)}")
        if value < least:
            raise ValueError(f"{key}: expected at least {least}, got {value}")
    return rows(**given)


def document(name: str, **sizes: int | None) -> dict[str, Any]:
    """The rows of :func:`run`, and where they come from: command, date, code, packages, hardware.

    ``load`` counts the processes that ran or waited in the minute before and in the last one.
    """
    before = os.getloadavg()[0]
    rows = run(name, **sizes)
    words = [f"--{key} {value}" for key, value in sizes.items() if value is not None]
    return {
        "command": " ".join(["bench perf", name, *words]),
        "date": datetime.now(UTC).date().isoformat(),
        "code": provenance.code_version().model_dump(),
        "packages": provenance.packages(),
        "hardware": provenance.hardware(),
        "load": [round(before, 2), round(os.getloadavg()[0], 2)],
        "rows": rows,
    }
