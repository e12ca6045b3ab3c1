"""Records from a folder; one that cannot be shown is passed over, and said so."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError
from benchmark.record import Record, read_record


@dataclass(frozen=True)
class Entry:
    """A record, and the file that it was read from, if any."""

    record: Record
    path: Path | None = None


@dataclass(frozen=True)
class Skipped:
    """A file that is not shown, and why, in one line."""

    file: str
    reason: str

    def __str__(self) -> str:
        return f"skipped {self.file}: {self.reason}"


def read_folder(root: Path) -> tuple[list[Entry], list[Skipped]]:
    """Every record below a folder, in the order of their paths, and what is no record.

    Raises:
        BenchError: If there is no file that may be a record.
    """
    paths = [root] if root.is_file() else sorted(root.rglob("seed-*.json"))
    if not paths:
        raise BenchError(f"{root}: no records (files named seed-<n>.json)")
    entries, skipped = [], []
    seen: set[tuple[object, ...]] = set()
    for path in paths:
        shown = path.relative_to(root).as_posix() if path != root else path.name
        try:
            record = _shown(path, seen)
        except BenchError as error:
            reason = " ".join(str(error).replace(f"{path}: ", "").split())
            skipped.append(Skipped(_printable(shown), _printable(reason)))
        else:
            entries.append(Entry(record, path))
    return entries, skipped


def _shown(path: Path, seen: set[tuple[object, ...]]) -> Record:
    try:
        record = read_record(path)
    except RecursionError as error:
        raise BenchError("not valid JSON: nested too deeply") from error
    if record.kind != "measured":
        raise BenchError(f"kind: expected 'measured', got {record.kind!r}")
    check(record)
    mark = (
        record.protocol, record.protocol_version, record.track, record.track_version,
        record.method, record.seed, record.first_seed, repr(sorted(record.changed.items())),
    )  # fmt: skip
    if mark in seen:
        raise BenchError(
            f"a record of {record.method}, seed {record.seed}, on {record.protocol} and "
            f"{record.track} was read before"
        )
    seen.add(mark)
    return record


def _printable(text: str, longest: int = 300) -> str:
    """Text that a terminal shows on one line as it is."""
    plain = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return plain if len(plain) <= longest else plain[: longest - 3] + "..."


def check(record: Record) -> None:
    """Look at what the schema leaves open and pages show.

    Raises:
        BenchError: If a part has another form than ours.
    """
    for name in ("dataset", "recipe", "cost", "environment", "config", "changed"):
        _mapping(getattr(record, name), name)
    for name, about in _mapping(record.side.get("generations", {}), "side.generations").items():
        _mapping(about, f"side.generations.{name}")
    _check_run(record.run)
    _check_curves(record.curves)
    if record.backfilling.get("orders"):
        _check_backfilling(record.backfilling)


def _check_run(run: Mapping[str, Any]) -> None:
    _mapping(run.get("code") or {}, "run.code")
    argv = run.get("argv") or []
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        raise BenchError(f"run.argv: expected a list of words, got {argv!r}")
    if run.get("training_cost") is not None:
        _number(run["training_cost"], "run.training_cost")
    for title, stage in _mapping(run.get("stages") or {}, "run.stages").items():
        for key in ("seconds", "peak_memory_bytes"):
            if _mapping(stage, f"run.stages.{title}").get(key) is not None:
                _number(stage[key], f"run.stages.{title}.{key}")


def _check_curves(curves: Mapping[str, Any]) -> None:
    for title, parts in curves.items():
        for part, lines in _mapping(parts, f"curves.{title}").items():
            for key, line in _mapping(lines, f"curves.{title}.{part}").items():
                if isinstance(line, list):
                    # A training that diverged has losses that are none.
                    known = [value for value in line if value is not None]
                    _numbers(known, f"curves.{title}.{part}.{key}")


def _check_backfilling(found: Mapping[str, Any]) -> None:
    for key in ("old", "new"):
        if not isinstance(found.get(key), str):
            raise BenchError(f"backfilling.{key}: expected text, got {found.get(key)!r}")
    for metric, ends in _mapping(found.get("offline"), "backfilling.offline").items():
        for key in ("before", "after", "area"):
            _number(_mapping(ends, f"backfilling.offline.{metric}").get(key), f"offline.{key}")
    lengths: set[int] = set()
    for name, order in _mapping(found["orders"], "backfilling.orders").items():
        _check_order(_mapping(order, f"backfilling.orders.{name}"), f"backfilling.orders.{name}")
        lengths |= {len(curve) for curve in order["curves"].values()}
    if len(lengths) > 1 or min(lengths, default=2) < 2:
        raise BenchError("backfilling.orders: expected curves of one length, of 2 points or more")


def _check_order(order: Mapping[str, Any], where: str) -> None:
    for key in ("area", "intervals", "curves", "flips", "groups", "tau"):
        _mapping(order.get(key), f"{where}.{key}")
    for part in ("area", "tau"):
        for name, value in order[part].items():
            if value is not None:
                _number(value, f"{where}.{part}.{name}")
    for metric, span in order["intervals"].items():
        if span is not None:
            _numbers(span, f"{where}.intervals.{metric}", n=2)
    for metric, curve in order["curves"].items():
        _numbers(curve, f"{where}.curves.{metric}")
    for key in ("positive", "negative"):
        _numbers(order["flips"].get(key), f"{where}.flips.{key}")


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BenchError(f"{where}: expected a mapping, got {type(value).__name__}")
    return value


def _number(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BenchError(f"{where}: expected a number, got {value!r}")


def _numbers(values: Any, where: str, n: int | None = None) -> None:
    if not isinstance(values, list | tuple) or (n is not None and len(values) != n):
        raise BenchError(f"{where}: expected {n or 'a list of'} numbers, got {values!r}")
    for value in values:
        _number(value, where)


def entries_of(records: Iterable[Record], root: Path | None) -> list[Entry]:
    """Records at hand, with their files below ``root`` where these are."""
    found = []
    for record in records:
        path = None if root is None else record.path(root)
        found.append(Entry(record, path if path is not None and path.is_file() else None))
    return found
