"""Records on disk: found, read and validated."""

from __future__ import annotations

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


def read_record(path: Path) -> Record:
    """Read and validate a record.

    Raises:
        BenchError: If it is not JSON, of another schema, or a field is unknown, missing or wrong.
    """
    text = _read(path)
    try:
        value = from_json(text, allow_inf_nan=False)  # JSON has no NaN
    except ValueError as error:
        raise BenchError(f"{path}: not valid JSON: {error}") from error
    schema: Any = value.get("schema") if isinstance(value, dict) else type(value).__name__
    if isinstance(schema, bool) or schema not in range(OLDEST, SCHEMA + 1):
        raise BenchError(f"{path}: schema: expected {OLDEST} to {SCHEMA}, got {schema!r}")
    if schema < SCHEMA:
        text = json.dumps(upgraded(value)).encode()
    return parse(_RECORD, text, str(path))


def upgraded(value: dict[str, Any]) -> dict[str, Any]:
    """A record of schema 1 or 2 in today's layout; its ``schema`` says what it was."""
    upgraded = dict(value)
    for name in ("backfilling", "side", "adapter", "parameters"):
        upgraded[name] = value.get(name) or None
    run = value.get("run")
    stages = run.get("stages") if isinstance(run, dict) else None
    if isinstance(stages, dict):
        renamed = {title: _stage(stage) for title, stage in stages.items()}
        upgraded["run"] = {**run, "stages": renamed}  # type: ignore[dict-item]
    return upgraded


def _stage(stage: Any) -> Any:
    """Times of a stage under today's names; what was measured in other units is left out."""
    if not isinstance(stage, dict):
        return stage
    kept = dict(stage)
    for name in ("yardstick_seconds", "undisturbed_cpu_seconds"):
        kept.pop(name, None)
    if "yardstick_cpu_seconds" in kept:
        kept["calibration_cpu_seconds"] = kept.pop("yardstick_cpu_seconds")
    return kept


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
    """Every record below a folder, in the order of their paths.

    Args:
        root: A folder, or one record.
        on_damaged: Called with what is wrong with a file that is no record of ours, which is then
            left out; without it such a file is an error.
        mapper: Calls a function with every path, as ``map`` does, or by several processes.

    Raises:
        BenchError: If there is no record.
    """
    paths = [root] if root.is_file() else sorted(root.rglob("seed-*.json"))
    if not paths:
        raise BenchError(f"{root}: no records (files named seed-<n>.json)")
    found = []
    for path, attempt in zip(paths, mapper(_attempt, paths), strict=True):
        if isinstance(attempt, Record):
            found.append(StoredRecord(attempt, path))
        elif on_damaged is None or len(paths) == 1:
            raise attempt
        else:
            on_damaged(attempt)
    if not found:
        raise BenchError(f"{root}: none of {len(paths)} files is a record that can be read")
    return found


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


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BenchError(f"{path}: larger than any record ({_MOST_BYTES} bytes)")
        return path.read_bytes()
    except OSError as error:
        raise BenchError(f"{path}: cannot be read: {error}") from error
