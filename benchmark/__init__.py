"""CompatBench: the benchmark of backward-compatible embedding training.

>>> import benchmark
>>> records = benchmark.run(["bct", "mixbct"], "open-class")      # doctest: +SKIP
>>> frame = benchmark.load("runs", protocol="open-class")         # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["BenchError", "Conversion", "__version__", "get_method", "load", "run"]

if TYPE_CHECKING:
    from benchmark.api import load, run
    from benchmark.contract.conversion import Conversion
    from benchmark.errors import BenchError


def get_method(label: str, **params: Any) -> Any:
    """The adapter ``fct`` or ``fct:simclr`` with its parameters.

    Raises:
        BenchError: On an unknown method, variant or parameter.
    """
    from benchmark.config import registry

    return registry.method(label, params)


def __getattr__(name: str) -> Any:
    # Late, so that `import benchmark` costs nothing.
    if name in ("run", "load"):
        from benchmark import api

        return getattr(api, name)
    if name == "Conversion":
        from benchmark.contract.conversion import Conversion

        return Conversion
    if name == "BenchError":
        from benchmark.errors import BenchError

        return BenchError
    raise AttributeError(f"module 'benchmark' has no attribute '{name}'")
