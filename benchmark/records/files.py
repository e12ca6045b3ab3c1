"""Records on disk: where they lie, read and validated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.config.reading import build
from benchmark.errors import BenchError, located
from benchmark.records import checks
from benchmark.records.record import OLDEST, SCHEMA, Record

_MOST_BYTES = 4 * 1024 * 1024


def read_record(path: Path) -> Record:
    """Read and validate a record.

    Raises:
        BenchError: If it is not JSON, of another schema, or a field is unknown, missing or wrong.
    """
    value = _read_json(path)
    schema = value.get("schema") if isinstance(value, dict) else type(value).__name__
    if isinstance(schema, bool) or schema not in range(OLDEST, SCHEMA + 1):
        raise BenchError(f"{path}: schema: expected {OLDEST} to {SCHEMA}, got {schema!r}")
    record = build(Record, value, str(path))
    with located(str(path)):
        checks.check(record)
    return record


@dataclass(frozen=True)
class Found:
    """A record, and the file that it was read from."""

    record: Record
    path: Path


Tried = Record | BenchError
"""A record, or why a file is none."""


Each = Callable[[Callable[[Path], Tried], Sequence[Path]], Iterable[Tried]]
"""``map``, or what does the same by several processes."""


def find_records(
    root: Path, on_damaged: Callable[[BenchError], None] | None = None, each: Each = map
) -> list[Found]:
    """Every record below a folder, in the order of their paths.

    Args:
        root: A folder, or one record.
        on_damaged: Called with what is wrong with a file that is no record of ours, which is then
            left out; without it such a file is an error.
        each: Calls a function with every path, as ``map`` does; another one by several processes.

    Raises:
        BenchError: If there is no record.
    """
    paths = [root] if root.is_file() else sorted(root.rglob("seed-*.json"))
    if not paths:
        raise BenchError(f"{root}: no records (files named seed-<n>.json)")
    found = []
    for path, tried in zip(paths, each(_tried, paths), strict=True):
        if isinstance(tried, Record):
            found.append(Found(tried, path))
        elif on_damaged is None or len(paths) == 1:
            raise tried
        else:
            on_damaged(tried)
    if not found:
        raise BenchError(f"{root}: none of {len(paths)} files is a record that can be read")
    return found


def _tried(path: Path) -> Record | BenchError:
    try:
        return read_record(path)
    except BenchError as error:
        return error


def read_records(root: Path) -> list[Record]:
    """Every record below a folder; see :func:`find_records`.

    Raises:
        BenchError: If the folder holds none, or one of them is damaged.
    """
    return [found.record for found in find_records(root)]


def _read_json(path: Path) -> Any:
    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no number")

    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BenchError(f"{path}: larger than any record ({_MOST_BYTES} bytes)")
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path}: cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise BenchError(f"{path}: not valid JSON: {error}") from error
