"""Choose records for a table, a plot or a frame."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from benchmark.config.places import real
from benchmark.errors import BenchError, nearest
from benchmark.records.files import StoredRecord, find_records

T = TypeVar("T")


def read_selection(
    roots: Iterable[Path],
    on_damaged: Callable[[BenchError], None] | None = None,
    **chosen: Sequence[Any],
) -> list[StoredRecord]:
    """Records below some folders, or single ones, that have certain values; each once.

    ``on_damaged`` is as for :func:`benchmark.records.files.find_records`; ``chosen`` has values by
    field of a record (``method``, ``protocol``, ``track``, ``seed``), an empty list is no
    restriction. ``arch-change`` are all settings of that protocol.

    Raises:
        BenchError: If a folder has no record, or no record has a chosen value.
    """
    folders = list(roots)
    every, damaged = _read(folders, on_damaged, partial(_may_have, chosen))
    selection: list[StoredRecord] = []
    with suppress(BenchError):  # its message names what all records have
        selection = _chosen(every, chosen)
    if not selection:
        every, damaged = _read(folders, on_damaged)
    if on_damaged is not None:
        for error in damaged:
            on_damaged(error)
    selection = selection or _chosen(every, chosen)
    if not selection:
        words = ", ".join(f"{k} {' or '.join(map(str, v))}" for k, v in chosen.items() if v)
        raise BenchError(f"no record of {words}")
    return selection


def _read(
    folders: Sequence[Path], on_damaged: object, wanted: Callable[[Path], bool] = lambda path: True
) -> tuple[list[StoredRecord], list[BenchError]]:
    """Each record once, and what is damaged, if anybody asks for it."""
    damaged: list[BenchError] = []
    note = damaged.append if on_damaged else None
    found = (each for root in folders for each in find_records(root, note, wanted=wanted))
    return list({real(each.path): each for each in found}.values()), damaged


def _chosen(
    every: Iterable[StoredRecord], chosen: Mapping[str, Sequence[Any]]
) -> list[StoredRecord]:
    return choose(
        list(every), lambda stored, field: getattr(stored.record, field), chosen,
        "protocol", "no record of {field} '{value}'",
    )  # fmt: skip


def _may_have(chosen: Mapping[str, Sequence[Any]], path: Path) -> bool:
    """False where a path of the layout that we write has another protocol, track or method."""
    *_, top, protocol, track, method, _ = ("", "", "", "", *path.parts)
    if top != "measured":
        return True
    named = {
        "protocol": {protocol.replace("+", ":"), protocol.partition("+")[0]}, "track": {track},
        "method": {method.replace("+", ":")},
    }  # fmt: skip
    return all(
        field not in named or not values or not named[field].isdisjoint(values)
        for field, values in chosen.items()
    )


def choose(
    items: Sequence[T], value_of: Callable[[T, str], Any], chosen: Mapping[str, Sequence[Any]],
    layered: str, message: str,
) -> list[T]:  # fmt: skip
    """Items each of whose fields has one of the chosen values, if any are chosen.

    In the ``layered`` field ``a`` also means ``a:b``. A value that no item has is an error, which
    begins with ``message`` (its ``field`` and ``value`` filled in).
    """

    def names(item: T, field: str) -> set[Any]:
        value = value_of(item, field)
        return {value, value.partition(":")[0]} if field == layered else {value}

    selection = list(items)
    for field, values in chosen.items():
        known = {name for item in items for name in names(item, field)}
        for value in values:
            if value not in known:
                near = nearest(str(value), map(str, known))
                raise BenchError(message.format(field=field, value=value) + near)
        if values:
            selection = [item for item in selection if not names(item, field).isdisjoint(values)]
    return selection
