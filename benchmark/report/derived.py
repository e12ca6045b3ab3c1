"""Scores that tables make from a record's own: differences between cases, and MixBCT's AVG."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark.records.record import Record

AVG = "avg"
_LESS = " - "


def score(record: Record, case: str, metric: str) -> float | None:
    """A record's score; of a case ``A - B`` that of A less that of B.

    AVG is found under the cases that it averages, see :func:`averaged`.
    """
    left, less, right = case.partition(_LESS)
    if less:
        ends = score(record, left, metric), score(record, right, metric)
        return None if ends[0] is None or ends[1] is None else ends[0] - ends[1]
    if metric == AVG:
        names = list(record.models)
        return mean(record, averaged(names)) if averaged_case(names) == case else None
    return record.scores.get(case, {}).get(metric)


def mean(record: Record, cases: Sequence[str]) -> float | None:
    """MixBCT's AVG over cross-test and self-test; none where one of its metrics is missing."""
    from benchmark.metrics.compatibility import AVERAGED, average

    both = [
        {key: value for key, value in record.scores.get(case, {}).items() if value is not None}
        for case in cases
    ]
    if not all(set(AVERAGED) <= set(scores) for scores in both):
        return None
    return average(*both)


def averaged(names: Sequence[str]) -> tuple[str, str]:
    """Cross-test and self-test of the newest of some generations."""
    return f"{names[-1]}/{names[0]}", f"{names[-1]}/{names[-1]}"


def averaged_case(names: Sequence[str]) -> str:
    """Both as the one case under which AVG stands.

    Example:
        >>> averaged_case(["old", "new"])
        'new/old + new/new'
    """
    return " + ".join(averaged(names))


def is_difference(case: str) -> bool:
    """Is the case ``A - B``?"""
    return _LESS in case


def parts(case: str) -> list[str]:
    """The cases that a difference is made of; a plain case by itself.

    Example:
        >>> parts("new/old - old/old"), parts("new/new")
        (['new/old', 'old/old'], ['new/new'])
    """
    return case.split(_LESS, 1)
