"""Verdicts of a record's scores: compatible, not hurting, gain."""

from collections.abc import Mapping
from typing import Any

from benchmark.metrics import compatibility
from benchmark.metrics.catalog import describe

Scores = Mapping[str, float | None]


def verdicts(
    scores: Mapping[str, Scores], bounds: Mapping[str, Scores], upper: Scores, names: list[str]
) -> dict[str, dict[str, Any]]:
    """Criterion, not hurting, and gain of the last generation against the first, per metric."""
    old, new = names[0], names[-1]
    # With text queries of the first generation the cross-test is a text in the new gallery.
    new_queries = f"{new}/{old}" in scores
    cross = scores.get(f"{new}/{old}" if new_queries else f"{old}/{new}", {})
    self_test = scores.get(f"{new}/{new}", {})
    found: dict[str, dict[str, Any]] = {"compatible": {}, "not_hurting": {}, "update_gain": {}}
    for metric, low in bounds["lower"].items():
        new_old, new_new, high = cross.get(metric), self_test.get(metric), upper.get(metric)
        if new_old is None or new_new is None or low is None or high is None:
            continue
        paragon = bounds["upper"][metric]
        # Of errors and gaps smaller is better.
        sign = -1.0 if describe(metric).higher_is_better is False else 1.0
        found["compatible"][metric] = compatibility.compatible(sign * new_old, sign * low)
        found["not_hurting"][metric] = (
            None if paragon is None else compatibility.not_hurting(sign * new_new, sign * paragon)
        )
        # There is no upper bound of text queries: the measured one is of image queries.
        gain = compatibility.update_gain(sign * new_old, sign * low, sign * high)
        found["update_gain"][metric] = gain if new_queries else None
    return found
