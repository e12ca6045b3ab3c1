"""Records on disk: listed, read and validated."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from benchmark.config.reading import parse
from benchmark.errors import BenchError
from benchmark.records.record import OLDEST, SCHEMA, Record

_MOST_BYTES = 4 * 1024 * 1024
_RECORD = TypeAdapter(Record)

# Fields that were empty mappings, or missing, before schema 3.
_EMPTY_BEFORE = ("backfilling", "side", "adapter", "parameters")
_RENAMED = {"yardstick_cpu_seconds": "calibration_cpu_seconds"}
_LEFT_OUT = ("yardstick_seconds", "undisturbed_cpu_seconds")


def read_record(path: Path) -> Record:
    """Read and validate a record.

    Raises:
        BenchError: If it is not JSON, of another schema, or a field is unknown, missing or wrong.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BenchError(f"{path}: larger than any record ({_MOST_BYTES} bytes)")
        text = path.read_bytes()
        value = from_json(text, allow_inf_nan=False)  # JSON has no NaN
    except OSError as error:
        raise BenchError(f"{path}: cannot be read: {error}") from error
    except ValueError as error:
        raise BenchError(f"{path}: not valid JSON: {error}") from error
    schema: Any = value.get("schema") if isinstance(value, dict) else type(value).__name__
    if isinstance(schema, bool) or schema not in range(OLDEST, SCHEMA + 1):
        raise BenchError(f"{path}: schema: expected {OLDEST} to {SCHEMA}, got {schema!r}")
    if schema < SCHEMA:
        text = json.dumps(upgraded(value)).encode()
    return parse(_RECORD, text, str(path))


def upgraded(value: dict[str, Any]) -> dict[str, Any]:
    """A record of schema 1 or 2 in today's layout; its ``schema`` stays what it was.

    Times of a stage get today's names; what was measured in other units is left out.
    """
    empty = {name: value.get(name) or None for name in _EMPTY_BEFORE}
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
    root: Path, on_damaged: Callable[[BenchError], None] | None = None, mapper: Mapper = map
) -> list[StoredRecord]:
    """Every record below a folder, or the one record that ``root`` is, in the order of their paths.

    ``on_damaged`` is called with what is wrong with a file that is no record of ours, which is then
    left out; without it such a file is an error. ``mapper`` calls a function with every path.

    Raises:
        BenchError: If there is no record.
    """
    paths = [root] if root.is_file() else sorted(root.rglob("seed-*.json"))
    if not paths:
        raise BenchError(f"{root}: no records (files named seed-<n>.json)")
    stored = []
    for path, attempt in zip(paths, mapper(_attempt, paths), strict=True):
        if isinstance(attempt, Record):
            stored.append(StoredRecord(attempt, path))
        elif on_damaged is None or len(paths) == 1:
            raise attempt
        else:
            on_damaged(attempt)
    if not stored:
        raise BenchError(f"{root}: none of {len(paths)} files is a record that can be read")
    return stored


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
