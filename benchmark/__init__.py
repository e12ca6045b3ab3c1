"""CompatBench: the benchmark of backward-compatible embedding training.

>>> import benchmark
>>> records = benchmark.run(["bct", "mixbct"], "open-class")      # doctest: +SKIP
>>> frame = benchmark.load("runs", protocol="open-class")         # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "BenchError", "Compute", "Conversion", "__version__", "convert_file", "get_method", "load",
    "read_vectors", "run", "upgrade",
]  # fmt: skip

if TYPE_CHECKING:
    from benchmark.api import convert_file, get_method, load, read_vectors, run
    from benchmark.contract import Conversion
    from benchmark.errors import BenchError
    from benchmark.harness.execution import Compute

_PLACES = {
    "Compute": "benchmark.harness.execution", "run": "benchmark.api", "load": "benchmark.api",
    "get_method": "benchmark.api", "read_vectors": "benchmark.api",
    "convert_file": "benchmark.api",
    "Conversion": "benchmark.contract", "BenchError": "benchmark.errors",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # Late, so that `import benchmark` costs nothing.
    if name not in __all__:
        raise AttributeError(f"module 'benchmark' has no attribute '{name}'")
    if name == "upgrade":  # the package itself, which can be called
        return importlib.import_module("benchmark.upgrade")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    # What is loaded already and the public calls, without what this file imports for itself.
    own = {"annotations", "importlib", "Any", "TYPE_CHECKING"}
    return sorted({*globals(), *__all__} - own)
