"""Which records a table, a plot or a frame is of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError, nearest
from benchmark.records.files import StoredRecord, find_records


def read_selection(
    roots: Iterable[Path],
    on_damaged: Callable[[BenchError], None] | None = None,
    **wanted: Sequence[Any],
) -> list[StoredRecord]:
    """Records below some folders that have certain values.

    Args:
        roots: Folders of records, or single ones; what lies in two of them counts once.
        on_damaged: As for :func:`benchmark.records.files.find_records`.
        **wanted: Field of a record (``method``, ``protocol``, ``track``, ``seed``) -> values; an
            empty list is no restriction. ``arch-change`` are all settings of that protocol.

    Raises:
        BenchError: If a folder has no record, or no record has a value that is wanted.
    """
    every: dict[Path, StoredRecord] = {}
    for root in roots:
        for found in find_records(root, on_damaged):
            every.setdefault(found.path.resolve(), found)
    chosen = list(every.values())
    for field, values in wanted.items():
        known = {name for found in every.values() for name in _names(found, field)}
        for value in values:
            if value not in known:
                near = nearest(str(value), map(str, known))
                raise BenchError(f"no record of {field} '{value}'{near}")
        if values:
            chosen = [found for found in chosen if not _names(found, field).isdisjoint(values)]
    if not chosen:
        asked = ", ".join(f"{k} {' or '.join(map(str, v))}" for k, v in wanted.items() if v)
        raise BenchError(f"no record of {asked}")
    return chosen


def _names(found: StoredRecord, field: str) -> set[Any]:
    """What a record may be asked for by: its value; of a protocol's setting the protocol, too."""
    value = getattr(found.record, field)
    return {value, value.partition(":")[0]} if field == "protocol" else {value}
