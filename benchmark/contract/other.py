"""Maps that a method builds on: those of other methods, by name."""

from typing import Any

from benchmark.config import registry
from benchmark.contract.bases import VectorMap
from benchmark.errors import BenchError


def vector_map(label: str, **params: Any) -> VectorMap:
    """A map of vectors by its method's name; a BenchError if there is none."""
    method = registry.method(label, params)
    if not isinstance(method, VectorMap):
        raise BenchError(f"{label}: expected a map of vectors, got another kind of method")
    return method
