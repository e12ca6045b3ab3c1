"""Records whose scores may be compared: of the newest version, of one old model within a seed."""

from collections import Counter
from collections.abc import Sequence

from benchmark.records.record import Record

Lower = tuple[tuple[str, float | None], ...]
Update = tuple[int, str]
"""Seed and changes, each of which may have an old model of its own."""


def comparable(records: Sequence[Record]) -> list[Record]:
    """Records of one protocol and track that may be compared within a seed.

    They are of the newest version, and of one old model; see :func:`of_another_old_model`.
    """
    newest = max(((r.protocol_version, r.track_version) for r in records), default=(0, 0))
    current = [r for r in records if (r.protocol_version, r.track_version) == newest]
    elsewhere = {id(record) for record in of_another_old_model(current)}
    return [record for record in current if id(record) not in elsewhere]


def of_another_old_model(records: Sequence[Record]) -> list[Record]:
    """Records of one protocol and track that do not share their seed's old model.

    That is the one whose old/old ``independent`` has, or else most methods; another one comes of a
    change of the track's networks, or of another processor. Runs with changes may train another one
    on purpose: each set of changes is looked at by itself.
    """
    usual = _usual(records)
    return [r for r in records if r.status == "done" and _lower(r) != usual[_update(r)]]


def _usual(records: Sequence[Record]) -> dict[Update, Lower]:
    """The lower bound of independent, or else of most methods."""
    counts: dict[Update, Counter[Lower]] = {}
    for record in records:
        if record.status == "done":
            weight = len(records) if record.method == "independent" else 1
            counts.setdefault(_update(record), Counter())[_lower(record)] += weight
    return {update: each.most_common(1)[0][0] for update, each in counts.items()}


def _update(record: Record) -> Update:
    return record.seed, str(sorted(record.changed.items()))


def _lower(record: Record) -> Lower:
    return tuple(sorted(record.bounds.get("lower", {}).items()))
