"""Choose records for a table, a plot or a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError, nearest
from benchmark.records.files import StoredRecord, find_records


def read_selection(
    roots: Iterable[Path],
    on_damaged: Callable[[BenchError], None] | None = None,
    **chosen: Sequence[Any],
) -> list[StoredRecord]:
    """Records below some folders that have certain values.

    Args:
        roots: Folders of records, or single ones; what lies in two of them counts once.
        on_damaged: As for :func:`benchmark.records.files.find_records`.
        **chosen: Field of a record (``method``, ``protocol``, ``track``, ``seed``) -> values; an
            empty list is no restriction. ``arch-change`` are all settings of that protocol.

    Raises:
        BenchError: If a folder has no record, or no record has a chosen value.
    """
    every: dict[Path, StoredRecord] = {}
    for root in roots:
        for found in find_records(root, on_damaged):
            every.setdefault(found.path.resolve(), found)
    selection = list(every.values())
    for field, values in chosen.items():
        known = {name for found in every.values() for name in _names(found, field)}
        for value in values:
            if value not in known:
                near = nearest(str(value), map(str, known))
                raise BenchError(f"no record of {field} '{value}'{near}")
        if values:
            selection = [
                found for found in selection if not _names(found, field).isdisjoint(values)
            ]
    if not selection:
        words = ", ".join(f"{k} {' or '.join(map(str, v))}" for k, v in chosen.items() if v)
        raise BenchError(f"no record of {words}")
    return selection


def _names(found: StoredRecord, field: str) -> set[Any]:
    """The value of a record's field; of a protocol's setting the protocol, too."""
    value = getattr(found.record, field)
    return {value, value.partition(":")[0]} if field == "protocol" else {value}
