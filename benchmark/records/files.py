"""Records on disk: listed, read, validated and chosen; committed files beside them."""

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_json

from benchmark.config.files import SEAL, plain_io_errors, read_bytes, seal_of, write_whole
from benchmark.config.places import real
from benchmark.config.reading import parse
from benchmark.errors import AbsentError, BenchError, EditedError, PassedOverWarning, nearest
from benchmark.records import layout
from benchmark.records.details_files import read_kept
from benchmark.records.layout import Values
from benchmark.records.limits import parse_json
from benchmark.records.record import SCHEMA, Record

STUDIES = "studies"
"""Folder of records that answer a question of their own, and so count only where they are named."""
MOST_BYTES = 4 * 1024 * 1024
_MOST_FILES = 50_000
_RECORD = TypeAdapter(Record)
Attempt = Record | BenchError
"""A record, or why a file is none."""
Mapper = Callable[[Callable[[Path], Attempt], Sequence[Path]], Iterable[Attempt]]
"""``map``, or what does the same by several processes."""
T = TypeVar("T")


def write_record(path: Path, record: Record, base: Values | None = None) -> None:
    """Write a record with its seal, durably and whole or not at all; a BenchError on a full disk.

    With a ``base`` (:func:`benchmark.records.layout.base_of`), which is written, too, it does not
    say what that says, and its details file has to keep the rest
    (:func:`benchmark.records.slim.write_slim`). Without one it says all.
    """
    value = record.as_json()
    if base is not None:
        value, _ = layout.parted(value, base)
        layout.write_base(path, base)
    with plain_io_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = layout.json_lines({**value, SEAL: seal_of(value)})
        write_whole(path, text, durable=True)


def read_record(path: Path) -> Record:
    """Read and validate a record.

    Curves, stage times and the command line lie in the details file; where that is missing or
    of another record, which :func:`benchmark.records.details.check_digest` tells, they are empty.

    Raises:
        BenchError: As of :func:`read_value`, or if a field is unknown, missing or wrong.
        EditedError: As of :func:`read_value`.
    """
    # Of the very value that is sealed: the text may have a key twice.
    return parse(_RECORD, to_json(_completed(read_value(path), path)), str(path))


def read_value(path: Path) -> Values:
    """Read a record's own file, whose seal fits, without what it shares with its board.

    Raises:
        BenchError: If it is no regular file, not JSON within limits, or of another schema.
        EditedError: If its seal is missing or does not fit.
    """
    value = parse_json(read_bytes(path, MOST_BYTES), path)
    schema: Any = value.get("schema") if isinstance(value, dict) else type(value).__name__
    if isinstance(schema, bool) or schema != SCHEMA:
        if isinstance(value, dict) and {"verdict", "strategies", "left_out"} <= value.keys():
            got = "a report of `bench upgrade`"
            raise BenchError(f"{path}: expected a record of `bench run`, got {got}")
        older = ", of an earlier version: `bench run` makes it anew from its store"
        known = isinstance(schema, int) and 0 < schema < SCHEMA
        raise BenchError(
            f"{path}: schema: expected {SCHEMA}, got {schema!r:.60}{older if known else ''}"
        )
    if value.get(SEAL) != seal_of(value):
        wrong = "its seal does not fit" if value.get(SEAL) else "its seal is missing"
        raise EditedError(f"{path}: edited since it was written: {wrong}")
    found: Values = value
    return found


def _completed(value: Values, path: Path) -> Values:
    """A record's value with what its base and its details file keep of it."""
    name = value.get(layout.BASE)
    if name is None:
        return value
    if not (isinstance(name, str) and re.fullmatch("[0-9a-f]{16}", name)):
        raise BenchError(f"{path}: base: expected 16 hexadecimal digits, got {name!r:.60}")
    base = layout.read_base(layout.base_path(path, name))
    try:
        return layout.completed(value, base, read_kept(path, value.get("details")))
    except ValueError as error:
        raise BenchError(f"{path}: {error}") from error


@dataclass(frozen=True)
class StoredRecord:
    """A record, and the file that it was read from."""

    record: Record
    path: Path


def find_records(
    root: Path, on_damaged: Callable[[BenchError], None] | None = None, mapper: Mapper = map,
    wanted: Callable[[Path], bool] = lambda path: True,
) -> list[StoredRecord]:  # fmt: skip
    """Every record below a folder, or the one record that ``root`` is, in the order of their paths.

    ``on_damaged`` is called with what is wrong with a file that is no record of ours, which is then
    left out; without it such a file is an error. ``mapper`` calls a function with every path. Files
    that are not ``wanted`` are not read; with none left the list is empty.

    Links to folders are not followed, and a folder ``studies`` is passed over.

    Raises:
        AbsentError: If there is no record.
        BenchError: If none can be read, or there are more files than can be shown.
    """
    paths = [root] if root.is_file() else sorted(_paths(root))
    if not paths:
        gone = "" if root.exists() else ", there is no such place"
        raise AbsentError(f"{root}: no records (files named seed-<n>.json){gone}")
    chosen = [path for path in paths if wanted(path)]
    damaged: list[BenchError] = []

    def told(error: BenchError) -> None:
        damaged.append(error)
        if on_damaged is not None:
            on_damaged(error)

    several = on_damaged is not None and len(paths) > 1
    stored = _read_all(chosen, told if several else None, mapper)
    if not stored and damaged and len(chosen) == len(paths):
        none = f"none of {len(paths)} files is a record that can be read"
        raise BenchError(f"{root}: {none}; the first: {damaged[0]}")
    return stored


def study_records(
    roots: Iterable[Path], name: str, on_damaged: Callable[[BenchError], None] | None = None
) -> list[StoredRecord]:
    """Records of a study in or beside folders; one that is damaged is told, or else an error."""
    beside = [place / STUDIES / name for root in roots for place in (root, root.parent)]
    paths = [path for folder in dict.fromkeys(beside) for path in sorted(_paths(folder))]
    return _read_all(paths, on_damaged)


def _read_all(
    paths: Sequence[Path], on_damaged: Callable[[BenchError], None] | None, mapper: Mapper = map
) -> list[StoredRecord]:
    stored = []
    for path, attempt in zip(paths, mapper(_attempt, paths), strict=True):
        if isinstance(attempt, Record):
            stored.append(StoredRecord(attempt, path))
        elif on_damaged is None:
            raise attempt
        else:
            on_damaged(attempt)
    return stored


def _paths(root: Path) -> Iterator[Path]:
    """Files named as records below a folder; folders that cannot be listed have none."""
    folders, n = [str(root)], 0
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if fnmatch(entry.name, "seed-*.json"):
                    n += 1
                    if n > _MOST_FILES:
                        raise BenchError(f"{root}: more than {_MOST_FILES} records")
                    yield Path(entry.path)
                elif not entry.is_dir() or entry.name == STUDIES:
                    continue
                elif entry.is_symlink():  # which may lead in a circle
                    words = f"passed over {entry.path}: a link to a folder"
                    warnings.warn(PassedOverWarning(words), stacklevel=2)
                else:
                    folders.append(entry.path)


def _attempt(path: Path) -> Attempt:
    try:
        return read_record(path)
    except BenchError as error:
        return error


def read_records(root: Path) -> list[Record]:
    """Every record below a folder; BenchError as of :func:`find_records`, or if one is damaged."""
    return [stored.record for stored in find_records(root)]


def evidence_file(name: str) -> Path:
    """``results/<name>`` here, or in the checkout that this package runs from; else AbsentError."""
    here = Path("results") / name
    for path in (here, Path(__file__).parents[2] / here):
        if path.is_file():
            return path
    raise AbsentError(f"{here}: no such file here; name one, or change to a checkout")


def once(found: Iterable[StoredRecord]) -> tuple[list[StoredRecord], list[BenchError]]:
    """Records of each run once, the first of several; and an error that names each of the others.

    A file that is reached twice is one record.
    """
    kept: dict[tuple[object, ...], StoredRecord] = {}
    errors: dict[Path, BenchError] = {}
    for stored in found:
        record = stored.record
        first = kept.setdefault((
            record.protocol, record.protocol_version, record.track, record.track_version,
            record.method, record.seed, record.first_seed, repr(sorted(record.changed.items())),
        ), stored)  # fmt: skip
        if first is not stored and real(first.path) != (place := real(stored.path)):
            errors[place] = BenchError(
                f"{stored.path}: a record of {record.method}, seed {record.seed}, on "
                f"{record.protocol} and {record.track} was read before"
            )
    return list(kept.values()), list(errors.values())


def read_selection(
    roots: Iterable[Path],
    on_damaged: Callable[[BenchError], None] | None = None,
    **chosen: Sequence[Any],
) -> list[StoredRecord]:
    """Records below some folders, or single ones, that have certain values; each run once.

    ``on_damaged`` is as for :func:`benchmark.records.files.find_records`; ``chosen`` has values by
    field of a record (``method``, ``protocol``, ``track``, ``seed``), an empty list is no
    restriction. ``arch-change`` are all settings of that protocol.

    Raises:
        BenchError: If a folder has no record, or no record has a chosen value.
    """
    folders = list(roots)
    named = [_named(path) for root in folders for path in _paths(root)]
    if named and all(named):  # no record is read in vain
        _chosen(named, dict.__getitem__, {field: chosen.get(field, ()) for field in named[0]})
    every, damaged = _read(folders, on_damaged, partial(_may_have, chosen))
    selection: list[StoredRecord] = []
    with suppress(BenchError):  # its message names what all records have
        selection = _chosen(every, _value, chosen)
    if not selection:
        every, damaged = _read(folders, on_damaged)
    if on_damaged is not None:
        for error in damaged:
            on_damaged(error)
    return selection or _chosen(every, _value, chosen)


def _read(
    folders: Sequence[Path], on_damaged: object, wanted: Callable[[Path], bool] = lambda path: True
) -> tuple[list[StoredRecord], list[BenchError]]:
    """Each record once, and what is damaged, if anybody asks for it."""
    damaged: list[BenchError] = []
    note = damaged.append if on_damaged else None
    found = (each for root in folders for each in find_records(root, note, wanted=wanted))
    records, again = once(found)
    return records, damaged + again


def _value(stored: StoredRecord, field: str) -> Any:
    return getattr(stored.record, field)


def _chosen(
    every: Sequence[T], value_of: Callable[[T, str], Any], chosen: Mapping[str, Sequence[Any]]
) -> list[T]:
    """Those that have the values; a BenchError if one has none of them, or nothing has all."""
    selection = choose(every, value_of, chosen, "protocol", "no record of {field} '{value}'")
    if not selection:
        words = ", ".join(f"{k} {' or '.join(map(str, v))}" for k, v in chosen.items() if v)
        raise BenchError(f"no record of {words}")
    return selection


def _named(path: Path) -> dict[str, str]:
    """Values of a record that its path names in the layout that we write; none in another."""
    *_, top, protocol, track, method, _ = ("", "", "", "", *path.parts)
    named = {"protocol": protocol, "track": track, "method": method}
    return {k: v.replace("+", ":") for k, v in named.items()} if top == "measured" else {}


def _may_have(chosen: Mapping[str, Sequence[Any]], path: Path) -> bool:
    """False where a path names another protocol, track or method."""
    return all(
        not chosen.get(field) or not _layers(value, field == "protocol").isdisjoint(chosen[field])
        for field, value in _named(path).items()
    )


def _layers(value: Any, layered: bool) -> set[Any]:
    """A value, and the protocol that a setting is of: ``a`` of ``a:b``."""
    return {value, value.partition(":")[0]} if layered else {value}


def choose(
    items: Sequence[T], value_of: Callable[[T, str], Any], chosen: Mapping[str, Sequence[Any]],
    layered: str, message: str,
) -> list[T]:  # fmt: skip
    """Items each of whose fields has one of the chosen values, if any are chosen.

    In the ``layered`` field ``a`` also means ``a:b``. A value that no item has is an error, which
    begins with ``message`` (its ``field`` and ``value`` filled in).
    """

    def names(item: T, field: str) -> set[Any]:
        return _layers(value_of(item, field), field == layered)

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
