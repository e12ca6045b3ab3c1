"""The package faiss, where it is installed; the wheel for GPUs runs without one."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

from benchmark.errors import BenchError
from benchmark.ranking.engine import n_threads


@cache
def available() -> bool:
    """Whether it is installed."""
    return find_spec("faiss") is not None


@contextmanager
def threads(number: int | None) -> Iterator[Any]:
    """The package, using so many CPU threads within; all by default.

    Raises:
        BenchError: If it is not installed.
    """
    if not available():
        raise BenchError("an index needs the package faiss: pip install 'compatbench[faiss]'")
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n_threads(number))
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(before)
