"""Records to compare: of the newest version and networks, of one old model within a seed."""

from collections import Counter
from collections.abc import Sequence
from functools import cache

from benchmark.config import registry
from benchmark.config.recipes import OF_MAPS
from benchmark.errors import BenchError
from benchmark.records.provenance import PROCESSOR
from benchmark.records.record import Record
from benchmark.records.stage_titles import old_model
from benchmark.records.verified import TOLERANCE

Place = tuple[str, str, str]
"""Protocol, track and changes, each of which may have networks of its own."""
Shared = tuple[str | None, str]
"""Hash of the old model, fingerprint of the data."""


def comparable(records: Sequence[Record]) -> list[Record]:
    """Records of one protocol and track that may be compared within a seed.

    They are of the newest version, and of one old model; see :func:`of_another_old_model`.
    """
    newest = max(((r.protocol_version, r.track_version) for r in records), default=(0, 0))
    current = [r for r in records if (r.protocol_version, r.track_version) == newest]
    elsewhere = {id(record) for record in of_another_old_model(current)}
    return [record for record in current if id(record) not in elsewhere]


def of_another_old_model(records: Sequence[Record]) -> list[Record]:
    """Records that do not share the old model, or the data, of their protocol, track and seed.

    That is the one that ``independent`` has, or else most methods (where as many have another one,
    none has it): its weights have that hash, or were trained on another processor (one that does
    not say its model may be another) and give the same scores by themselves, to 0.05 points, as
    processors round products otherwise. Over seeds the networks are those of the last record. Runs
    with changes may train another one on purpose: each set of changes is looked at by itself.
    """
    done = [record for record in records if record.status == "done"]
    last = {_place(r): r.models for r in sorted(done, key=lambda r: r.run.finished or "")}
    usual = _usual([r for r in done if r.models == last[_place(r)]])
    return [
        r for r in done
        if r.models != last[_place(r)] or not _same_old_model(r, usual.get((_place(r), r.seed)))
    ]  # fmt: skip


def _usual(records: Sequence[Record]) -> dict[tuple[Place, int], Record]:
    """Place and seed -> a record of independent's old model and data, or else of most methods'.

    Seeds are left out where as many methods have another one.
    """
    counts: dict[tuple[Place, int], Counter[Shared]] = {}
    first: dict[tuple[Place, int, Shared], Record] = {}
    for record in records:
        weight = len(records) if record.method == "independent" else 1
        update = _place(record), record.seed
        shared = old_model(record), record.dataset.fingerprint
        counts.setdefault(update, Counter())[shared] += weight
        first.setdefault((*update, shared), record)
    usual = {}
    for update, each in counts.items():
        most = max(each.values())
        found = [first[*update, shared] for shared, n in each.items() if n == most]
        if all(_same_old_model(other, found[0]) for other in found):
            usual[update] = found[0]
    return usual


def _same_old_model(record: Record, usual: Record | None) -> bool:
    if usual is None or record.dataset.fingerprint != usual.dataset.fingerprint:
        return False
    ours, its = old_model(record), old_model(usual)
    if ours == its or ours is None or its is None:
        return ours == its
    processors = [[r.environment.get(k) for k in PROCESSOR] for r in (record, usual)]
    if processors[0] == processors[1] and all(processors[0]):
        return False
    scores = [r.bounds.get("lower", {}) for r in (record, usual)]
    pairs = [(scores[0][k], scores[1][k]) for k in scores[0].keys() & scores[1].keys()]
    gaps = [100 * abs(a - b) for a, b in pairs if a is not None and b is not None]
    return bool(gaps) and max(gaps) <= TOLERANCE


def mixed_settings(records: Sequence[Record]) -> list[str]:
    """Reasons why scores of a table are not of one work, in words; none where they are.

    Seeds of a method have one code and one set of parameters, and all methods one recipe. Records
    with changed settings are another row.
    """
    done = [record for record in records if record.status == "done"]
    rows: dict[tuple[str, Place], set[str]] = {}
    recipes: dict[tuple[str, str], set[str]] = {}
    for record in done:
        work = record.adapter and record.adapter.source, sorted(record.config.items())
        rows.setdefault((record.method, _place(record)), set()).add(repr(work))
        place = str(_place(record))
        for setting, value in dict(record.recipe).items():
            if setting not in OF_MAPS or _trains_map(record.method):
                recipes.setdefault((place, setting), set()).add(repr(value))
    out = []
    mixed = [method for (method, _), works in rows.items() if len(works) > 1]
    if mixed:
        out.append(
            f"Warning: seeds of {', '.join(dict.fromkeys(mixed))} are of several versions of its "
            "code, or of several parameters: their mean is of none of them. Run them again."
        )
    apart = [
        f"{setting} {' and '.join(sorted(values))}"
        for (_, setting), values in recipes.items() if len(values) > 1
    ]  # fmt: skip
    if apart:
        out.append(
            f"Warning: not all of one recipe ({'; '.join(dict.fromkeys(apart))}), so methods, or "
            "seeds, do not have the same budget. Run them again."
        )
    return out


@cache  # asked of every record of a table
def _trains_map(label: str) -> bool:
    try:
        return registry.method_file(label).trains_map
    except BenchError:  # of a package that is not here
        return True


def _place(record: Record) -> Place:
    return record.protocol, record.track, str(sorted(record.changed.items()))
