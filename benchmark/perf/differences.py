"""Share of the 95 % intervals of a mean difference that hold it where few queries differ.

Differences of deployed rankings are often of this kind: most queries agree, most of the others
differ a little, a few by a whole hit. What was seen may then lack the few that make the mean.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmark.metrics.intervals import mean_difference
from benchmark.perf.coverage import NOMINAL
from benchmark.ranking.arrays import Values

QUERIES = (50, 200, 1000)
DIFFERING = (0.01, 0.05, 0.2, 0.6)
"""Shares of the queries that differ."""
_TRUTH = 1_000_000  # draws of the true mean


def _ranks(rng: np.random.Generator, n: int) -> Values:
    before = np.floor(np.exp(rng.exponential(1.2, n)))
    after = np.maximum(1.0, np.round(before * np.exp(rng.normal(0.2, 0.5, n))))
    return 1 / before - 1 / after


KINDS: dict[str, Callable[[np.random.Generator, int], Values]] = {
    "a hit won or lost": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "0.02 won or lost": lambda rng, n: rng.choice([-0.02, 0.02], n),
    "0.02 won, a hit by one in twenty": lambda rng, n: np.where(rng.random(n) < 0.05, 1.0, 0.02),
    "log-normal, won": lambda rng, n: np.minimum(1.0, np.exp(rng.normal(-3.5, 1.5, n))),
    "reciprocal ranks": _ranks,
}
"""Differences of the queries that differ."""


def rows(samples: int = 2000) -> list[dict[str, Any]]:
    """Simulate ``samples`` evaluations of each kind of difference, share and number of queries.

    ``half`` is half the mean width of the intervals, ``coverage`` the share of them that hold the
    true mean.
    """
    return [row for kind in KINDS for row in _kind(kind, samples)]


def _kind(kind: str, samples: int) -> list[dict[str, Any]]:
    mean = float(KINDS[kind](np.random.default_rng(0), _TRUTH).mean())
    found = []
    for share in DIFFERING:
        for n in QUERIES:
            rng = np.random.default_rng([n, int(100 * share)])
            spans = np.array([_span(kind, share, n, rng) for _ in range(samples)])
            held = (spans[:, 0] <= share * mean) & (share * mean <= spans[:, 1])
            found.append(
                {
                    "differences": kind, "differing": share, "queries": n, "mean": share * mean,
                    "half": float((spans[:, 1] - spans[:, 0]).mean() / 2), "nominal": NOMINAL,
                    "coverage": float(held.mean()), "samples": samples,
                }
            )  # fmt: skip
    return found


def _span(kind: str, share: float, n: int, rng: np.random.Generator) -> tuple[float, float]:
    differs = rng.random(n) < share
    span = mean_difference(np.where(differs, KINDS[kind](rng, n), 0.0)).interval()
    assert span is not None  # there are enough queries
    return span
