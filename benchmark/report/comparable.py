"""Records whose scores may be compared: of the newest version, of one old model within a seed."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmark.records.record import Record


def comparable(records: Sequence[Record]) -> list[Record]:
    """Records of one protocol and track that differ by their method alone.

    Of a seed those count whose old/old is that of ``independent``, or else of most: others have
    another old model, as after a change of the track's networks or on another processor. Runs with
    changes may train another one on purpose, and are kept.
    """
    newest = max(((r.protocol_version, r.track_version) for r in records), default=(0, 0))
    current = [r for r in records if (r.protocol_version, r.track_version) == newest]
    usual = _usual(current)
    return [
        r for r in current
        if r.changed or r.status != "done" or _lower(r) == usual[r.seed]
    ]  # fmt: skip


def _usual(records: Sequence[Record]) -> dict[int, Any]:
    """Seed -> the lower bound of independent, or else of most methods."""
    counts: dict[int, Counter[Any]] = {}
    for record in records:
        if record.status == "done" and not record.changed:
            weight = len(records) if record.method == "independent" else 1
            counts.setdefault(record.seed, Counter())[_lower(record)] += weight
    return {seed: each.most_common(1)[0][0] for seed, each in counts.items()}


def _lower(record: Record) -> tuple[tuple[str, float | None], ...]:
    return tuple(sorted(record.bounds.get("lower", {}).items()))
