"""Records whose scores may be compared: of the newest version, of one old model within a seed."""

from collections import Counter
from collections.abc import Mapping, Sequence

from benchmark.records.record import Record

Lower = tuple[tuple[str, float | None], ...]
Update = tuple[str, str, int, str]
"""Protocol, track, seed and changes, each of which may have an old model of its own."""


def comparable(records: Sequence[Record]) -> list[Record]:
    """Records of one protocol and track that may be compared within a seed.

    They are of the newest version, and of one old model; see :func:`of_another_old_model`.
    """
    newest = max(((r.protocol_version, r.track_version) for r in records), default=(0, 0))
    current = [r for r in records if (r.protocol_version, r.track_version) == newest]
    elsewhere = {id(record) for record in of_another_old_model(current)}
    return [record for record in current if id(record) not in elsewhere]


def of_another_old_model(records: Sequence[Record]) -> list[Record]:
    """Records that do not share the old model of their protocol, track and seed.

    That is the one whose old/old ``independent`` has, or else most methods; another one comes of a
    change of the track's networks, or of another processor. Runs with changes may train another one
    on purpose: each set of changes is looked at by itself.
    """
    usual = _usual(records)
    return [r for r in records if r.status == "done" and _differs(r, usual[_update(r)])]


def _differs(record: Record, usual: Mapping[str, float | None]) -> bool:
    """Whether a bound differs that both have: one of two records may lack a metric."""
    return any(usual.get(metric, value) != value for metric, value in _lower(record))


def _usual(records: Sequence[Record]) -> dict[Update, dict[str, float | None]]:
    """The lower bound of independent, or else of most methods: metric -> score."""
    counts: dict[Update, Counter[Lower]] = {}
    for record in records:
        if record.status == "done":
            weight = len(records) if record.method == "independent" else 1
            counts.setdefault(_update(record), Counter())[_lower(record)] += weight
    return {update: dict(each.most_common(1)[0][0]) for update, each in counts.items()}


def _update(record: Record) -> Update:
    return record.protocol, record.track, record.seed, str(sorted(record.changed.items()))


def _lower(record: Record) -> Lower:
    return tuple(sorted(record.bounds.get("lower", {}).items()))
