"""Records on disk: listed, read and validated."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_json

from benchmark.config.files import SEAL, read_bytes, seal_of, write_sealed
from benchmark.config.reading import parse
from benchmark.errors import AbsentError, BenchError, EditedError
from benchmark.records.limits import parse_json
from benchmark.records.record import OLDEST, SCHEMA, SEALED_SINCE, Record

STUDIES = "studies"
"""Folder of records that answer a question of their own, and so count only where they are named."""
_MOST_BYTES = 4 * 1024 * 1024
_MOST_FILES = 50_000
_RECORD = TypeAdapter(Record)

# Fields that were empty mappings, or missing, before schema 3.
_EMPTY_BEFORE = ("backfilling", "side", "adapter", "parameters")
_RENAMED = {"yardstick_cpu_seconds": "calibration_cpu_seconds"}
_LEFT_OUT = ("yardstick_seconds", "undisturbed_cpu_seconds")


def write_record(path: Path, record: Record) -> None:
    """Write a record with its seal, durably and whole or not at all.

    Raises:
        BenchError: If the disk is full.
    """
    write_sealed(path, record.as_json())


def read_record(path: Path) -> Record:
    """Read and validate a record; one of a schema without a seal has none.

    Raises:
        BenchError: If it is no regular file, not JSON within limits, of another schema, or a field
            is unknown, missing or wrong.
        EditedError: If its seal is missing or does not fit.
    """
    value = parse_json(read_bytes(path, _MOST_BYTES), path)
    schema: Any = value.get("schema") if isinstance(value, dict) else type(value).__name__
    if isinstance(schema, bool) or schema not in range(OLDEST, SCHEMA + 1):
        raise BenchError(f"{path}: schema: expected {OLDEST} to {SCHEMA}, got {schema!r:.60}")
    if schema < SEALED_SINCE:
        value = upgraded(value)
    elif value.get(SEAL) != seal_of(value):
        wrong = "its seal does not fit" if value.get(SEAL) else "its seal is missing"
        raise EditedError(f"{path}: edited since it was written: {wrong}")
    # Of the very value that is sealed: the text may have a key twice.
    return parse(_RECORD, to_json(value), str(path))


def upgraded(value: dict[str, Any]) -> dict[str, Any]:
    """A record of schema 1 to 3 in today's layout, unsealed; its ``schema`` stays what it was.

    Times of a stage get today's names; what was measured in other units is left out.
    """
    empty = {name: value.get(name) or None for name in _EMPTY_BEFORE} | {SEAL: None}
    run = value.get("run")
    stages = run.get("stages") if isinstance(run, dict) else None
    if not isinstance(run, dict) or not isinstance(stages, dict):
        return value | empty
    renamed = {
        title: {_RENAMED.get(k, k): v for k, v in stage.items() if k not in _LEFT_OUT}
        if isinstance(stage, dict)
        else stage
        for title, stage in stages.items()
    }
    return value | empty | {"run": run | {"stages": renamed}}


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
        raise AbsentError(f"{root}: no records (files named seed-<n>.json)")
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
    """What is named as a record, below a folder; folders that cannot be listed have nothing."""
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
