"""Parts of a gallery on a Ray cluster: each worker reads its own rows of the files.

What workers count is whole numbers, and what they find are exact scores, so results equal those of
one process bit for bit. Files lie at the same path on every machine.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
_LEAST = 4096
"""Rows of a part."""


class Cluster:
    """Workers of a Ray cluster, with one CPU each."""

    def __init__(self) -> None:
        """Connect to the cluster that RAY_ADDRESS names, or start one on this machine.

        Raises:
            BenchError: If Ray is not installed.
        """
        from benchmark.harness.ray import connected  # the harness loads torch

        self.workers = max(1, int(connected().cluster_resources().get("CPU", 1)))

    def parts(self, rows: int) -> list[tuple[int, int]]:
        """First and last row of about equal parts, one a worker."""
        n = min(self.workers, max(1, rows // _LEAST))
        ends = [rows * k // n for k in range(n + 1)]
        return list(itertools.pairwise(ends))

    def map(self, work: Callable[[Any], T], parts: Sequence[Any]) -> list[T]:
        """The results of ``work`` on each part, in their order; it is sent to each machine once.

        Raises:
            BenchError: As ``work`` raises it.
        """
        from benchmark.harness.ray import in_order

        return list(in_order(_call, work, parts))


def _call(work: Callable[[Any], Any], part: Any) -> Any:
    return work(part)
