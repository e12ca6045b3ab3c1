"""Records on disk: listed, read and validated."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_json

from benchmark.config.files import SEAL, plain_io_errors, read_bytes, seal_of, write_whole
from benchmark.config.reading import parse
from benchmark.errors import AbsentError, BenchError, EditedError
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


Attempt = Record | BenchError
"""A record, or why a file is none."""
Mapper = Callable[[Callable[[Path], Attempt], Sequence[Path]], Iterable[Attempt]]
"""``map``, or what does the same by several processes."""


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
    stored = _read_all(chosen, on_damaged if len(paths) > 1 else None, mapper)
    if not stored and len(chosen) == len(paths):
        raise BenchError(f"{root}: none of {len(paths)} files is a record that can be read")
    return stored


def study_records(
    roots: Iterable[Path], name: str, on_damaged: Callable[[BenchError], None] | None = None
) -> list[StoredRecord]:
    """Records of the study of that name, in or beside folders of records; empty without any.

    A damaged one is left out and told to ``on_damaged``; without it, it is an error.
    """
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
                elif entry.is_dir(follow_symlinks=False) and entry.name != STUDIES:
                    folders.append(entry.path)


def _attempt(path: Path) -> Attempt:
    try:
        return read_record(path)
    except BenchError as error:
        return error


def read_records(root: Path) -> list[Record]:
    """Every record below a folder; see :func:`find_records`.

    Raises:
        BenchError: If the folder holds none, or one of them is damaged.
    """
    return [stored.record for stored in find_records(root)]
